"""Interpreters of the time: which Python a stage wants, which this machine has, and how one gets into an image."""
