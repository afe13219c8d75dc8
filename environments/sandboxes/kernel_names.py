"""What the kernel remembers of names that were looked for: a file that is not there is found missing in less time when
somebody has looked for it, in any sandbox that stands on the same image. Memory of a control group's own making goes
with `forget_names`; without it such names outlive the sandbox (measured: 4 and 7 microseconds a name)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_TURNS = 5
"""So often the kernel of control groups of version 2 is asked: what was used lately goes the second time."""


def forget_names(pid: int, name: str, groups: Path = _GROUPS, processes: Path = Path("/proc")) -> bool:
    """Have the kernel forget what the control group holds in memory without need in which a process is, names among it;
    `name` is a part of the group's own name. Returns False where that cannot be had: the group is not of this machine,
    or not ours to tell. Raises nothing.

    https://docs.kernel.org/admin-guide/cgroup-v1/memory.html (5.1, force_empty),
    https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.reclaim)
    """
    try:
        lines = (processes / str(pid) / "cgroup").read_text().splitlines()
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if name not in path or ".." in path:
                continue
            if "memory" in controllers.split(","):
                (groups / "memory" / path.lstrip("/") / "memory.force_empty").write_text("0")
                return True
            if not controllers and (groups / path.lstrip("/") / "memory.reclaim").exists():
                return _reclaimed(groups / path.lstrip("/"))
    except (OSError, ValueError):
        return False
    return False


def _reclaimed(group: Path) -> bool:
    for _ in range(_TURNS):
        # Not all of it can be had.
        with suppress(BlockingIOError):
            (group / "memory.reclaim").write_text((group / "memory.current").read_text().strip())
    return True
