"""Grades on real stages: cheats that must not be accepted, and honest work that must not be called tampered."""
