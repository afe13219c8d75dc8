"""Rollouts: one sample of one chain from ids to rows, and a run over many."""
