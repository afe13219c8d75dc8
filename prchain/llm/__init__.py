"""The name in release 0.1 of `prchain.core.llm`, for observers written then; it goes with release 0.3."""
