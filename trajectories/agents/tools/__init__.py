"""The tools that an agent of ours has."""
