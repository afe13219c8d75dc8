"""Trajectories grown along a process graph, window by window (P2T, section 4.2)."""
