"""Chains that were read by hand: how a sample is drawn, and what the readers found."""
