"""Where pages stand, and which addresses they may lead to. Pure."""

from __future__ import annotations

import re
from hashlib import blake2b

FUNNEL = "index.html"
CHAINS = "chains"
TRAJECTORIES = "trajectories"
COUNTED = "counted"
COMPARE = "compare"
MONEY = "money"
LABELS = "labels"
EXPORT = "export"
ASSETS = "assets"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?(?::[0-9]{1,5})?")
_FULL_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def slug(name: str) -> str:
    """A name as a part of a path: as it is where it is plain, else a digest, which no path climbs out of."""
    if _NAME.fullmatch(name):
        return name
    return f"x-{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=10).hexdigest()}"


def chain_page(chain: str, page: str = FUNNEL) -> str:
    """A page of a chain: its own, ``task.html``, ``proof.html`` or ``compare.html``."""
    return f"{CHAINS}/{slug(chain)}/{page}"


def trajectory_page(trajectory: str, page: str = FUNNEL) -> str:
    """A page of a trajectory: its own, or ``patch.html``."""
    return f"{TRAJECTORIES}/{slug(trajectory)}/{page}"


def forge_link(url: str, host: str, full_name: str) -> str | None:
    """The address of a page of the forge that a repository was mined from; None for anything else, and where the host
    is no forge that others could reach."""
    is_named = _HOST.fullmatch(host) and _FULL_NAME.fullmatch(full_name)
    if not is_named or "." not in host or not url.startswith(f"https://{host}/{full_name}/"):
        return None
    return url if re.fullmatch(r"[\x21-\x7e]+", url) and not set(url) & set("\"'<>\\") else None


def root_of(path: str) -> str:
    """What leads from a page back to the folder of all pages: relative, so that links are the same in files."""
    return "../" * path.count("/")
