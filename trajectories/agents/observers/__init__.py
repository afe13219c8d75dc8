"""Observers: what watches a rollout step by step, and may speak to its agent or end it."""
