"""Chains chosen from the graph."""
