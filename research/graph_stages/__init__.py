"""Process graphs of real stages, by hand: `python -m research.graph_stages FOLDER`."""
