"""Readings by hand: which windows are read, what the leak check says of the words, and the figures of the rows."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import insert

from research.prm_replays.__main__ import main
from research.prm_replays.references import References
from research.prm_replays.selection import Instance, cut, selection
from research.prm_replays.table import REPLAYS, read_table, stored_readings
from sql.store import Store
from sql.tables import PrmFinding, PrmWindow
from tests.miner.gitworld import World
from tests.research.test_prm_windows import answer, called, read, turn
from trajectories.agents.guidance.schedule import asked_after
from trajectories.agents.guidance.settings import Schedule
from trajectories.agents.guidance.window import stage_entries

NAME = "0123456789abcdef"
REPOSITORY = "shop/till"


def trajectory(name: str = NAME, instance: str = "shop__till-7") -> Any:
    more = [it for at in range(13, 30) for it in (turn(at, f"cat {at}.py"), answer(at, f"shown {at}"))]
    return replace(read(called(*more), name), instance=instance)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    """A mirror with the landing of pull request 7."""
    world = World(tmp_path / "mirrors" / "shop+till")
    world.commit("main", {"till/sum.py": "def total(items):\n    return 0\n"})
    world.commit(
        "main",
        {"till/sum.py": "def total(items):\n    return add_all_things(items)\n"},
        "Sum what there is (#7)",
    )
    world.save()
    return tmp_path / "mirrors"


def test_an_instance_is_of_a_pull_request() -> None:
    assert Instance.of("pylint-dev__astroid-1333") == Instance("pylint-dev/astroid", 1333)
    assert Instance.of("local") is None


def test_windows_are_whole_one_of_a_trajectory_and_two_of_an_instance() -> None:
    some = [trajectory(name) for name in "abcd"]
    chosen = selection(some, [REPOSITORY])
    assert len(chosen) == 2
    assert all(len(window.steps) == 8 for _, window in chosen.values())
    assert chosen == selection(some[::-1], [REPOSITORY])
    assert selection(some, ["an/other"]) == {}


def test_a_cut_trajectory_has_one_window() -> None:
    ((whole, window),) = selection([trajectory()], [REPOSITORY]).values()
    entries = stage_entries(cut(whole, window).entries, 1)
    assert asked_after(entries, Schedule.EVERY, 8) == [8]
    assert [it.ordinal for it in cut(whole, window).entries] == list(range(len(cut(whole, window).entries)))


def test_words_leak_what_only_the_reference_has(mirrors: Path) -> None:
    references, told = References(mirrors), trajectory()
    assert [it.evidence for it in references.leaks(told, 8, "Call `add_all_things` here.")] == ["add_all_things"]
    assert references.leaks(told, 8, "Look at what the call gives.") == []


def test_stored_readings_become_rows_without_text(mirrors: Path, tmp_path: Path) -> None:
    chosen = selection([trajectory()], [REPOSITORY])
    store = stored(tmp_path, chosen)
    (row,) = stored_readings(store, chosen, References(mirrors), {("D", NAME): ("4", "1")})
    ((_, window),) = chosen.values()
    assert (row.variant, row.trajectory, row.last_step) == ("D", NAME, window.last)
    assert (row.suboptimal, row.categories, row.detectors, row.unquoted) == ("true", "hallucination", "seen-lines", 1)
    assert (row.leaks, row.usd, row.score, row.unjustified) == ("1", 0.5, "4", "1")


def test_the_committed_rows_give_the_figures_of_the_docs() -> None:
    result = run()
    assert result.exit_code == 0
    assert len(read_table(REPLAYS)) == 90
    docs = (Path(__file__).parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    for line in result.output.split("\n\n")[0].splitlines()[1:]:
        assert "| " + " | ".join(re.split(r"\s{2,}", line.strip())) + " |" in docs


def test_bad_rows_end_with_code_1(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("variant\nD\n")
    result = run("--rows", rows)
    assert result.exit_code == 1 and "cannot be read" in result.output
    assert run("--write-db", tmp_path / "x.db").exit_code == 1


def stored(folder: Path, chosen: Any) -> Path:
    from research.prm_windows.database import write_database

    file = folder / "real.db"
    write_database([cut(*one) for one in chosen.values()], file, folder)
    window: dict[str, Any] = dict.fromkeys(("taxonomy_hash", "recommended_action", "fault", "tokens_in", "tokens_out"))
    window |= {"id": "w", "trajectory_id": NAME, "replay": "r", "position": 1, "attempt": 1, "subject": f"{NAME}/1"}
    window |= {"first_step": 1, "last_step": 8, "variant": "D", "settings": {}, "model": "m", "prompt_hash": "h"}
    window |= {"status": "on_track", "suboptimal": True, "guidance": "Call `add_all_things`.", "sent": False}
    window |= {"why_not": "replay", "leaks": [], "usd": 0.5, "seconds": 1.0}
    finding = {"window_id": "w", "evidence": "e", "step": 1, "recovery": "Look.", "kept": True, "why": None}
    found = [
        finding | {"ordinal": 0, "category": "hallucination", "found_by": "model"},
        finding | {"ordinal": 1, "category": "step_repetition", "found_by": "model", "kept": False, "why": "unquoted"},
        finding | {"ordinal": 2, "category": "seen-lines", "found_by": "seen-lines"},
    ]
    with closing(Store.open(str(file))) as store, store.transaction() as tx:
        tx.connection.execute(insert(PrmWindow), [window])
        tx.connection.execute(insert(PrmFinding), found)
    return file
