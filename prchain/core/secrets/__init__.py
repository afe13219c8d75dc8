"""Secrets in texts: what they look like, and keeping them out of what is stored, logged and shown."""
