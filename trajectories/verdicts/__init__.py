"""Verdicts: the judge, the gates, what goes back to the agent, and how well the judge judges."""
