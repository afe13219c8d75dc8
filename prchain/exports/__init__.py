"""Tasks for others, across the packages that make them."""
