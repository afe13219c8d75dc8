"""Precision and recall of the audit on trajectories that were written by hand."""
