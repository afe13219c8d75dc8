"""Measurements: each is run by hand with a target of the Makefile; none is part of an installation."""
