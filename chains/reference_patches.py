"""The reference patches of a chain's stages as git prints them, for the pages of chains and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chains.history import repositories
from prchain.core.console.terminal import say, say_content
from prchain.core.errors import UsageError
from prchain.core.git import GitRepository, open_mined
from prchain.core.git.patches import patch_fields
from sql.store import Store
from sql.tables import ImportedTask


def add_references(store: Store, page: Mapping[str, Any], mirrors: Path) -> list[bytes]:
    """The patch of each stage of a page, from its base to its landed commit; the stages get it as ``reference``.

    Raises `GitError` where the repository cannot be read, and `UsageError` where it is not in the database any more.
    """
    chain_id = page.get("chain_id") or page["id"]
    with store.reading() as tx:
        mined = next(iter(repositories(tx, page["repository"])), None)
        imported = next(iter(tx.rows(ImportedTask, "location", chain_id=chain_id)), None)
    if imported is not None and imported[0] is None:
        raise UsageError(f"chain {chain_id} was imported without a repository; `prchain tasks import` again")
    if imported is None and mined is None:
        raise UsageError(f"{page['repository']} has not been mined into this database; `prchain status` lists what has")
    if imported is not None:
        git = GitRepository.open(Path(imported[0]))
    elif mined is not None:
        git = open_mined(mined.location, mirrors, mined.host, mined.full_name)
    patches = [git.patch_text(stage["base_sha"], stage["landed_sha"]) for stage in page["stages"]]
    for stage, patch in zip(page["stages"], patches, strict=True):
        stage.update(patch_fields("reference", patch))
    return patches


def print_reference(stage: Mapping[str, Any], patch: bytes) -> None:
    """Print a stage's reference patch below a heading, which git and patch(1) pass over."""
    say()
    say(f"reference of stage {stage['position']}, #{stage['number']}:")
    say_content(patch)
