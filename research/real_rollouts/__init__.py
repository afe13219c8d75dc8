"""Rollouts over real chains: `python -m research.real_rollouts --db proved.db --chain ID --agent reference`."""
