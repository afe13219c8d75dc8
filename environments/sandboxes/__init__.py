"""Sandboxes: one container, bubblewrap or script to run commands in, and the channel that the commands go through."""
