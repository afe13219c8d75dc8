"""What the hidden tests of a stage need: names and texts that its base does not have, found without a model."""
