"""What process reward models are worth: replays, labels, comparisons, sweeps, reports."""
