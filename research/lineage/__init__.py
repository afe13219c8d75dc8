"""How right and how fast lineage is, on real repositories."""
