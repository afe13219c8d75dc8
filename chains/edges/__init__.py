"""How one pull request builds on another: signs, confidence, order."""
