"""Reading code: kinds of files, tokens, names, items, and what hidden tests need of it."""
