"""How precise the counted citations are: a sample drawn with a seed, labelled by hand by two readers."""
