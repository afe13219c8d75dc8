"""Test runs: which files, by which command, with which reporter, and what becomes of each test."""
