"""Environments: places to work in, the state of a stage, and what its tests say."""
