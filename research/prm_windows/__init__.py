"""Real agents' windows: what detectors find in them, against readers' labels, and a database to replay."""
