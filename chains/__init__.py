"""Pull requests to a typed reference graph, to chains, to tasks."""
