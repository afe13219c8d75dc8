"""Looks over trajectories, without their outcome, for signs that the agent cheated."""
