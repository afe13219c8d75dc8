"""Trajectories of others: documents become trajectories without a chain."""
