"""Trees in a sandbox: placed without later commits, tracked step by step, read back, carried from stage to stage."""
