"""Process graphs of reference patches: proposed, criticised and replayed (P2T, section 3)."""
