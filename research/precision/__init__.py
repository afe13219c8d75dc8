"""The precision of the counted citations: a sample drawn with a seed, labelled by hand by two readers."""
