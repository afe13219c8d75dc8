"""Lineage: which earlier pull request's lines a later one changes."""
