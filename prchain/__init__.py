"""What every stage uses: settings, errors, git plumbing, scrubbing, progress and the command group."""

__version__ = "0.1.0"
