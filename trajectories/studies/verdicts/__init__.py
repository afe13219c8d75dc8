"""What the judge is worth: verdicts on patches whose worth is known."""
