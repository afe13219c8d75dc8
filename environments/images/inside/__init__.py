"""Programs that run inside a build's container, with any Python from 3.6 on; the builder imports nothing of them."""
