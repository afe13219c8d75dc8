"""Steps, read: what they say, show and repeat, for curation, for guidance and for whoever measures."""
