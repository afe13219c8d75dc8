"""The reference patches of a chain's stages as git prints them, for the pages of chains and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chains.history import repositories
from prchain.errors import UsageError
from prchain.git import open_mined
from prchain.terminal import say, say_text
from sql.store import Store


def add_references(store: Store, page: Mapping[str, Any], mirrors: Path) -> None:
    """Add to every stage of a page its ``reference``: the patch from its base to its landed commit.

    Raises `GitError` where the repository cannot be read, and `UsageError` where it is not in the database any more.
    """
    with store.reading() as tx:
        mined = next(iter(repositories(tx, page["repository"])), None)
    if mined is None:
        raise UsageError(f"{page['repository']} has not been mined into this database; `prchain status` lists what has")
    git = open_mined(mined.location, mirrors, mined.host, mined.full_name)
    for stage in page["stages"]:
        patch = git.patch_text(stage["base_sha"], stage["landed_sha"])
        stage["reference"] = patch.decode("utf-8", "replace")


def print_reference(stage: Mapping[str, Any]) -> None:
    """Print a stage's reference patch, from the first column on, as other tools read it."""
    say()
    say(f"reference of stage {stage['position']}, #{stage['number']}:")
    say_text(stage["reference"])
