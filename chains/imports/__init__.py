"""Tasks of others: rows of published data sets as chains of one stage."""
