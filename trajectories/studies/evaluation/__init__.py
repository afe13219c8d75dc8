"""Models and agents on sets of tasks, as benchmarks tell them."""
