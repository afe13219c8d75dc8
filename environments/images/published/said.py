"""What the publisher of an imported task says of its environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from environments.images.manifests import HASH_LENGTH, image_name
from environments.images.published.commands import ONLY_THERE
from prchain.core.git.named_paths import named_paths
from sql.store import Transaction
from sql.tables import ImportedTask

WORKDIR = "/testbed"
"""Where images have the repository, if nothing else is said."""

RULES = 3
"""Raised whenever more is taken from an image than before: one that was made by earlier rules is not used again."""

_MOST_NAMES = 1000
_MOST_TEXT = 30_000
"""Paths of a patch, and their length. Longer expressions are more than grep is made for."""

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
    """The paths that its reference and its test patch name (`changed_paths`)."""

    @property
    def has_own_tests(self) -> bool:
        """Whether its tests run in its image, and nowhere else."""
        return self.log_parser in ONLY_THERE

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
    """The paths that patches name, sorted; of a long one the first: a copy of it names them all.

    Empty where one of them, which is not blank, names none: what it changes cannot be looked for.
    """
    named = [_first(named_paths(patch)) for patch in patches if patch.strip()]
    return tuple(sorted(set[str]().union(*named))) if all(named) else ()


def _first(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    room = _MOST_TEXT
    for path in paths:
        if path not in found:
            found.add(path)
            room -= len(path)
        if len(found) == _MOST_NAMES or room < 0:
            break
    return found


def read_published(tx: Transaction, chain_id: str) -> Published | None:
    """What is said of the stages of an imported chain; None where no image is named, and for any other chain."""
    columns = ("image", "base_commit", "workdir", "test_command", "log_parser", "patch", "test_patch")
    row = next(iter(tx.rows(ImportedTask, *columns, chain_id=chain_id)), None)
    if row is None or row[0] is None:
        return None
    image, commit, workdir, commands, parser, *patches = row
    return Published(image, commit, workdir or WORKDIR, tuple(commands), parser, changed_paths(*patches))
