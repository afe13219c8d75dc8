"""Programs of agents, installed once and laid read-only into sandboxes."""
