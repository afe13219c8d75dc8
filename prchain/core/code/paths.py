"""What a path says about a change: pure rules over file names."""

from __future__ import annotations

import re

_TRIVIAL_NAME = re.compile(
    r"(?i)(?:^|/)(?:changelog|changes|history|news|release[-_ ]?notes|authors|contributors|readme|\.mailmap|version)"
    r"(?:\.[a-z]+)?$|(?:^|/)(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|cargo\.lock|poetry\.lock|uv\.lock|go\.sum"
    r"|gemfile\.lock|composer\.lock|pdm\.lock|pixi\.lock|\.gitignore)$"
)


def is_trivial(path: str) -> bool:
    """Whether unrelated pull requests share this path as a matter of course: changelogs, author lists, lock files."""
    return bool(_TRIVIAL_NAME.search(path))


_HOUSEKEEPING = re.compile(
    r"(?i)(?:^|/)(?:package\.json|pyproject\.toml|setup\.(?:py|cfg)|cargo\.toml|go\.mod|composer\.json|gemfile"
    r"|[^/]*requirements[^/]*\.(?:txt|in)|environment\.ya?ml|pixi\.toml|[^/]*\.gemspec|[^/]*\.csproj"
    r"|build\.gradle(?:\.kts)?"
    r"|pom\.xml|_?version\.\w+|__version__\.py|__init__\.py|citation\.cff|\.pre-commit-config\.yaml"
    r"|\.release-please-manifest\.json"
    r"|pavement\.py|meson\.build|\.mailmap|release\.(?:py|md|rst)|\.bumpversion\.(?:cfg|toml)|lerna\.json)$"
    r"|(?:^|/)(?:changelog|changes|news|release[-_ ]?notes?|releases?|whatsnew|upcoming_changes|\.github|announce)"
    r"(?:/|\.d/)"
    r"|(?:^|/)[^/]*(?:changelog|release)[^/]*\.(?:md|rst|txt|json)$|\.lock$"
)


def is_housekeeping(path: str) -> bool:
    """Whether a release or a dependency update changes such a path: manifests, locks, versions, changelogs."""
    return is_trivial(path) or bool(_HOUSEKEEPING.search(path))


_PROSE = re.compile(r"(?i)\.(?:md|mdx|rst|txt|adoc|png|jpe?g|gif|svg|webp)$")


def is_prose(path: str) -> bool:
    """Whether a path is documentation or a picture in it, by its ending."""
    return bool(_PROSE.search(path))
