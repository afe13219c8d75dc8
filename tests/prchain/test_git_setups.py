"""What is read of a repository depends on its objects and refs alone, however git is set up on the machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.prchain.gitsetups import SETUPS, Machine, Setup, read


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("machine"))
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def plain(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine.set_up(Setup(), monkeypatch)
        return read(machine, tmp_path_factory.mktemp("plain"))


def test_the_plain_reading_is_a_whole_one(plain: dict[str, Any]) -> None:
    assert (plain["numbers"], plain["landings"].total(), plain["version"]) == ([(1, 2, 3)], 3, "1.2")
    assert b"+    tip_result = " in plain["patches"][0] and b"\nBinary " not in plain["patches"][0]
    assert (plain["ignored"], plain["archive"]["a.py"]) == ([False, False, True], b"1\nours\n3\n")


@pytest.mark.parametrize("name", SETUPS)
def test_issue_38_a_set_up_of_git_changes_no_row_and_no_patch(
    name: str, machine: Machine, plain: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.set_up(SETUPS[name], monkeypatch)
    found = read(machine, tmp_path)
    assert [part for part in plain if found[part] != plain[part]] == []


def test_the_set_ups_are_in_force_for_other_gits(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would show nothing."""
    outputs = []
    for setup in (Setup(), Setup(attributes="* -diff\n"), SETUPS["no file is small"], Setup(info="*.md -diff\n")):
        machine.set_up(setup, monkeypatch)
        command = ["git", "diff", "--numstat", machine.shop.sha(1), machine.shop.sha("main")]
        outputs.append(subprocess.run(command, cwd=machine.shop.path, capture_output=True, check=True).stdout)
    plain, *others = (output.count(b"-\t-\t") for output in outputs)
    assert (plain, others) == (0, [4, 4, 0])
