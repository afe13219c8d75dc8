"""Programs that run inside a build's container, with any Python from 3.7 on; nothing here is imported."""
