"""Rollouts whose Docker engine dies and whose disk fills up: `python -m research.engine_faults`."""
