"""Studies of what graphs and curated trajectories are worth beside plain rollouts."""
