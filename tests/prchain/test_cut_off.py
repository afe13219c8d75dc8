from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROCESS = """
import os, sys, threading, time
from prchain.core.processes.cut_off import cut_off, leave_to

def work():
    print("a thread works", flush=True)
    started.set()
    time.sleep(600)

print(os.getpid())
if sys.argv[1:]:
    leave_to("elsewhere", {"ENGINE": "the first"})
    leave_to(sys.argv[1], {"ENGINE": "the last"})
started = threading.Event()
threading.Thread(target=work).start()
started.wait()
print("not flushed yet", end="")
cut_off(130)
"""

HEIR = """
import os, sys, threading
print("", os.getpid(), os.environ["ENGINE"], threading.active_count())
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("heir", ["", "heir"], ids=["nothing is left to do", "an heir"])
def test_a_process_that_is_cut_off_waits_for_no_thread_and_its_heir_takes_its_place(heir: str, tmp_path: Path) -> None:
    (tmp_path / "heir.py").write_text(HEIR)
    command = [sys.executable, "-c", PROCESS, *filter(None, [heir])]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    ended = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=False)
    pid, *lines = ended.stdout.splitlines()
    heard = f" {pid} the last 1" if heir else ""
    assert (ended.returncode, lines, ended.stderr) == (130, ["a thread works", f"not flushed yet{heard}"], "")
