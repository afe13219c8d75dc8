"""What others grade: predictions on tasks of SWE-bench."""
