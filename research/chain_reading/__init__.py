"""Chains read by hand: the drawing of a sample, and the labels of the readers."""
