"""What readers said of chains that a screener had read, and of tasks that were written by hand-made answers."""
