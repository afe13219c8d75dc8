"""Talking to models: a desk that asks, a ledger that remembers and pays, endpoints and scripts that answer."""
