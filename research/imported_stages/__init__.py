"""Stages that we proved, written in publishers' columns, imported, proved and graded once more."""
