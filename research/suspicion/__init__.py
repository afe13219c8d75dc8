"""Measures how often the rules of suspicion point at honest work: real landed patches of real repositories."""
