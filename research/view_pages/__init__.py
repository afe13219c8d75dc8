"""The pages of `prchain view` in a real browser."""
