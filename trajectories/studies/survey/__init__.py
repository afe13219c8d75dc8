"""Which share of a repository's landings has an environment: a sample is drawn, proved, and told with intervals."""
