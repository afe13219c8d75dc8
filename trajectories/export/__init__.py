"""Trajectories as training data: which turns are under loss, in which format, with a card that says what it is."""
