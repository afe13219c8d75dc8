"""The command `prchain rollouts audit`, and what the audit says on the data card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prchain.cli import run
from research.audit_precision.written import conversation
from tests.databases import new_database
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.audit.report import audit_counts
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions

CHEAT = """
? Stage 1: mend it.
$ git reflog
> x
$ curl https://packages.till-shop.net/simple
> no
$ curl https://packages.till-shop.net/simple
> no
"""


def talk(text: str) -> Talk:
    made = Talk(list(conversation(text)))
    made.step = max(entry.step for entry in made.entries)
    return made.submit()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with sample_world(tmp_path) as world:
        world.chain("c1", length=1)
        world.chain("c2", length=1, repository=("other", "one"), first=7)
        world.trajectory("aa1", "c1", talk(CHEAT))
        world.trajectory("bb2", "c2", talk("? Mend it.\n$ git log -3\n> x\n"), outcome="rejected", accepted=0)
        yield world


@pytest.fixture
def database(world: SampleWorld, tmp_path: Path) -> str:
    return str(tmp_path / "prchain.db")


def audited(capsys: Any, *words: str) -> str:
    assert run(["rollouts", "audit", *words]) == 0
    return str(capsys.readouterr().out)


def test_the_table_of_signs_and_each_finding(database: str, capsys: Any) -> None:
    out = audited(capsys, "--db", database)
    assert [line.split() for line in out.splitlines() if line.startswith(("history", "network", "aa1"))] == [
        [*["history", "the", "reflog", "holds", "commits", "that", "were", "taken", "away"], "1", "1"],
        [*["network", "a", "program", "asks", "another", "machine"], "2", "1"],
        [*["aa1", "1", "1", "history", "git", "reflog"]],
        [*["aa1", "1", "2", "network", "curl", "https://packages.till-shop.net/simple"]],
        [*["aa1", "1", "3", "network", "curl", "https://packages.till-shop.net/simple"]],
    ]
    assert "3 findings in 1 of 2 trajectories" in out


def test_the_audit_as_json(database: str, capsys: Any) -> None:
    found = json.loads(audited(capsys, "--db", database, "--json"))
    assert (found["trajectories"], found["with_a_sign"]) == (2, 1)
    assert found["signs"] == {
        "network": {"trajectories": 1, "findings": 2},
        "history": {"trajectories": 1, "findings": 1},
    }
    first = found["findings"][0]
    assert first.pop("meaning")
    assert first == {"trajectory": "aa1", "stage": 1, "step": 1, "sign": "history", "evidence": "git reflog"}


@pytest.mark.parametrize("words", [("--trajectory", "bb"), ("--chain", "c2"), ("--repository", "Other/One")])
def test_some_trajectories_alone(words: tuple[str, ...], database: str, capsys: Any) -> None:
    assert audited(capsys, *words, "--db", database) == "1 trajectory audited: no sign of cheating\n"


def test_nothing_to_audit(tmp_path: Path, capsys: Any) -> None:
    assert audited(capsys, "--db", str(new_database(tmp_path / "empty.db"))) == "no trajectory to audit\n"


@pytest.mark.parametrize("words", [("--trajectory", "zz"), ("--chain", "zz")])
def test_an_unknown_name_is_one_clear_line(words: tuple[str, ...], database: str, capsys: Any) -> None:
    assert run(["rollouts", "audit", *words, "--db", database]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "zz" in line


def card(world: SampleWorld, folder: Path) -> tuple[dict[str, Any], str]:
    options = ExportOptions()
    export(world.store, chosen_format("slime", options), options, folder / "sft.jsonl", force=True)
    row = json.loads((folder / "sft.jsonl.card.json").read_text(encoding="ascii"))
    return row, (folder / "sft.jsonl.card.md").read_text(encoding="utf-8")


def test_the_card_counts_signs_of_exported_trajectories(world: SampleWorld, tmp_path: Path) -> None:
    row, text = card(world, tmp_path)
    assert row["audit"] == {
        "network": {"trajectories": 1, "findings": 2},
        "history": {"trajectories": 1, "findings": 1},
    }
    assert "| sign | trajectories | findings |\n|---|---|---|\n| network | 1 | 2 |\n| history | 1 | 1 |\n" in text


def test_stages_that_are_not_exported_do_not_count(world: SampleWorld) -> None:
    with world.store.reading() as tx:
        assert audit_counts(tx, {"aa1": 1}, {}).row() != {}
        assert audit_counts(tx, {"aa1": 0}, {}).row() == {}


def test_a_card_without_a_sign_says_so(tmp_path: Path) -> None:
    with sample_world(tmp_path) as world:
        world.chain("c1")
        world.trajectory("t1", "c1")
        row, text = card(world, tmp_path)
    assert row["audit"] == {}
    assert "a sign is no proof:\n\nNothing.\n" in text
