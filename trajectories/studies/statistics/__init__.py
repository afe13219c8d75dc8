"""What the rollouts come to, in all and by group."""
