"""What everything stands on: settings, errors, runs, git, models, the leak check. It imports nothing of ours."""

__version__ = "0.2.0"
