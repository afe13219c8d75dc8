"""The rule of stage state, proved on real pull requests: `python -m research.state_pairs --db mined.db`."""
