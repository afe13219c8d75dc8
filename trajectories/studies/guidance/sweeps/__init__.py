"""Rolling out the same chains under several variants of a process reward model."""
