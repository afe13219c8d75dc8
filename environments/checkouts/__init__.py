"""Trees in a sandbox: placed without a future, tracked step by step, read back, and carried from stage to stage."""
