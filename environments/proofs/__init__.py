"""Proofs of chains: the reference replayed stage by stage, and the test runs that show its work."""
