"""Rollouts whose Docker engine dies and whose disk fills up: `python -m tests.engine_faults`."""
