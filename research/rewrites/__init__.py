"""Rewritten steps over real stages, honest and leaking, put to the gates of a curated run."""
