"""Names of SWE-bench instances: tasks are exported under them, and predictions refer to them."""

from __future__ import annotations

import re


def instance_id(repository: str, chain_id: str, position: int) -> str:
    """``owner__name-<chain>__s<position>``; the harness names containers and folders by it, so no other characters."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"{repository.replace('/', '__')}-{chain_id[:16]}__s{position}")
