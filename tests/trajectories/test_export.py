"""Exports end to end: what is written, what is left out and why, and that no file is incomplete."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prchain.cli import run
from prchain.core.errors import DiskFull, UsageError
from sql.store import Transaction
from tests.prchain.secrets_table import DRAWN_TOKEN
from tests.trajectories.sampleworld import OVERVIEW, SHORTER, SampleWorld, Talk, long_talk, sample_world
from trajectories.export.export import ExportReport, export, export_to
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.export.reading import candidates, chain_works, read_sample
from trajectories.export.samples import Sample
from trajectories.export.write import Files, HashedFile
from trajectories.model import EntryKind
from trajectories.rows import read_entries


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[SampleWorld]:
    with sample_world(tmp_path, url=database_url) as world:
        world.chain("c1")
        yield world


def run_export(world: SampleWorld, folder: Path, form: str = "slime", **options: Any) -> tuple[list[Any], ExportReport]:
    """The rows of an export, and its report."""
    chosen = ExportOptions(**options)
    out = folder / ("runs" if form == "mini" else "sft.jsonl")
    report = export(world.store, chosen_format(form, chosen), chosen, out, force=True)
    if not report.files:
        return [], report
    if form == "mini":
        return [json.loads(path.read_text(encoding="ascii")) for path in sorted(out.iterdir())], report
    return [json.loads(line) for line in report.files[0].read_text(encoding="ascii").splitlines()], report


def sample_of(world: SampleWorld, **options: Any) -> Sample | str:
    with world.store.reading() as tx:
        (candidate,) = candidates(tx, ExportOptions(**options))
        return read_sample(tx, candidate, ExportOptions(**options))


def test_only_kept_trajectories_are_exported(world: SampleWorld, tmp_path: Path) -> None:
    for place, outcome in enumerate(("accepted", "rejected", "too_short", "running", "sandbox_lost")):
        world.trajectory(f"t{place}", "c1", sample=place, outcome=outcome)
    rows, report = run_export(world, tmp_path)
    assert [row["metadata"]["trajectory_id"] for row in rows] == ["t0"]
    assert report.card["outcomes_of_all_trajectories"]["rejected"] == 1
    rows, _ = run_export(world, tmp_path, form="mini", outcomes=frozenset({"rejected"}))
    assert [row["info"]["prchain"]["outcome"] for row in rows] == ["rejected"]


def test_an_accepted_prefix_ends_with_its_last_accepted_stage_in_the_words_that_its_agent_read(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.trajectory("t1", "c1", outcome="accepted_prefix", accepted=2, overview=SHORTER)
    (row,), _ = run_export(world, tmp_path)
    text = json.dumps(row)
    assert OVERVIEW in text and SHORTER not in text and "Stage 3" not in text
    assert [stage["position"] for stage in row["metadata"]["stages"]] == [1, 2]


def test_a_prefix_that_is_retold_has_its_own_overview(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", outcome="accepted_prefix", accepted=2, overview=SHORTER)
    (row,), _ = run_export(world, tmp_path, retell=True)
    text = json.dumps(row)
    assert SHORTER in text and OVERVIEW not in text and "Stage 3" not in text
    assert [stage["position"] for stage in row["metadata"]["stages"]] == [1, 2]
    assert row["messages"][1]["content"].startswith(SHORTER)


def test_a_prefix_is_told_as_the_rollout_told_it_anew(world: SampleWorld, tmp_path: Path) -> None:
    talk = long_talk()
    talk.entries = [
        replace(entry, details={"retold": f"Task {entry.position} of 2: {SHORTER}"})
        if entry.kind is EntryKind.QUERY
        else entry
        for entry in talk.entries
    ]
    world.trajectory("t1", "c1", talk, outcome="accepted_prefix", accepted=2, overview=SHORTER)
    (row,), _ = run_export(world, tmp_path, retell=True)
    queries = [message["content"] for message in row["messages"] if message["content"].startswith("Task")]
    assert queries == [f"Task 1 of 2: {SHORTER}", f"Task 2 of 2: {SHORTER}"] and OVERVIEW not in json.dumps(row)


@pytest.mark.parametrize(("overview", "task"), [(None, OVERVIEW), (SHORTER, "Another overview.")])
def test_a_prefix_that_would_tell_of_stages_that_it_lacks_is_left_out(
    world: SampleWorld, tmp_path: Path, overview: str | None, task: str
) -> None:
    world.chain("c2", overview=task, first=9)
    world.trajectory("t1", "c2", outcome="accepted_prefix", accepted=2, overview=overview)
    rows, report = run_export(world, tmp_path, retell=True)
    assert rows == [] and dict(report.left_out) == {"no_overview": 1}


def test_texts_are_scrubbed_wherever_they_stand(world: SampleWorld, tmp_path: Path) -> None:
    token = DRAWN_TOKEN
    talk = Talk().system(f"Ask joe@example.org. {token}").query(1, f"{OVERVIEW} Mail: amy@example.org")
    talk.bash(
        f"git config user.email bob@example.org; export T={token}",
        f"dan@example.org \x1b[31m{token}",
        reasoning="eve@example.org says",
    )
    talk.turn("", ("str_replace_editor", {"path": "x", "old_str": "line\nmailto:joe@example.org"}))
    talk.observation("fay@example.org", error=None).turn(
        "Ask gus@example.org", ("bash", f'{{"command": "{token}')
    ).observation("no")
    talk.submit()
    world.trajectory("t1", "c1", talk)
    for form in ("slime", "swift", "openai", "mini"):
        rows, report = run_export(world, tmp_path, form)
        text = json.dumps(rows)
        assert "example.org" not in text and token not in text and "\\u001b" not in text
        assert text.count("[email]") >= 7 - (form == "openai")
        assert report.card["replaced"] == {"address": 8 - (form == "openai"), "github": 4}


def test_secrets_of_the_settings_are_kept_out(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", Talk().system().query(1).bash("echo hunter2hunter2").submit())
    options = ExportOptions()
    form = chosen_format("slime", options)
    export(world.store, form, options, tmp_path / "a.jsonl", secrets=("hunter2hunter2",))
    assert "hunter2" not in (tmp_path / "a.jsonl").read_text()


def test_arguments_stay_as_the_model_wrote_them_where_nothing_had_to_go(world: SampleWorld) -> None:
    talk = Talk().system().query(1).turn("", ("bash", '{ "command" :  "ls" }')).observation("ok").submit()
    world.trajectory("t1", "c1", talk)
    found = sample_of(world)
    assert isinstance(found, Sample)
    assert found.turns[2].tool_calls[0].arguments == '{ "command" :  "ls" }'


def test_a_sample_ends_with_its_last_turn_under_loss(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    (row,), _ = run_export(world, tmp_path)
    assert row["messages"][-1]["step_loss_mask"] == 1


def test_a_sample_without_a_turn_to_train_on_is_left_out(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1", Talk().system().query(1).turn("", error="empty").observation("Call a tool."))
    rows, report = run_export(world, tmp_path)
    assert rows == [] and dict(report.left_out) == {"nothing_to_train": 1}


def test_refined_samples_are_dropped_on_request(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    _, report = run_export(world, tmp_path, refinements="drop")
    assert dict(report.left_out) == {"refined": 1}


def test_guidance_can_be_left_out_of_the_conversation(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    (kept,), _ = run_export(world, tmp_path)
    (dropped,), _ = run_export(world, tmp_path, guidance="drop")
    assert "Look at the tests first." in json.dumps(kept)
    assert "Look at the tests first." not in json.dumps(dropped)
    assert len(dropped["messages"]) == len(kept["messages"]) - 1


def test_of_equal_results_of_one_chain_the_shortest_way_stays(world: SampleWorld, tmp_path: Path) -> None:
    world.chain("c2", first=9)
    short = Talk().system().query(1).bash("ls").submit()
    other = Talk().system().query(1).bash("pwd").bash("ls").submit()
    world.trajectory("long", "c1", other, sample=0, trees=["a"])
    world.trajectory("short", "c1", short, sample=1, trees=["a"])
    world.trajectory("different", "c1", other, sample=2, trees=["b"])
    world.trajectory("unknown", "c1", Talk().system().query(1).bash("id").submit(), sample=3, trees=[None])
    world.trajectory("elsewhere", "c2", Talk().system().query(1).bash("w").submit(), trees=["a"])
    rows, report = run_export(world, tmp_path)
    assert {row["metadata"]["trajectory_id"] for row in rows} == {"short", "different", "unknown", "elsewhere"}
    assert dict(report.left_out) == {"duplicate_trees": 1}


def test_equal_conversations_stand_in_the_file_once(world: SampleWorld, tmp_path: Path) -> None:
    for place in range(3):
        world.trajectory(f"t{place}", "c1", sample=place)
    rows, report = run_export(world, tmp_path)
    assert len(rows) == 1 and dict(report.left_out) == {"duplicate_conversation": 2}
    rows, report = run_export(world, tmp_path, duplicates="keep")
    assert len(rows) == 3 and dict(report.left_out) == {}


def test_samples_that_are_too_long_are_dropped_or_split_at_stage_boundaries(world: SampleWorld, tmp_path: Path) -> None:
    talk = Talk().system().query(1).bash("ls", "x" * 2000).submit()
    talk.query(2).bash("pwd", "y" * 2000).submit().query(3).bash("id", "z" * 20_000).submit()
    world.trajectory("t1", "c1", talk)
    rows, report = run_export(world, tmp_path, max_tokens=1000)
    assert rows == [] and dict(report.left_out) == {"too_long": 1}
    rows, report = run_export(world, tmp_path, max_tokens=1000, too_long="split")
    assert [row["metadata"]["sample_id"] for row in rows] == ["t1-1", "t1-2"]
    assert [[stage["position"] for stage in row["metadata"]["stages"]] for row in rows] == [[1], [2]]
    assert dict(report.left_out) == {"too_long": 1}, "the third stage is too long alone"
    first, second = rows
    assert first["messages"][0] == second["messages"][0] and first["messages"][0]["role"] == "system"
    assert second["messages"][1]["content"] == f"{OVERVIEW}\n\nStage 2: do thing 2."
    assert all(row["metadata"]["tokens"] <= 1000 for row in rows)
    rows, _ = run_export(world, tmp_path, max_tokens=1500, too_long="split")
    assert [[stage["position"] for stage in row["metadata"]["stages"]] for row in rows] == [[1, 2]]


def test_conversations_that_began_anew_with_each_stage_are_samples_of_one_stage(
    world: SampleWorld, tmp_path: Path
) -> None:
    world.trajectory("t1", "c1", context="stage")
    rows, _ = run_export(world, tmp_path)
    assert [[stage["position"] for stage in row["metadata"]["stages"]] for row in rows] == [[1], [2], [3]]
    assert {row["messages"][0]["role"] for row in rows} == {"system"}
    assert rows[1]["messages"][1]["content"] == "Stage 2: do thing 2.", "as the model was told it"


def test_reasoning_has_a_field_stands_in_the_content_or_goes(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    (row,), _ = run_export(world, tmp_path)
    assert "Two is right." in [message.get("reasoning_content") for message in row["messages"]]
    (row,), _ = run_export(world, tmp_path, reasoning="inline")
    assert any("<think>\nTwo is right.\n</think>" in message["content"] for message in row["messages"])
    for form in ("slime", "swift"):
        rows, _ = run_export(world, tmp_path, form, reasoning="drop")
        assert "Two is right." not in json.dumps(rows)


def test_elided_turns_are_told(world: SampleWorld, tmp_path: Path) -> None:
    talk = (
        Talk().system().query(1).bash("ls").turn("x", ("bash", {}), details={"dropped": [3]}).observation("ok").submit()
    )
    world.trajectory("t1", "c1", talk)
    (row,), _ = run_export(world, tmp_path)
    assert row["metadata"]["elided_turns"] == 1


def test_the_same_database_gives_the_same_bytes(world: SampleWorld, tmp_path: Path) -> None:
    for place in range(4):
        world.chain(f"d{place}", first=10 * place + 10, repository=("shop", f"r{place}"))
        world.trajectory(f"t{place}", f"d{place}", Talk().system().query(1).bash(f"echo {place}").submit())
    found = []
    for _ in range(2):
        run_export(world, tmp_path, validation=0.3)
        found.append([path.read_bytes() for path in sorted(tmp_path.glob("sft*"))])
    assert found[0] == found[1] and len(found[0]) == 4


def test_validation_goes_into_its_own_file_by_repository(world: SampleWorld, tmp_path: Path) -> None:
    for place in range(6):
        world.chain(f"d{place}", first=10 * place + 10, repository=("shop", f"r{place // 2}"))
        world.trajectory(f"t{place}", f"d{place}", Talk().system().query(1).bash(f"echo {place}").submit())
    rows, report = run_export(world, tmp_path, validation=0.34)
    other = [json.loads(line) for line in (tmp_path / "sft.validation.jsonl").read_text().splitlines()]
    groups = [{row["metadata"]["repository"] for row in part} for part in (rows, other)]
    assert groups[0] and groups[1] and not groups[0] & groups[1]
    assert dict(report.samples) == {"train": 4, "validation": 2}
    parts = {file["part"]: file["rows"] for file in report.card["files"]}
    assert parts == {"train": 4, "validation": 2}


def test_chains_that_share_a_pull_request_are_never_in_both_files(world: SampleWorld, tmp_path: Path) -> None:
    for place in range(4):
        world.chain(f"d{place}", first=10 * (place // 2) + 1 + place % 2)
        world.trajectory(f"t{place}", f"d{place}", Talk().system().query(1).bash(f"echo {place}").submit())
    rows, _ = run_export(world, tmp_path, validation=0.5, split_by="chain")
    chains = {row["metadata"]["chain_id"] for row in rows}
    assert chains in ({"d0", "d1"}, {"d2", "d3"})


def test_tasks_of_one_pull_request_by_several_strategies_stay_together_and_are_told(
    world: SampleWorld, tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chains = {"single": [(1, 1), (2, 1), (8, 1)], "reference": [(1, 3)], "temporal": [(4, 3), (8, 2)]}
    names = []
    for strategy, found in chains.items():
        for first, length in found:
            name = f"{strategy[0]}{first}"
            names.append(world.chain(name, first=first, length=length))
            world.trajectory(name, name, Talk().system().query(1).bash(f"echo {name}").submit(), accepted=1)
            world.select(name, strategy)
    groups: set[frozenset[str]] = set()
    for seed in range(4):
        rows, report = run_export(world, tmp_path, validation=0.4, split_by="chain", seed=seed)
        trained = frozenset(row["metadata"]["chain_id"] for row in rows)
        groups |= {trained, frozenset(names) - trained}
    assert groups and all({"s1", "s2", "r1"} <= it or not it & {"s1", "s2", "r1"} for it in groups)
    assert all({"s8", "t8"} <= it or not it & {"s8", "t8"} for it in groups)
    shared = {"shop/till#1": ["r1", "s1"], "shop/till#2": ["r1", "s2"], "shop/till#8": ["s8", "t8"]}
    assert report.shared == shared
    named = [{"pull_request": pull, "chains": members} for pull, members in shared.items()]
    assert report.card["in_several_tasks"] == {"pull_requests": 3, "first": named}
    assert "| shop/till#8 | s8, t8 |" in (tmp_path / "sft.jsonl.card.md").read_text()
    # The samples of one strategy alone, which a comparison trains on.
    assert run(["export", "--out", str(tmp_path / "r.jsonl"), "--strategy", "reference", "--db", database_url]) == 0
    assert "1 sample" in capsys.readouterr().out
    assert run(["export", "--out", "-", "--db", database_url]) == 0
    assert "3 pull requests in several of these tasks" in capsys.readouterr().err


def test_two_data_sets_with_one_instance_hold_one_pull_request_though_nobody_tells_its_number(
    world: SampleWorld, tmp_path: Path
) -> None:
    for name in ("i1", "i2", "i3"):
        world.chain(name, first=0, length=1)
        world.imported(name, instance_id="shop__till.abc" if name != "i3" else "shop__till.def")
    with world.store.reading() as tx:
        works = [*chain_works(tx, {"i1", "i2", "i3"})]
    assert works == [("i1", "shop/till shop__till.abc"), ("i2", works[0][1]), ("i3", "shop/till shop__till.def")]


def test_a_file_that_is_there_is_not_replaced_unless_forced(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    options = ExportOptions()
    form, out = chosen_format("slime", options), tmp_path / "sft.jsonl"
    export(world.store, form, options, out)
    with pytest.raises(UsageError, match="--force"):
        export(world.store, form, options, out)
    out.unlink()
    with pytest.raises(UsageError, match=r"card\.md is there already"):
        export(world.store, form, options, out)
    with pytest.raises(UsageError, match="no folder"):
        export(world.store, form, options, tmp_path / "deep" / "sft.jsonl")


def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    world: SampleWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(3):
        world.trajectory(f"t{place}", "c1", Talk().system().query(1).bash(f"echo {place}").submit(), sample=place)
    before = run_export(world, tmp_path)[0]
    count = 0
    write = HashedFile.write

    def full(stream: HashedFile, data: Any) -> int:
        nonlocal count
        count += 1
        if count == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(stream, data)

    monkeypatch.setattr(HashedFile, "write", full)
    names = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(DiskFull, match="make room"):
        run_export(world, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names
    assert [json.loads(line) for line in (tmp_path / "sft.jsonl").read_text().splitlines()] == before


def test_a_defect_in_the_middle_leaves_no_part_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Files() as files:
        files.open(tmp_path / "a").write(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_lines_are_ascii_so_that_no_reader_breaks_them(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    rows, _ = run_export(world, tmp_path)
    assert "\u2028" in json.dumps(rows, ensure_ascii=False)
    assert (tmp_path / "sft.jsonl").read_bytes().isascii()


def test_standard_output_gets_the_rows_alone(world: SampleWorld, tmp_path: Path) -> None:
    world.trajectory("t1", "c1")
    options = ExportOptions()
    with (tmp_path / "stream").open("wb") as stream:
        export_to(world.store, chosen_format("slime", options), options, stream)
    assert json.loads((tmp_path / "stream").read_text()) == run_export(world, tmp_path)[0][0]
    with (tmp_path / "stream").open("wb") as stream, pytest.raises(UsageError, match="two files"):
        export_to(world.store, chosen_format("slime", options), ExportOptions(validation=0.1), stream)


def test_parquet_holds_what_json_lines_hold(world: SampleWorld, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    world.trajectory("t1", "c1")
    for form, rows in (("slime", "conversations"), ("swift", "conversations"), ("trl", "turns"), ("sharegpt", "turns")):
        lines, _ = run_export(world, tmp_path, form, rows=rows)
        options = ExportOptions(rows=rows)  # type: ignore[arg-type]
        export(world.store, chosen_format(form, options), options, tmp_path / "sft.parquet", force=True)
        read = parquet.read_table(tmp_path / "sft.parquet").to_pylist()
        assert [plain(row) for row in read] == [plain(row) for row in lines]
        if form == "slime":
            assert {message["step_loss_mask"] for message in read[0]["messages"]} == {0, 1}, "null would mask all turns"


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: plain(item) if name != "arguments" or isinstance(item, dict) else plain(json.loads(item))
            for name, item in value.items()
            if item is not None
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_parquet_without_pyarrow_names_the_extra(
    world: SampleWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    options = ExportOptions()
    with pytest.raises(UsageError, match=r"\[parquet\]"):
        export(world.store, chosen_format("slime", options), options, tmp_path / "sft.parquet")
    assert [path.name for path in tmp_path.iterdir() if "sft" in path.name] == []


@pytest.mark.parametrize("form", ["openai", "mini"])
def test_formats_that_nobody_reads_as_parquet_refuse_it(world: SampleWorld, tmp_path: Path, form: str) -> None:
    options = ExportOptions()
    with pytest.raises(UsageError, match="JSON lines only"):
        export(world.store, chosen_format(form, options), options, tmp_path / "sft.parquet")


def test_the_command_writes_and_says_what_it_left_out(
    world: SampleWorld, tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.trajectory("t1", "c1")
    world.trajectory("t2", "c1", sample=1)
    out = tmp_path / "sft.jsonl"
    db = ["--db", database_url]
    assert run(["export", "--out", str(out), "--mask", "tool_errors,guidance", *db]) == 0
    output = capsys.readouterr().out
    assert "left out: 1 duplicate_conversation" in output and "1 sample, 1 row" in output and "estimated" in output
    assert run(["export", "--out", str(out), *db]) == 2
    assert run(["export", "--out", str(out), "--force", "--json", *db]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == {"train": 1}
    assert run(["export", "--out", str(out), "--force", "--mask", "nope", *db]) == 2
    assert run(["export", "--out", str(out), "--force", "--format", "trl", *db]) == 2
    assert "--rows turns" in capsys.readouterr().err
    assert (
        run(
            [
                "export",
                "--out",
                str(out),
                "--force",
                "--format",
                "trl",
                "--mask",
                "faulty=off",
                "--rejected",
                "keep",
                *db,
            ]
        )
        == 0
    )
    assert run(["export", "--out", "-", *db]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["messages"]


def test_one_trajectory_is_in_memory_at_a_time(
    world: SampleWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in range(5):
        world.trajectory(f"t{place}", "c1", Talk().system().query(1).bash(f"echo {place}").submit(), sample=place)
    read: list[str] = []

    def watched(tx: Transaction, trajectory_id: str) -> Any:
        part_files = [path for path in tmp_path.iterdir() if path.name.endswith(".part") and "card" not in path.name]
        read.append(f"{trajectory_id}:{len(part_files)}")
        return read_entries(tx, trajectory_id)

    monkeypatch.setattr("trajectories.export.reading.read_entries", watched)
    options = ExportOptions()
    export(world.store, chosen_format("slime", options), options, tmp_path / "sft.jsonl")
    assert read == [f"t{place}:1" for place in range(5)], "each is read while the file is under way, and once"


def test_long_talk_is_what_the_other_tests_take_it_for() -> None:
    assert {entry.position for entry in long_talk().entries} == {1, 2, 3}
