"""GitHub or a git mirror -> pull requests, their texts, their code facts and their citations of each other."""
