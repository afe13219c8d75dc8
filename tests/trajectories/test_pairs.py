"""Two sets of the same chains: which trajectories are paired, what both files hold, what their cards say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from prchain.cli import run
from prchain.core.errors import UsageError
from sql.tables import Trajectory
from tests.trajectories.sampleworld import OVERVIEW, SHORTER, SampleWorld, Talk, long_talk, sample_world
from trajectories.export.export import ExportReport, export, export_to
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.model import EntryKind


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[SampleWorld]:
    with sample_world(tmp_path, url=database_url) as world:
        world.chain("c1")
        yield world


def last_step(talk: Talk, position: int) -> int:
    return max(entry.step for entry in talk.entries if entry.position <= position)


def own_talk(word: str) -> Talk:
    """The long talk with a word of its own in it, so that no two are equal."""
    talk = long_talk()
    talk.entries = [
        replace(it, content=f"{it.content} {word}") if it.kind is EntryKind.TURN else it for it in talk.entries
    ]
    return talk


def prefix(world: SampleWorld, name: str, chain: str = "c1", **fields: Any) -> str:
    return world.trajectory(
        name, chain, own_talk(name), outcome="accepted_prefix", accepted=2, overview=SHORTER, **fields
    )


def extends(world: SampleWorld, name: str, parent: str, *, step: int | None = None, **fields: Any) -> str:
    """A trajectory that goes on where the two accepted stages of its parent end."""
    chain = fields.pop("chain", "c1")
    trees = [f"{parent}-1", f"{parent}-2", f"{name}-3"]
    world.trajectory(name, chain, own_talk(parent), trees=trees, **fields)
    branched = {"parent_id": parent, "parent_step": last_step(long_talk(), 2) if step is None else step}
    with world.store.transaction() as tx:
        tx.connection.execute(update(Trajectory).where(Trajectory.id == name).values(**branched))
    return name


def exported(world: SampleWorld, folder: Path, **options: Any) -> tuple[dict[str, list[Any]], ExportReport]:
    """The rows of each file by the name of its set, and the report."""
    chosen = ExportOptions(**options)
    report = export(world.store, chosen_format("slime", chosen), chosen, folder / "sft.jsonl", force=True)
    files = [path for path in report.files if path.suffix == ".jsonl"]
    return {
        path.suffixes[-2].strip(".") if len(path.suffixes) > 1 else "train": [
            json.loads(line) for line in path.read_text().splitlines()
        ]
        for path in files
    }, report


def ids(rows: list[Any]) -> list[str]:
    return [row["metadata"]["trajectory_id"] for row in rows]


class TestShortLong:
    def test_both_sets_hold_the_same_chains_and_differ_by_what_was_extended(
        self, world: SampleWorld, tmp_path: Path
    ) -> None:
        world.chain("c2", first=10)
        prefix(world, "short")
        extends(world, "long", "short")
        world.trajectory("whole", "c2", own_talk("whole"))
        sets, report = exported(world, tmp_path, pairs="short-long")
        assert {name: ids(rows) for name, rows in sets.items()} == {
            "short": ["short", "whole"],
            "long": ["long", "whole"],
        }
        assert report.samples == {"short": 2, "long": 2} and report.rows == {"short": 2, "long": 2}
        short, long = sets["short"][0], sets["long"][0]
        assert short["messages"][:2] == long["messages"][:2], "a Long sample begins as its Short one"
        assert OVERVIEW in json.dumps(long) and len(long["metadata"]["stages"]) == 3
        for name in sets:
            card = json.loads((tmp_path / f"sft.{name}.jsonl.card.json").read_text())
            pairs = card["pairs"]
            assert (pairs["kind"], pairs["set"], pairs["pairs"], pairs["same_in_both"]) == ("short-long", name, 2, 1)
            assert pairs["sets"]["short"]["chains"] == pairs["sets"]["long"]["chains"] == 2
            assert (pairs["sets"]["short"]["queries"], pairs["sets"]["long"]["queries"]) == (5, 6)
            assert pairs["sets"]["short"]["tokens_mean"] < pairs["sets"]["long"]["tokens_mean"]
            text = (tmp_path / f"sft.{name}.jsonl.card.md").read_text()
            assert "before it was extended" in text and f"set `{name}` of 2 pairs" in text
        assert not (tmp_path / "sft.jsonl").exists()

    def test_an_extension_of_an_extension_is_the_long_one(self, world: SampleWorld, tmp_path: Path) -> None:
        world.chain("c1", length=4)
        prefix(world, "a")
        extends(world, "b", "a", outcome="accepted_prefix", accepted=3, overview=SHORTER)
        talk = own_talk("a")
        talk.query(4).bash("echo four").submit()
        world.trajectory("c", "c1", talk, trees=["a-1", "a-2", "b-3", "c-4"])
        with world.store.transaction() as tx:
            values = {"parent_id": "b", "parent_step": last_step(long_talk(), 3)}
            tx.connection.execute(update(Trajectory).where(Trajectory.id == "c").values(**values))
        sets, report = exported(world, tmp_path, pairs="short-long")
        assert (ids(sets["short"]), ids(sets["long"])) == (["a"], ["c"]) and report.left_out == {"extended": 1}

    def test_one_that_redid_a_part_of_the_accepted_stages_is_no_extension(
        self, world: SampleWorld, tmp_path: Path
    ) -> None:
        prefix(world, "a")
        extends(world, "b", "a", step=2)
        sets, report = exported(world, tmp_path, pairs="short-long")
        assert sets == {} and report.left_out["same_in_both"] >= 1

    def test_a_pair_is_written_whole_or_not_at_all(self, world: SampleWorld, tmp_path: Path) -> None:
        world.chain("c2", first=10)
        for chain, name in (("c1", "a"), ("c2", "b")):
            prefix(world, name, chain)
            extends(world, f"{name}-long", name, chain=chain)
        with_b = own_talk("b")
        with_b.bash("echo " + "word " * 5_000)
        world.trajectory("b-long", "c2", with_b, trees=["b-1", "b-2", "x"])
        with world.store.transaction() as tx:
            values = {"parent_id": "b", "parent_step": last_step(long_talk(), 2)}
            tx.connection.execute(update(Trajectory).where(Trajectory.id == "b-long").values(**values))
        sets, report = exported(world, tmp_path, pairs="short-long", max_tokens=2_000)
        assert (ids(sets["short"]), ids(sets["long"])) == (["a"], ["a-long"])
        assert report.left_out == {"pair_too_long": 1}

    def test_where_nothing_was_extended_nothing_is_written(self, world: SampleWorld, tmp_path: Path) -> None:
        prefix(world, "a")
        sets, report = exported(world, tmp_path, pairs="short-long")
        assert sets == {} and report.files == [] and report.left_out == {"same_in_both": 1}

    def test_a_draw_is_of_pairs(self, world: SampleWorld, tmp_path: Path) -> None:
        for number in range(6):
            world.chain(f"d{number}", first=20 + 10 * number)
            prefix(world, f"s{number}", f"d{number}")
            extends(world, f"l{number}", f"s{number}", chain=f"d{number}")
        sets, report = exported(world, tmp_path, pairs="short-long", at_most=2)
        short, long = ids(sets["short"]), ids(sets["long"])
        assert len(short) == 2 and long == [name.replace("s", "l") for name in short]
        assert report.left_out == {"not_drawn": 4}

    def test_prefixes_that_end_with_the_same_trees_are_one_pair(self, world: SampleWorld, tmp_path: Path) -> None:
        trees = ["t1", "t2", "t3"]
        prefix(world, "a", trees=trees)
        prefix(world, "b", sample=1, trees=trees)
        extends(world, "b-long", "b", sample=1)
        sets, report = exported(world, tmp_path, pairs="short-long")
        assert (ids(sets["short"]), ids(sets["long"])) == (["b"], ["b-long"])
        assert report.left_out == {"duplicate_trees": 1}


class TestPlainExport:
    def test_a_prefix_is_left_out_where_its_extension_is_written(self, world: SampleWorld, tmp_path: Path) -> None:
        prefix(world, "short")
        extends(world, "long", "short")
        sets, report = exported(world, tmp_path)
        assert ids(sets["train"]) == ["long"] and report.left_out == {"extended": 1}
        sets, _ = exported(world, tmp_path, duplicates="conversation")
        assert ids(sets["train"]) == ["long", "short"]

    def test_it_takes_the_place_of_an_extension_that_cannot_be_written(
        self, world: SampleWorld, tmp_path: Path
    ) -> None:
        prefix(world, "short")
        extends(world, "long", "short")
        (short,), (long,) = (
            exported(world, tmp_path, duplicates="keep", outcomes=frozenset({name}))[0]["train"]
            for name in ("accepted_prefix", "accepted")
        )
        room = (short["metadata"]["tokens"] + long["metadata"]["tokens"]) // 2
        sets, report = exported(world, tmp_path, max_tokens=room)
        assert ids(sets["train"]) == ["short"] and report.left_out == {"too_long": 1}


def rejected(world: SampleWorld, name: str, chain: str = "c1", *, stages: int = 3, **fields: Any) -> str:
    """A rollout whose last attempts were refused."""
    talk = own_talk(name)
    talk.entries = [entry for entry in talk.entries if entry.position <= stages]
    return world.trajectory(name, chain, talk, outcome="rejected", accepted=0, **fields)


class TestRejectionSampling:
    def test_both_sets_answer_the_same_queries_in_the_same_words(self, world: SampleWorld, tmp_path: Path) -> None:
        world.chain("c2", first=10)
        world.chain("c3", first=20)
        for number, chain in enumerate(("c1", "c2")):
            world.trajectory(f"kept{number}", chain, own_talk(f"k{number}"), sample=1)
            for sample in range(4):
                rejected(world, f"bad{number}{sample}", chain, stages=2, sample=2 + sample)
        rejected(world, "never", "c3")
        sets, report = exported(world, tmp_path, pairs="rejection-sampling", seed=0)
        unfiltered, filtered = sets["unfiltered"], sets["filtered"]
        assert ids(filtered) == ["kept0", "kept1"] and any(name.startswith("bad") for name in ids(unfiltered))
        assert report.left_out == {"chains_without_a_kept_rollout": 1}

        def queries(row: Any) -> list[str]:
            return [it["content"] for it in row["messages"] if it["role"] == "user" and "do thing" in it["content"]]

        for first, second in zip(unfiltered, filtered, strict=True):
            assert queries(first) == queries(second) and first["metadata"]["chain_id"] == second["metadata"]["chain_id"]
            assert len(first["metadata"]["stages"]) == len(second["metadata"]["stages"])
        card = json.loads((tmp_path / "sft.unfiltered.jsonl.card.json").read_text())
        sets_row = card["pairs"]["sets"]
        assert sets_row["unfiltered"]["queries"] == sets_row["filtered"]["queries"]
        assert card["options"]["refinements"] == "keep" and card["pairs"]["kind"] == "rejection-sampling"

    def test_rejected_rounds_are_under_loss_in_the_unfiltered_set_alone(
        self, world: SampleWorld, tmp_path: Path
    ) -> None:
        world.trajectory("kept", "c1", own_talk("k"), sample=9)
        for sample in range(8):
            rejected(world, f"bad{sample}", sample=sample)
        sets, _ = exported(world, tmp_path, pairs="rejection-sampling")
        (first,), (second,) = sets["unfiltered"], sets["filtered"]
        assert first["metadata"]["outcome"] == "rejected" and second["metadata"]["outcome"] == "accepted"
        reasons = [[it.get("reason") for it in row["messages"]] for row in (first, second)]
        assert "refinement" not in reasons[0]
        assert first["metadata"]["turns_under_loss"] > 0

    def test_a_shortened_chain_keeps_the_words_that_its_agent_read(self, world: SampleWorld, tmp_path: Path) -> None:
        prefix(world, "kept", sample=9)
        for sample in range(8):
            rejected(world, f"bad{sample}", sample=sample)
        sets, _ = exported(world, tmp_path, pairs="rejection-sampling")
        for rows in sets.values():
            (row,) = rows
            assert OVERVIEW in json.dumps(row) and SHORTER not in json.dumps(row)
            assert len(row["metadata"]["stages"]) == 2

    def test_agents_are_compared_with_themselves(self, world: SampleWorld, tmp_path: Path) -> None:
        world.trajectory("kept", "c1", own_talk("k"), model="agent-1")
        for sample in range(5):
            rejected(world, f"bad{sample}", sample=sample, model="agent-2")
        sets, report = exported(world, tmp_path, pairs="rejection-sampling")
        assert sets == {} and report.left_out == {"same_in_both": 1}

    def test_branches_are_no_draws(self, world: SampleWorld, tmp_path: Path) -> None:
        prefix(world, "short", sample=9)
        extends(world, "long", "short")
        for sample in range(5):
            rejected(world, f"bad{sample}", sample=sample)
        sets, _ = exported(world, tmp_path, pairs="rejection-sampling")
        assert ids(sets["filtered"]) == ["short"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"validation": 0.5}, "--split"),
        ({"too_long": "split", "max_tokens": 9}, "too_long=split"),
        ({"per_chain": "shortest"}, "per_chain=shortest"),
        ({"outcomes": frozenset({"rejected"})}, "--outcome"),
    ],
)
def test_options_that_would_part_the_pairs_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ExportOptions(pairs="short-long", **options)


def test_pairs_need_a_files_name(world: SampleWorld) -> None:
    options = ExportOptions(pairs="short-long")
    with pytest.raises(UsageError, match="two files"):
        export_to(world.store, chosen_format("slime", options), options, object())  # type: ignore[arg-type]


def test_the_command_tells_both_sets_and_replaces_none_of_its_files(
    world: SampleWorld, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix(world, "short")
    command = ["export", "--db", database_url, "--pairs", "short-long", "--out", str(tmp_path / "sft.jsonl")]
    assert run(command) == 1
    assert "`prchain rollouts extend` extends" in capsys.readouterr().err
    extends(world, "long", "short")
    assert run(command) == 0
    output = capsys.readouterr().out
    assert "2 samples (1 for short, 1 for long), 2 rows" in output and "sft.long.jsonl.card.md" in output
    assert run(command) == 2
    assert "sft.short.jsonl is there already" in capsys.readouterr().err
    assert run([*command, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == {"short": 1, "long": 1}
