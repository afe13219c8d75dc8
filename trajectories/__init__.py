"""Rollouts: agents at work on chains, verdicts on what they did, and the training data made of it."""
