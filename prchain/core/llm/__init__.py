"""Talking to models: a gateway that asks, a ledger that remembers and pays, endpoints and scripts that answer."""
