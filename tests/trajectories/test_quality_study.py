"""The study of curated trajectories beside plain rollouts."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sqlalchemy import update

from prchain.cli import run
from sql.tables import Trajectory
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.curation.graphs.svg import spread_svg
from trajectories.export.reading import response_lengths
from trajectories.studies.comparison import cliffs_delta
from trajectories.studies.curation.quality import quality_pairs, quality_study


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[SampleWorld]:
    monkeypatch.chdir(tmp_path)
    with sample_world(tmp_path, url=database_url) as samples:
        yield samples


def views(count: int, again: int = 0, tokens: int | None = 100) -> Talk:
    """A trajectory that looks at so many files, and at the last of them again and again."""
    talk = Talk().system().query(1)
    for number in range(count):
        talk.turn("", ("bash", {"command": f"cat src/{number}.py"}), tokens_out=tokens).observation("one line\n")
    for _ in range(again):
        talk.turn("", ("bash", {"command": f"cat /testbed/src/{count - 1}.py"}), tokens_out=tokens)
        talk.observation("one line\n")
    return talk


def add_pair(world: SampleWorld, chain: str, plain: Talk, curated: Talk) -> None:
    world.chain(chain, length=1)
    world.trajectory(f"p{chain}", chain, plain)
    world.trajectory(f"c{chain}", chain, curated, scaffold="curated")


def studied(world: SampleWorld, capsys: pytest.CaptureFixture[str], database_url: str, *arguments: str) -> str:
    code = run(["curate", "study", "quality", "--db", database_url, *arguments])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def test_pairs_are_compared_in_words_and_in_files(
    world: SampleWorld, tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scipy")
    for number in range(1, 5):
        add_pair(world, f"chain{number}", views(2 * number, 2), views(number + 1, tokens=50))
    said = studied(world, capsys, database_url, "--out", "study")
    assert said.startswith("4 pairs; accepted: 4 curated in 4 chains, 4 plain in 4 chains\n")
    assert max(map(len, said.splitlines())) <= 80
    table = {line[:15].strip(): line[15:].split() for line in said.splitlines()[1:5]}
    assert table["steps"][:4] == ["4", "7.0", "3.5", "-50.0%"]
    assert table["redundant views"][1:3] == ["32.1%", "0.0%"] and table["redundant views"][-1] == "1.00"
    assert table["response tokens"][1:3] == ["700.0", "175.0"]
    folder = tmp_path / "study"
    study = json.loads((folder / "quality.json").read_text())
    assert study == json.loads(studied(world, capsys, database_url, "--json"))
    steps = study["groups"][0]["measures"]["steps"]
    assert (steps["pairs"], steps["shift"], steps["wilcoxon_p"]) == (4, -50, 0.125)
    assert steps["cliffs_delta"] == cliffs_delta([4, 6, 8, 10], [2, 3, 4, 5])
    rows = list(csv.DictReader((folder / "quality.csv").read_text().splitlines()))
    assert [row["chain"] for row in rows] == ["chain1", "chain2", "chain3", "chain4"]
    assert (rows[0]["plain_id"], rows[0]["curated_id"]) == ("pchain1", "cchain1")
    assert (rows[0]["plain_views"], rows[0]["plain_redundant"], rows[0]["curated_redundant"]) == ("4", "2", "0")
    for name in ("steps", "redundant_share"):
        root = ElementTree.parse(folder / f"quality-{name}.svg").getroot()
        assert sum(element.tag.endswith("polygon") for element in root.iter()) == 2


def test_of_each_kind_the_first_accepted_sample_of_a_chain_counts(world: SampleWorld) -> None:
    world.chain("one", length=1)
    world.trajectory("p0", "one", views(9), sample=0, outcome="rejected")
    world.trajectory("p2", "one", views(3), sample=2)
    world.trajectory("p1", "one", views(4), sample=1)
    world.trajectory("c1", "one", views(1), sample=1, scaffold="curated")
    world.trajectory("c0", "one", views(2), sample=0, scaffold="curated")
    world.chain("two", length=2, first=5)
    world.trajectory("p3", "two", views(3), outcome="accepted_prefix")
    world.trajectory("c3", "two", views(3), scaffold="curated")
    found = quality_pairs(world.store)
    assert [(it.plain.id, it.curated.id, it.plain.steps) for it in found.pairs] == [("p1", "c0", 4)]
    assert found.accepted == {"plain": 2, "curated": 3, "guided": 0}
    assert found.chains == {"plain": 1, "curated": 2, "guided": 0}
    assert quality_pairs(world.store, "SHOP/till").pairs == found.pairs
    assert quality_pairs(world.store, "shop/other").pairs == ()


def test_choices_of_settings_and_models_are_compared_each_for_itself(
    world: SampleWorld, tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """P2T's ablations (section 5.4) have settings of their own, and figure 2 compares under one teacher."""
    pytest.importorskip("scipy")
    add_pair(world, "one", views(8), views(4))
    world.trajectory("random", "one", views(6), scaffold="curated", sample=1)
    world.trajectory("watched", "one", views(5), scaffold="curated", sample=2, observers=["prm:D"])
    world.trajectory("other", "one", views(2), scaffold="curated", sample=3, model="agent-2")
    with world.store.transaction() as tx:
        decided = {"curation": {"options": {"commit": "random"}}}
        tx.connection.execute(update(Trajectory).where(Trajectory.id == "random").values(decided_by=decided))
    found = quality_pairs(world.store)
    told = [(it.settings, it.curated.id) for it in found.pairs]
    assert told == [("commit=random", "random"), ("default", "cone"), ("default guided", "watched")]
    groups = quality_study(found)["groups"]
    assert [it["measures"]["steps"]["curated"] for it in groups] == [6, 4, 5]
    said = studied(world, capsys, database_url, "--out", "study")
    assert said.startswith("3 pairs; ") and "agent-1, windows commit=random\n" in said
    assert len(list((tmp_path / "study").glob("quality-steps-*.svg"))) == 3


def test_a_guided_rollout_is_no_plain_one(
    world: SampleWorld, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.chain("one", length=1)
    world.trajectory("guided", "one", views(3), observers=["prm:D"])
    world.trajectory("curated", "one", views(3), scaffold="curated")
    assert quality_pairs(world.store).pairs == ()
    assert "0 plain in 0 chains, 1 guided in 1 chain\n" in studied(world, capsys, database_url)


def test_a_measure_that_one_of_a_pair_lacks_leaves_the_pair_out_of_that_measure(world: SampleWorld) -> None:
    add_pair(world, "one", Talk().system().query(1).turn("Done.", tokens_out=7), views(1, tokens=None))
    measures = quality_study(quality_pairs(world.store))["groups"][0]["measures"]
    assert [it["pairs"] for it in measures.values()] == [1, 0, 0]


def test_the_turn_that_a_curator_wrote_counts_by_its_estimate(world: SampleWorld) -> None:
    def curated(estimate: int) -> Talk:
        marked = {"curated": {"window": 1, "candidate": 2}, "estimate": {"in": 90, "out": estimate}}
        return views(2, tokens=10).turn("", ("submit", {}), details=marked)

    add_pair(world, "one", views(3, tokens=20), curated(7))
    (pair,) = quality_pairs(world.store).pairs
    assert (pair.plain.response_tokens, pair.curated.response_tokens) == (60, 27)
    world.trajectory("c2", "one", curated(5), sample=2, scaffold="curated")
    world.trajectory("c3", "one", views(2, tokens=None), sample=3, scaffold="curated")
    with world.store.reading() as tx:
        lengths = response_lengths(tx)
    assert {name: lengths[name].tokens for name in ("cone", "c2", "c3")} == {"cone": 27, "c2": 25, "c3": None}


@pytest.mark.parametrize("length", [0, 1])
def test_few_pairs_are_said_and_have_no_p_value_and_need_no_scipy(
    world: SampleWorld,
    tmp_path: Path,
    database_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    length: int,
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    world.chain("lonely")
    world.trajectory("p9", "lonely")
    if length:
        add_pair(world, "one", views(4), views(2))
    said = studied(world, capsys, database_url, "--out", "study")
    if length:
        assert said.startswith("1 pair; accepted: 1 curated in 1 chain, 2 plain in 2 chains\n")
        assert "-50.0%" in said and "1 pair has no p value" in said
    else:
        assert said.startswith("0 pairs; accepted: 0 curated in 0 chains, 1 plain in 1 chain\n")
    row = json.loads(studied(world, capsys, database_url, "--json"))
    assert row["pairs"] == length
    assert len(row["groups"]) == length
    for group in row["groups"]:
        assert {it["wilcoxon_p"] for it in group["measures"].values()} == {None}
        assert {it["mann_whitney_p"] for it in group["measures"].values()} == {None}
    assert len((tmp_path / "study" / "quality.csv").read_text().splitlines()) == 1 + length
    for path in (tmp_path / "study").glob("*.svg"):
        ElementTree.parse(path)


def test_without_scipy_several_pairs_are_one_line_that_says_what_to_install(
    world: SampleWorld, database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    for number in range(2):
        add_pair(world, f"chain{number}", views(3 + number), views(2))
    assert run(["curate", "study", "quality", "--db", database_url]) == 2
    err = capsys.readouterr().err
    assert "[studies]" in err and len(err.strip().splitlines()) == 1


def test_a_drawing_of_spreads_escapes_its_texts_and_takes_any_values() -> None:
    drawing = spread_svg("<a> & \x1b[2J", {"<script>": [0, 0, 5.5], "one": [3], "none": []}, " %")
    root = ElementTree.fromstring(drawing)
    assert "<script" not in drawing and "\x1b" not in drawing
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "<script>: mean 1.833 %" in texts and "none: none" in texts and "5.5 %" in texts
    ElementTree.fromstring(spread_svg("", {}, ""))
    ElementTree.fromstring(spread_svg("", {"zero": [0.0, 0.0]}, ""))
