"""Measuring what is taken for a secret in real repositories."""
