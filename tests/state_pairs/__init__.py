"""The rule of stage state, proved on real pull requests: `python -m tests.state_pairs --db mined.db`."""
