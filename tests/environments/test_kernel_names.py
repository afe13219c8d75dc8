"""What the kernel remembers of names that were looked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from environments.sandboxes import kernel_names
from environments.sandboxes.kernel_names import forget_names


def asked(tmp_path: Path, lines: str, file: str, name: str = "abc") -> tuple[bool, str | None]:
    """Whether a group was told to, and what stands in the file by which it is told."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text(lines)
    told = tmp_path / file
    told.parent.mkdir(parents=True)
    told.write_text("")
    (told.parent / "memory.current").write_text("4096\n")
    return forget_names(7, name, tmp_path, tmp_path), told.read_text()


def test_a_group_of_its_own_is_emptied(tmp_path: Path) -> None:
    lines = "5:pids:/docker/abc\n4:cpu,memory:/docker/abc\n0::/docker/abc\n"
    assert asked(tmp_path, lines, "memory/docker/abc/memory.force_empty") == (True, "0")


def test_of_version_2_what_is_used_is_reclaimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(tmp_path, "0::/s.slice/docker-abc.scope\n", "s.slice/docker-abc.scope/memory.reclaim")
    assert found == (True, "4096")
    write, tries = Path.write_text, list[int]()

    def busy(self: Path, text: str) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise BlockingIOError
        return write(self, text)

    monkeypatch.setattr(Path, "write_text", busy)
    assert kernel_names._reclaimed(tmp_path / "s.slice/docker-abc.scope") and len(tries) == kernel_names._TURNS


@pytest.mark.parametrize(
    "lines",
    ["4:memory:/docker/other\n", "4:memory:/docker/../abc\n", "4:pids:/docker/abc\n", "0::/docker/abc\n", "abc"],
)
def test_what_is_not_its_own_group_is_left_alone(tmp_path: Path, lines: str) -> None:
    assert asked(tmp_path, lines, "memory/docker/other/memory.force_empty") == (False, "")


def test_a_group_that_is_not_there_or_not_ours_says_so(tmp_path: Path) -> None:
    assert not forget_names(0, "abc", tmp_path, tmp_path)
    assert not forget_names(os.getpid(), "no such container")
