"""The main comparison of each paper: the commands that make its training files, and its table."""
