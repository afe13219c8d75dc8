"""What agent programs really send: run unchanged in containers, without network, with a scripted model."""
