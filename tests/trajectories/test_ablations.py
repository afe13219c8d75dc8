"""Ablations of curation are told apart: in exports and their cards, in studies, and by the gates' rates (P2T, section
5.4 and appendix H)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from sqlalchemy import update

from prchain.cli import run
from prchain.view.curated import curated_view
from prchain.view.options import ViewOptions
from sql.tables import CurationCandidate, CurationWindow, Trajectory, Verdict
from tests.trajectories.curationworld import curation_world
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.curation.windows.options import WindowOptions
from trajectories.curation.windows.settings import has_settings, settings_words
from trajectories.studies.curation.recipes import recipe_attempts
from trajectories.studies.statistics.groups import grouped_stats

FULL = {"est": "each", "pick": "model"}
"""P2T's own settings, of which these are not our defaults."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[SampleWorld]:
    monkeypatch.chdir(tmp_path)
    with sample_world(tmp_path, url=database_url) as samples:
        samples.chain("one", length=1)
        samples.trajectory("plain", "one", talk(5))
        add(samples, "full", 3, FULL)
        add(samples, "random", 4, {**FULL, "commit": "random"})
        add(samples, "loose", 6, {**FULL, "ground": False})
        yield samples


def talk(steps: int) -> Talk:
    said = Talk().system().query(1)
    for number in range(steps - 1):
        said.turn("", ("bash", {"command": f"cat {number}"}), tokens_out=10).observation("ok")
    return said.turn("Done.", ("submit", {}), tokens_out=10).observation("Submitted.")


def add(world: SampleWorld, name: str, steps: int, settings: dict[str, Any]) -> None:
    """A curated trajectory of the same chain whose windows had these settings; all end with the same tree."""
    world.trajectory(name, "one", talk(steps), scaffold="curated", trees=["same"])
    with world.store.transaction() as tx:
        decided = {"curation": {"options": settings, "graph": "g"}}
        tx.connection.execute(update(Trajectory).where(Trajectory.id == name).values(decided_by=decided))
        tx.connection.execute(update(Verdict).values(tests="passed"))


def add_window(world: SampleWorld, name: str, chosen: int, how: str, *candidates: dict[str, Any]) -> None:
    """The trajectory's one window."""
    key = {"trajectory_id": name, "position": 1}
    window = {"number": 1, "graph_id": "g", "step": 0, "frontier": ["f"], "established": [], "waiting": []}
    row = {"floor": 0.5, "chosen": chosen, "how": how, "committed": 1, "leftovers": 0, "seconds": 0.0}
    plain = {"outcome": "open", "reason": None, "place": None, "target": None, "grounded": None, "effectiveness": 0.7}
    texts: dict[str, Any] = {
        "rewrite": None,
        "faults": [],
        "entries": [],
        "notes": [],
        "leftovers": [],
        "tree": None,
        "steps": 2,
    }
    steps = [{"progress": share, "counted": [], "premature": []} for share in (0.25, 0.45)]
    numbers = {"length": 9, "verifier_calls": 0, "usd": 0.0, "seconds": 0.0, "window_number": 1, "progress": steps}
    with world.store.transaction() as tx:
        tx.upsert(CurationWindow, [{**key, **window, **row}])
        found = [
            {**key, **plain, **texts, **numbers, "seed": 0, **it, "number": at} for at, it in enumerate(candidates)
        ]
        tx.upsert(CurationCandidate, found)


def fault(*rules: str) -> dict[str, Any]:
    outcome = "malformed" if rules[0].startswith("C") else "ungrounded"
    return {"outcome": outcome, "grounded": None if outcome == "malformed" else False, "faults": [
        {"rule": rule, "words": "w"} for rule in rules
    ]}  # fmt: skip


def exported(world: SampleWorld, scaffold: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    command = ["export", "--out", "sft.jsonl", "--force", "--scaffold", scaffold, "--db", str(world.store.url)]
    assert run(command) == 0
    rows = [json.loads(line)["metadata"] for line in Path("sft.jsonl").read_text(encoding="utf-8").splitlines()]
    return rows, json.loads(Path("sft.jsonl.card.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("scaffold", "wanted"),
    [
        ("curated:commit=shortest,ground=on", "full"),
        ("curated:commit=random", "random"),
        ("curated:ground=off, est=each", "loose"),
    ],
)
def test_an_export_takes_one_ablation_and_says_which(world: SampleWorld, scaffold: str, wanted: str) -> None:
    [row], card = exported(world, scaffold)
    words = {"full": "est=each,pick=model", "random": "commit=random,est=each,pick=model"}
    words["loose"] = "est=each,ground=off,pick=model"
    assert (row["trajectory_id"], row["windows"]) == (wanted, words[wanted])
    assert [it["windows"] for it in card["settings"]] == [words[wanted]]
    assert card["options"]["windows"] == settings_words(dict(card_settings(scaffold)))
    assert f"| {words[wanted]} | 1 |" in Path("sft.jsonl.card.md").read_text(encoding="utf-8")


def card_settings(scaffold: str) -> Iterator[tuple[str, Any]]:
    for word in scaffold.partition(":")[2].replace(" ", "").split(","):
        key, _, value = word.partition("=")
        yield key, {"on": True, "off": False}.get(value, value)


def test_plain_rollouts_beside_one_ablation_have_no_windows(world: SampleWorld) -> None:
    rows, _ = exported(world, "react,curated:commit=random")
    assert {row["trajectory_id"]: row["windows"] for row in rows} == {
        "plain": None,
        "random": "commit=random,est=each,pick=model",
    }


@pytest.mark.parametrize(
    ("scaffold", "words"),
    [
        ("react:commit=random", "only curated has settings, as in curated:commit=random"),
        ("commit=random", "only curated has settings"),
        ("curated:comit=random", "'comit' is no key; did you mean commit?"),
        ("curated:commit=any", "'any' is not one of 'shortest', 'random', 'tied'"),
        ("curated:commit=tied,commit=random", "commit is given twice"),
    ],
)
def test_settings_that_nothing_has_are_refused(
    world: SampleWorld, scaffold: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--out", "sft.jsonl", "--scaffold", scaffold, "--db", str(world.store.url)]) == 2
    assert words in capsys.readouterr().err
    assert not Path("sft.jsonl").exists()


def test_settings_that_no_trajectory_has_make_no_file(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", "--out", "sft.jsonl", "--scaffold", "curated:window=3", "--db", str(world.store.url)]
    assert run([*command]) == 1
    assert "no trajectory was done that fits --scaffold" in " ".join(capsys.readouterr().err.split()).replace(
        "kept", "done"
    )


def test_a_value_at_its_default_is_had_by_what_does_not_store_it() -> None:
    stored = WindowOptions(commit="random", ground=False).chosen  # type: ignore[arg-type]
    assert settings_words(stored) == "commit=random,ground=off" and settings_words({}) == "default"
    assert has_settings(stored, {"ground": False, "pick": "rule", "floor": 0.5})
    assert not has_settings(stored, {"commit": "shortest"}) and has_settings({}, {"commit": "shortest"})


def test_the_study_has_a_line_for_each_ablation_and_the_rates_of_its_gates(
    world: SampleWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_seed = {"place": 1, "target": "f"}
    add_window(
        world, "full", 1, "floor", {}, {**on_seed, "grounded": True}, {**on_seed, **fault("Ents", "Ents")},
        {**on_seed, **fault("J1", "J4")}, {**on_seed, **fault("C5")}, {"outcome": "no_place"}, {"outcome": "no_reply"},
    )  # fmt: skip
    add_window(world, "random", 0, "random", {}, {**on_seed, "grounded": True})
    add_window(world, "loose", 1, "fallback", {}, on_seed)
    command = ["curate", "study", "windows", "--db", str(world.store.url)]
    assert run([*command, "--out", str(tmp_path / "study")]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "1: agent-1, windows: commit=random,est=each,pick=model\n" in said
    assert "2: agent-1, windows: est=each,ground=off,pick=model\n" in said
    assert "3: agent-1, windows: est=each,pick=model\n" in said
    table = [line.split() for line in said.splitlines()]
    sizes = {tuple(line[:5]): line[5:] for line in table if len(line) == 7}
    for tokens, start in ((40, ("1", "1", "1", "4.0", "40")), (30, ("3", "1", "1", "3.0", "30"))):
        length, effectiveness = sizes[start]
        assert int(length.replace(",", "")) > tokens and effectiveness == "0.25", "what it was told counts, too"
    assert ["1", "1", "0", "0", "1", "0", "0", "(0.0%)"] in table
    assert ["3", "1", "1", "0", "0", "0", "1", "(100.0%)"] in table
    assert ["3", "4", "1", "1", "(33.3%)", "1", "(50.0%)", "1"] in table
    assert ["2", "1", "0", "-", "-", "0"] in table
    assert "rules: C5 1, Ents 1, J1 1, J4 1" in said
    study = json.loads((tmp_path / "study" / "windows.json").read_text(encoding="utf-8"))
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == study
    found = list(csv.DictReader((tmp_path / "study" / "windows.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["settings"] for row in found] == [row["settings"] for row in study["settings"]]
    assert found[2]["code_share"] == "0.3333" and found[1]["judge_share"] == ""
    for name in ("steps", "gates"):
        ElementTree.parse(tmp_path / "study" / f"windows-{name}.svg")


def test_other_figures_tell_ablations_apart(world: SampleWorld) -> None:
    with world.store.reading() as tx:
        settings = {it.setting for it in recipe_attempts(tx).attempts if it.curated}
        groups = [row["group"] for row in grouped_stats(tx, "option")["groups"]]
    assert len(settings) == 3
    assert len(groups) == 4 and any("windows=commit=random,est=each,pick=model" in group for group in groups)


def test_the_list_names_the_settings_in_which_trajectories_differ(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["curate", "list", "--db", str(world.store.url)]) == 0
    said = capsys.readouterr().out
    for words in ("est=each,pick=model", "est=each,ground=off,pick=model", "commit=random,est=each,pick=model"):
        assert f"windows {words}\n" in said
    assert "plain" not in said


def test_the_page_of_a_trajectory_tells_the_settings_that_it_was_grown_with(world: SampleWorld) -> None:
    add_window(world, "random", 0, "random", {}, {"place": 1, "target": "f", "grounded": True})
    told = dict(curated_view(world.store, "random", ViewOptions()).options)
    assert (told["commit"], told["pick"], told["stride"]) == ("random", "model", "5")


def test_a_run_of_ours_is_counted_as_it_was_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with curation_world(tmp_path) as made:
        name = made.curate()
        assert run(["curate", "study", "windows", "--json", "--db", str(made.store.url)]) == 0
        [line] = json.loads(capsys.readouterr().out)["settings"]
        assert run(["curate", "show", name, "--json", "--db", str(made.store.url)]) == 0
        page = json.loads(capsys.readouterr().out)
    assert line["effectiveness"] == pytest.approx(page["effectiveness"], abs=1e-4)
    assert line["windows"] == len(page["windows"]) and line["settings"] == page["settings"] == "default"
    chosen = [window["candidates"][window["chosen"]] for window in page["windows"]]
    assert line["variants"] == sum(it["kind"] == "variant" for it in chosen) > 0
    variants = [it for window in page["windows"] for it in window["candidates"] if it["kind"] == "variant"]
    assert line["grounded"] == sum(it["grounded"] is True for it in variants)
