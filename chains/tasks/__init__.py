"""Tasks made of chains: overview, one query a stage, and their export."""
