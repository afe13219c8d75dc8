"""What evidence of dependency and worth is worth: samples to read, the fit of the weights, and the measure."""
