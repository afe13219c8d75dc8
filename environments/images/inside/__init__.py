"""Programs that run inside a build's container, with any Python from 3.7 on; the builder imports nothing of them."""
