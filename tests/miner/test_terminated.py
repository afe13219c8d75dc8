"""A real `prchain mine` that SIGTERM or Ctrl-C ends, for it alone, while git works in a thread."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sql.store import Store
from sql.tables import MineRun

ROOT = Path(__file__).parents[2]

MAIN = """
import signal
from prchain.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without it
main()
"""


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and whose parent has not asked how does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_of_the_miner_with_one_line_and_no_pull_request(
    tmp_path: Path, sign: signal.Signals
) -> None:
    begun = tmp_path / "begun"
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(
        f'#!/bin/sh\ncase "$*" in *for-each-ref*|*rev-list*|*\\ log\\ *) echo $$ >> {begun}; exec sleep 60;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    subprocess.run(["git", "init", "-q", str(tmp_path / "there")], check=True)
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, cwd=tmp_path / "there", check=True)
    (tmp_path / "repos.txt").write_text(f"o/r = {tmp_path / 'there'}\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{git.parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-c", MAIN, "mine", "repos.txt", "--source", "git"]
    with (
        (tmp_path / "said").open("w") as said,
        subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, stdout=-1, stderr=said) as process,
    ):
        deadline = time.monotonic() + 30
        while not begun.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert begun.exists(), (tmp_path / "said").read_text()
        process.send_signal(sign)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            # Python drops the exception of a signal that comes while a finalizer runs; people press Ctrl-C again.
            process.send_signal(sign)
            process.wait(timeout=20)
    err = (tmp_path / "said").read_text()
    assert process.returncode == 128 + sign
    pids = [int(pid) for pid in begun.read_text().split()]
    assert pids and not [pid for pid in pids if runs(pid)], "git has ended before the run has"
    assert len([line for line in err.splitlines() if line.startswith("prchain: ")]) == 1
    with closing(Store.open(str(tmp_path / "data" / "prchain.db"), create=False)) as store, store.reading() as tx:
        assert [row[0] for row in tx.rows(MineRun, "outcome")] == ["running"], "the next run calls it interrupted"
