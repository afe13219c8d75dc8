"""What the publisher of an imported task says of its environment."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from environments.images.manifests import HASH_LENGTH, image_name
from prchain.core.errors import GitError
from prchain.core.git import parse_patch
from sql.store import Transaction
from sql.tables import ImportedTask

WORKDIR = "/testbed"
"""Where images have the repository, if nothing else is said."""

RULES = 2
"""Raised whenever more is taken from an image than before: one that was made by earlier rules is not used again."""

_TAG = "published-"
_CURRENT = f"{_TAG}r{RULES}-"


@dataclass(frozen=True, slots=True)
class Published:
    """An image that a publisher names, and how tests are run in it."""

    image: str
    """As Docker names it."""
    base_commit: str
    """The commit that the task begins on, or the beginning of its name."""
    workdir: str = WORKDIR
    """Where the image has the repository."""
    commands: tuple[str, ...] = ()
    """Lines of shell that run the tests, in `workdir`; empty where the publisher names none."""
    log_parser: str | None = None
    """The publisher's name of what reads their output."""
    changed: tuple[str, ...] = ()
    """The paths that its reference and its test patch change, both names of a renamed file."""

    def image_name(self, repository: str, script: str) -> str:
        """The name of ours for this image as `script` leaves it; it follows from all that decides what it holds."""
        inputs = json.dumps([self.image, self.base_commit, self.workdir, self.changed, script])
        return image_name(repository, _CURRENT + hashlib.sha256(inputs.encode()).hexdigest()[:HASH_LENGTH])


def is_published(name: str) -> bool:
    """Whether a name of an image of ours says that it was made of a publisher's."""
    return name.rpartition(":")[2].startswith(_TAG)


def is_outdated(name: str) -> bool:
    """Whether an image of ours was made of a publisher's by other rules than today's."""
    return is_published(name) and not name.rpartition(":")[2].startswith(_CURRENT)


def changed_paths(*patches: str) -> tuple[str, ...]:
    """The paths that patches change, sorted; those of a patch that cannot be read are left out."""
    found: set[str] = set()
    for patch in patches:
        try:
            files = parse_patch(patch)
        except GitError:
            continue
        found |= {path for file in files for path in (file.path, file.old_path) if path}
    return tuple(sorted(found))


def read_published(tx: Transaction, chain_id: str) -> Published | None:
    """What is said of the one stage of an imported chain; None where no image is named, and for any other chain."""
    columns = ("image", "base_commit", "workdir", "test_command", "log_parser", "patch", "test_patch")
    row = next(iter(tx.rows(ImportedTask, *columns, chain_id=chain_id)), None)
    if row is None or row[0] is None:
        return None
    image, commit, workdir, commands, parser, *patches = row
    return Published(image, commit, workdir or WORKDIR, tuple(commands), parser, changed_paths(*patches))
