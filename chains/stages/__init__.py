"""Which pull requests may be stages: the content of their patches, and the filters that drop them."""
