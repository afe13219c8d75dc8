"""What sandboxes share, by which a run may tell a later one what it saw: files are in memory for all or for none, so
that how long reading one takes tells who read it before, and so it is with names that were looked for."""

from __future__ import annotations

import logging
import shlex

from environments.sandboxes.sandbox import Sandbox, SharesFiles

log = logging.getLogger(__name__)

_LONGEST = 300.0
_READ = (
    "find {folders} \\( -path /proc -o -path /sys -o -path /dev \\) -prune -o -type f -print0 2> /dev/null"
    " | xargs -0 -r -n 500 -P 2 cat > /dev/null 2>&1 || true"
)
"""What commands may not read stays: they cannot tell anything by it either."""


def read_shared(sandbox: Sandbox) -> None:
    """Read all that the sandbox shares with others, so that all of it is in memory. To be called where nothing of a
    tested tree runs there. Raises as `Sandbox.exec`."""
    folders = sandbox.shared if isinstance(sandbox, SharesFiles) else ()
    if not folders:
        return
    done = sandbox.exec(_READ.format(folders=shlex.join(folders)), cwd="/", timeout=_LONGEST)
    if done.exit_code != 0:
        log.warning("not all files of a sandbox were read in %.0f s: how long reading takes may tell more", _LONGEST)


def forget_names(sandbox: Sandbox) -> None:
    """Have nothing left in the kernel of names that were looked for in a sandbox that ends. Never fails."""
    if isinstance(sandbox, SharesFiles):
        sandbox.forget_names()
