"""A process is told from another one with its number, and is gone only when that is certain."""

from __future__ import annotations

import subprocess
from dataclasses import asdict
from typing import Any

from prchain.core.processes.alive import Process, this_process


def test_a_process_is_gone_only_when_that_is_certain() -> None:
    here = this_process()

    def gone(**changed: Any) -> bool:
        return Process(**(asdict(here) | changed)).is_gone

    assert Process.parse(str(here)) == here
    assert not here.is_gone
    assert gone(start="1") and gone(boot="another") and gone(pid=4_000_000)
    assert not gone(host="another", pid=4_000_000)
    assert not gone(namespace="another", pid=4_000_000)
    assert Process.parse("somebody/else") is None


def test_one_that_ended_is_gone_also_where_its_number_is_used_again() -> None:
    ended = subprocess.Popen(["true"])
    was = Process(**(asdict(this_process()) | {"pid": ended.pid, "start": "0"}))
    ended.wait()
    assert was.is_gone
    assert Process(**(asdict(this_process()) | {"start": "0"})).is_gone, "a number that is ours now"


def test_it_fits_its_column_and_what_an_earlier_version_wrote_is_read() -> None:
    here = this_process()
    assert len(str(here)) <= 64
    longer = "/".join([here.host + "x" * (20 - len(here.host)), here.boot + "-0000-0000", here.namespace, "7", "8"])
    parsed = Process.parse(longer)
    assert parsed is not None and parsed.boot == here.boot
