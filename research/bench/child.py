"""Runs one `prchain` command line and writes the peak memory of its Python process into a file.

python -m research.bench.child PEAK_FILE mine repos.txt --source git
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

from prchain.cli import run


def peak_bytes() -> int:
    """The peak memory of this process since it started, without its git children.

    /proc is read first: on Linux, `getrusage` also counts the memory of the parent at the fork.
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
