"""How the judge scores candidates that people or other models made, by their kind and beside the hidden tests."""
