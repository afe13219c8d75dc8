"""Everything that measures: curation, guidance, the judge, and what the rollouts come to."""
