"""Which pull requests may be stages: what their patches are made of, and what drops them."""
