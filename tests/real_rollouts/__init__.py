"""Rollouts over real chains: `python -m tests.real_rollouts --db proved.db --chain ID --agent reference`."""
