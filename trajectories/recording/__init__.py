"""Programs of others at work: what they ask their model is answered, paid for and kept as a trajectory."""
