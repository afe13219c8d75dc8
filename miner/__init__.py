"""A forge, or git alone, -> pull requests, their texts, their code facts and their citations of each other."""
