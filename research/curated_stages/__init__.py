"""Curated trajectories of real stages, with scripted models: what the windows commit, what it costs, what leaks."""
