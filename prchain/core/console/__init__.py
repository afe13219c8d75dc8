"""What a command prints: lines and tables, progress, logs."""
