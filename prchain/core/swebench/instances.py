"""Names of SWE-bench instances: tasks are exported under them, and predictions refer to them."""

from __future__ import annotations

import re


def instance_id(repository: str, chain_id: str, position: int) -> str:
    """``owner__name-<chain>__s<position>``; the harness names containers and folders by it, so no other characters."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"{repository.replace('/', '__')}-{chain_id[:16]}__s{position}")


def published_instance(name: str, position: int, stages: int) -> str:
    """The name of a stage of an import: the publisher's, with the stage's place behind it where it has several."""
    return name if stages == 1 else f"{name}__s{position}"
