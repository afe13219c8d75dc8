"""Runs one `prchain` command line and writes down the most memory that its Python process held.

python -m research.bench.child PEAK_FILE mine repos.txt --source git
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

from prchain.cli import run


def peak_bytes() -> int:
    """The most memory that this process was in since it started; its git children are not in it.

    `getrusage` would do, but Linux counts into it what the parent held when it forked, so /proc goes first.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        status = ""
    if match := re.search(r"^VmHWM:\s*(\d+) kB$", status, re.M):
        return int(match[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    code = run(sys.argv[2:])
    Path(sys.argv[1]).write_text(str(peak_bytes()), encoding="ascii")
    sys.exit(code)
