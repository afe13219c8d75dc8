"""GitHub's API as a source: bulk GraphQL for pull requests, REST for review comments, both resumable at any page."""

from miner.github.reading import ReadSummary, ResolvedRepository
from miner.github.source import GitHubSource, replay

__all__ = ["GitHubSource", "ReadSummary", "ResolvedRepository", "replay"]
