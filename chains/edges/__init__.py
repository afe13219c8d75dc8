"""What one pull request has to do with another: signs, confidence, order."""
