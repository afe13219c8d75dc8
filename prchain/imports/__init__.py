"""Tasks of others: the command that takes them in, from data sets and from images."""
