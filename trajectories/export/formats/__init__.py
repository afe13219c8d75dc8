"""The formats of exports: one module each, functions from a sample to a line."""
