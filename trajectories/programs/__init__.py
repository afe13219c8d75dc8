"""Agent programs of others, unchanged, in the sandboxes of rollouts: what they ask their model is answered and kept."""
