"""The name in release 0.1 of `trajectories.agents.scaffolds`, for observers written then; it goes with release 0.3."""
