"""Process graphs of reference patches, and trajectories that are curated along them (P2T)."""
