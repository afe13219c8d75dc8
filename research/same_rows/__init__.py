"""Comparing two databases by natural keys."""
