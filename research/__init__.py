"""Rigs that measure: each is run by hand, with a target of the Makefile, and none is part of an installation."""
