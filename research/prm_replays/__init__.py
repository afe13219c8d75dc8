"""Readings of real windows by process reward models that were answered by hand, and what they are worth."""
