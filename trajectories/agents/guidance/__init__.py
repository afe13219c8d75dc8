"""A process reward model watches a rollout and tells its agent how to go on (SWE-PRM)."""
