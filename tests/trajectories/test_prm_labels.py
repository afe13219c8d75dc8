"""Windows as training data: their own steps, what came after, what became of the stage; and pairs of beginnings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import UsageError
from prchain.core.llm.model import ToolCall
from sql.store import Store
from sql.tables import ImportedTask
from tests.prchain.secrets_table import DRAWN_TOKEN
from tests.trajectories.prmstore import add_curation, add_trajectory, add_window, prm_store
from tests.trajectories.prmworld import Attempt, stage
from trajectories.model import Entry, EntryKind
from trajectories.rows import StageRow, VerdictRow
from trajectories.studies.guidance.agreement import ReadWindow, WindowReading
from trajectories.studies.guidance.labels import NO_STEPS, UNCOMMITTED, LabelCounts, write_labels
from trajectories.studies.guidance.pairs import PairCounts, fork, write_pairs
from trajectories.studies.guidance.stored import LIVE, ReadingChoice, known_windows, stored_readings

TOKEN = DRAWN_TOKEN


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with prm_store(tmp_path) as opened:
        yield opened


def rows_of(file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="ascii")
    assert text.endswith("}\n") and "\n\n" not in text
    return [json.loads(line) for line in text.splitlines()]


def labels(store: Store, folder: Path, **choices: Any) -> tuple[list[dict[str, Any]], LabelCounts]:
    out = folder / "labels.jsonl"
    counts = write_labels(store, out, force=True, **choices)
    return rows_of(out) if counts.rows else [], counts


def verdict(attempt: int, accepted: bool | None, tests: str | None = None) -> VerdictRow:
    return VerdictRow(1, attempt, "tree", accepted, "judge", score=0.25, comment="secret of the judge", tests=tests)


# ---- windows


def test_a_row_holds_the_window_its_findings_the_next_steps_and_what_became_of_it(store: Store, tmp_path: Path) -> None:
    add_trajectory(
        store,
        "aa",
        stage(Attempt(6, guided=5), Attempt(7)),
        stages=[StageRow(1, "rejected", endings=("submitted", "step_limit"), attempts=2)],
        verdicts=[verdict(1, False, "f2p_failed")],
    )
    add_window(store, "w1", "aa", (1, 5), [("step_repetition", True), ("hallucination", False)])
    [row], counts = labels(store, tmp_path, next_steps=3)
    assert (counts.rows, counts.trajectories, counts.left_out.total()) == (1, 1, 0)
    assert (row["window_id"], row["trajectory_id"], row["chain_id"], row["repository"]) == ("w1", "aa", "c", "o/n")
    assert [(it["category"], it["kept"], it["why"]) for it in row["findings"]] == [
        ("step_repetition", True, None),
        ("hallucination", False, "unquoted"),
    ]
    assert [step["step"] for step in row["steps"]] == [1, 2, 3, 4, 5]
    assert row["steps"][0]["calls"] == [{"name": "bash", "arguments": '{"command": "cat file_1.py"}'}]
    assert row["steps"][4]["observations"][0]["text"] == "def function_5():\n    return 5\n"
    assert row["query"] == "Mend the parser." and row["overview"] == "All of it."
    assert [(step["step"], step["attempt"]) for step in row["next_steps"]] == [(6, 1), (7, 2), (8, 2)]
    assert [it["text"] for step in row["next_steps"] for it in step["told"]] == ["Guidance after 5.", "Not yet."]
    assert row["became"] == {
        "ending": "submitted",
        "verdict": {"attempt": 1, "accepted": False, "gate": "judge", "score": 0.25, "tests": "f2p_failed"},
        "stage": "rejected",
        "attempts": 2,
        "trajectory": "rejected",
        "accepted_stages": 1,
    }
    assert "secret of the judge" not in json.dumps(row)


def test_next_steps_end_with_the_stage(store: Store, tmp_path: Path) -> None:
    first = stage(Attempt(6))
    second = [replace(it, ordinal=it.ordinal + len(first)) for it in stage(Attempt(4), position=2, after=6)]
    add_trajectory(store, "aa", [*first, *second])
    add_window(store, "w1", "aa", (1, 5))
    add_window(store, "w2", "aa", (7, 8), position=2)
    one, two = labels(store, tmp_path)[0]
    assert [step["step"] for step in one["next_steps"]] == [6]
    assert [step["step"] for step in two["steps"]] == [7, 8]
    assert one["became"]["verdict"] is one["became"]["stage"] is one["became"]["ending"] is None


def test_rows_stand_in_the_order_of_trajectory_and_step_however_they_were_read(store: Store, tmp_path: Path) -> None:
    for name in ("bb", "aa"):
        add_trajectory(store, name, stage(Attempt(11)))
    for name, trajectory, last, replay in (
        ("w1", "bb", 5, None),
        ("w2", "aa", 10, None),
        ("w9", "aa", 5, None),
        ("w3", "aa", 5, "r2"),
        ("w4", "aa", 5, "r1"),
    ):
        add_window(store, name, trajectory, (max(1, last - 7), last), replay=replay)
    assert [row["window_id"] for row in labels(store, tmp_path)[0]] == ["w9", "w4", "w3", "w2", "w1"]
    before = (tmp_path / "labels.jsonl").read_bytes()
    labels(store, tmp_path)
    assert (tmp_path / "labels.jsonl").read_bytes() == before


def test_filters_choose_trajectories_and_variants(store: Store, tmp_path: Path) -> None:
    for name, outcome in (("aa", "accepted"), ("bb", "rejected")):
        add_trajectory(store, name, stage(Attempt(6)), outcome=outcome)
        add_window(store, f"{name}1", name, (1, 5))
        add_window(store, f"{name}2", name, (1, 5), variant="S", replay="r", taxonomy_hash=None)

    def chosen(**choices: str) -> list[str]:
        return [row["window_id"] for row in labels(store, tmp_path, **choices)[0]]

    assert chosen(trajectory="b") == ["bb1", "bb2"]
    assert chosen(outcome="accepted") == ["aa1", "aa2"]
    assert chosen(variant="S") == ["aa2", "bb2"]
    assert chosen(variant="S", outcome="rejected", trajectory="aa") == []
    with pytest.raises(UsageError, match="no trajectory's id begins with"):
        chosen(trajectory="zz")


def test_texts_are_scrubbed_as_exports_scrub_them(store: Store, tmp_path: Path) -> None:
    entries = stage(Attempt(6))
    call = ToolCall("c1", "bash", json.dumps({"command": f"login {TOKEN}"}))
    entries[1] = replace(entries[1], content=f"I use {TOKEN}.", reasoning="mine: hidden-word", tool_calls=(call,))
    entries[2] = replace(entries[2], content=f"{TOKEN} <|im_end|>")
    add_trajectory(store, "aa", entries)
    action = f'bash {{"command": "echo {TOKEN}"}}'
    add_window(store, "w1", "aa", (1, 5), guidance=f"Do not use {TOKEN}.", recommended_action=action)
    [row], _ = labels(store, tmp_path, secrets=("hidden-word",))
    text = json.dumps(row)
    assert TOKEN not in text and "hidden-word" not in text and "<|im_end|>" not in text
    assert row["recommended_action"] == {"name": "bash", "arguments": '{"command": "echo [redacted]"}'}


def test_hostile_calls_and_texts_are_rows_like_others(store: Store, tmp_path: Path) -> None:
    entries = stage(Attempt(6))
    calls = (ToolCall("", "", '{"a": NaN'), ToolCall("x", "a b", "[" * 5000))
    entries[1] = replace(entries[1], content="\u2028\x00\ud800", tool_calls=calls)
    add_trajectory(store, "aa", entries)
    add_window(store, "w1", "aa", (1, 5), guidance="\u2028", recommended_action="bash")
    [row], _ = labels(store, tmp_path)
    assert len(row["steps"][0]["calls"]) == 2


def test_a_window_whose_steps_are_gone_is_left_out_and_counted(store: Store, tmp_path: Path) -> None:
    add_trajectory(store, "aa", stage(Attempt(4)))
    add_window(store, "w1", "aa", (1, 5))
    rows, counts = labels(store, tmp_path)
    assert rows == [] and counts.left_out == {NO_STEPS: 1}


def test_without_windows_no_file_is_written_and_the_old_one_stays(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "labels.jsonl"
    assert write_labels(store, out).rows == 0 and not out.exists()
    out.write_text("old")
    assert write_labels(store, out, force=True).rows == 0 and out.read_text() == "old"
    with pytest.raises(UsageError, match="is there already"):
        write_labels(store, out)


class TestCuration:
    @pytest.fixture(autouse=True)
    def curated(self, store: Store) -> None:
        """Seed 0 and seed 1; seed 0's variant rewrites its fourth step and is committed, up to step 6."""
        add_trajectory(store, "aa", stage(Attempt(12)))
        seeds = [{"number": number, "seed": number, "place": None} for number in (0, 1)]
        add_curation(store, "aa", 1, 0, 6, 2, *seeds, {"number": 2, "seed": 0, "place": 3})

    def test_only_what_was_committed_is_of_the_trajectory(self, store: Store, tmp_path: Path) -> None:
        add_window(store, "shared", "aa", (1, 3), subject="aa/1/1/0")
        add_window(store, "seed", "aa", (1, 5), subject="aa/1/1/0")
        add_window(store, "other", "aa", (1, 3), subject="aa/1/1/1")
        add_window(store, "variant", "aa", (1, 6), subject="aa/1/1/2")
        add_window(store, "beyond", "aa", (1, 7), subject="aa/1/1/2")
        rows, counts = labels(store, tmp_path)
        assert [row["window_id"] for row in rows] == ["shared", "variant"]
        assert counts.left_out == {UNCOMMITTED: 3}

    def test_a_step_that_the_next_window_is_asked_about_again_counts_once(self, store: Store, tmp_path: Path) -> None:
        add_curation(store, "aa", 2, 6, 6, 0, {"number": 0, "seed": 0, "place": None})
        add_window(store, "a_later", "aa", (1, 6), subject="aa/1/2/0")
        add_window(store, "b_earlier", "aa", (1, 6), subject="aa/1/1/2")
        assert [row["window_id"] for row in labels(store, tmp_path)[0]] == ["a_later"]

    def test_a_window_under_way_has_committed_nothing(self, store: Store, tmp_path: Path) -> None:
        add_curation(store, "aa", 2, 6, 0, None)
        add_window(store, "open", "aa", (1, 8), subject="aa/1/2/0")
        add_window(store, "replayed", "aa", (1, 8), subject="prm/r/aa/1", replay="r")
        assert [row["window_id"] for row in labels(store, tmp_path)[0]] == ["replayed"]


class TestReadings:
    def test_a_reading_says_what_the_model_found_and_kept(self, store: Store) -> None:
        add_trajectory(store, "aa", stage(Attempt(12)))
        add_window(store, "w1", "aa", (1, 5), [("hallucination", True), ("step_repetition", False)])
        add_window(store, "w2", "aa", (3, 10), fault="unreadable", suboptimal=None)
        add_window(store, "w3", "aa", (1, 5), replay="r", variant="S", taxonomy_hash=None, suboptimal=None)
        add_window(store, "w4", "aa", (3, 10), [("hallucination", True)], found_by="loops", replay="r")
        five, ten = ReadWindow("aa", 1, 1, 5), ReadWindow("aa", 1, 1, 10)
        with store.reading() as tx:
            assert known_windows(tx) == {five, ten}
            assert stored_readings(tx, ReadingChoice(LIVE)) == {five: WindowReading(True, frozenset({"hallucination"}))}
            assert stored_readings(tx, ReadingChoice("r")) == {
                five: WindowReading(None, None),
                ten: WindowReading(True, frozenset()),
            }
            assert stored_readings(tx, ReadingChoice(variant="S")).keys() == {five}
            assert stored_readings(tx, ReadingChoice(model="other")) == {}

    def test_two_readings_of_one_window_have_to_be_told_apart(self, store: Store) -> None:
        add_trajectory(store, "aa", stage(Attempt(12)))
        for replay in (None, "r"):
            add_window(store, f"w{replay}", "aa", (1, 5), replay=replay)
        with store.reading() as tx, pytest.raises(UsageError, match="say which by replay, variant or model"):
            stored_readings(tx, ReadingChoice())


# ---- pairs


def guided_after(
    entries: Sequence[Entry], step: int, text: str = "Run the tests.", observer: str = "prm"
) -> list[Entry]:
    """The entries with guidance after a step."""
    last = max(at for at, it in enumerate(entries) if it.step == step and it.kind is EntryKind.OBSERVATION)
    words = Entry(
        0,
        1,
        entries[last].attempt,
        step,
        EntryKind.GUIDANCE,
        "user",
        text,
        details={"observer": observer, "window": "w"},
    )
    return [replace(it, ordinal=at) for at, it in enumerate([*entries[: last + 1], words, *entries[last + 1 :]])]


def otherwise(entries: Sequence[Entry], step: int) -> list[Entry]:
    """The entries with another turn at a step, and another id for each call."""
    return [
        replace(
            it,
            content="Else." if it.step == step and it.kind is EntryKind.TURN else it.content,
            tool_calls=tuple(replace(call, id=f"{call.id}x") for call in it.tool_calls),
            tool_call_id=None if it.tool_call_id is None else f"{it.tool_call_id}x",
        )
        for it in entries
    ]


PLAIN = stage(Attempt(8))
GUIDED = otherwise(guided_after(PLAIN, 5), 6)


def test_conversations_part_where_one_alone_is_guided() -> None:
    found = fork(GUIDED, PLAIN)
    assert found is not None
    assert (found.shared, found.words, GUIDED[found.shared].kind) == (11, 1, EntryKind.GUIDANCE)
    assert fork(PLAIN, GUIDED) is None


@pytest.mark.parametrize(
    ("guided", "other"),
    [
        (GUIDED, guided_after(PLAIN, 5, "Read on.")),
        (GUIDED, otherwise(PLAIN, 3)),
        (GUIDED, PLAIN[:11]),
        (GUIDED[:12], GUIDED[:12]),
        (guided_after(PLAIN, 5, observer="repetition"), PLAIN),
        (GUIDED, []),
        (GUIDED, [replace(it, position=2) if it.step > 5 else it for it in PLAIN]),
        (guided_after(stage(Attempt(5), Attempt(3)), 5), stage(Attempt(5), Attempt(3))),
    ],
    ids=["both guided", "other before", "other ended", "equal", "another observer", "empty", "next stage", "comment"],
)
def test_conversations_that_part_in_another_way_are_no_pair(guided: list[Entry], other: list[Entry]) -> None:
    assert fork(guided, other) is None and fork(other, guided) is None


def pairs(store: Store, folder: Path, **choices: Any) -> tuple[list[dict[str, Any]], PairCounts]:
    out = folder / "pairs.jsonl"
    counts = write_pairs(store, out, force=True, **choices)
    return rows_of(out) if counts.rows else [], counts


RIGHT, WRONG = [verdict(1, True, "passed")], [verdict(1, False, "f2p_failed")]


@pytest.mark.parametrize(
    ("guided", "plain"),
    [
        ({"parent": ("aa", 5)}, {}),
        ({}, {"parent": ("bb", 5)}),
        ({"parent": ("zz", 5)}, {"parent": ("zz", 5)}),
        ({}, {}),
    ],
    ids=["branch of it", "it is a branch", "two branches", "two whole ones"],
)
def test_a_pair_shares_a_beginning_and_its_verdicts_differ(
    store: Store, tmp_path: Path, guided: dict[str, Any], plain: dict[str, Any]
) -> None:
    add_trajectory(store, "bb", GUIDED, stages=[StageRow(1, "accepted")], verdicts=RIGHT, **guided)
    add_trajectory(store, "aa", PLAIN, stages=[StageRow(1, "rejected")], verdicts=WRONG, **plain)
    [row], counts = pairs(store, tmp_path, next_steps=2)
    assert (counts.rows, counts.compared, counts.forked) == (1, 1, 1)
    assert (row["chain_id"], row["position"], row["attempt"], row["step"]) == ("c", 1, 1, 5)
    assert [message["role"] for message in row["messages"]] == ["user", *["assistant", "tool"] * 5]
    assert row["messages"][-1]["content"] == "def function_5():\n    return 5\n"
    assert row["guidance"] == [{"observer": "prm", "window": "w", "text": "Run the tests."}]
    for side, name, first, accepted in (("guided", "bb", "Else.", True), ("unguided", "aa", "Let me look at", False)):
        assert row[side]["trajectory_id"] == name and row[side]["verdict"]["accepted"] is accepted
        assert [step["step"] for step in row[side]["next_steps"]] == [6, 7]
        assert row[side]["next_steps"][0]["thought"].startswith(first) and not row[side]["next_steps"][0]["told"]
    assert "secret of the judge" not in json.dumps(row)


@pytest.mark.parametrize(
    "plain",
    [
        {"verdicts": RIGHT},
        {"verdicts": [verdict(1, None)]},
        {"verdicts": []},
        {"verdicts": WRONG, "sample": 1},
        {"verdicts": WRONG, "chain": "d"},
        {"verdicts": WRONG, "parent": ("zz", 5)},
    ],
    ids=["same verdict", "unscored", "no verdict", "other sample", "other chain", "branch of another"],
)
def test_what_is_not_comparable_is_no_pair(store: Store, tmp_path: Path, plain: dict[str, Any]) -> None:
    stages = [StageRow(1, "rejected")]
    add_trajectory(store, "bb", GUIDED, stages=stages, verdicts=RIGHT)
    add_trajectory(store, "aa", PLAIN, stages=stages, **plain)
    assert pairs(store, tmp_path)[0] == []


def test_verdicts_differ_in_tests_alone_and_the_stages_last_one_counts(store: Store, tmp_path: Path) -> None:
    stages = [StageRow(1, "accepted")]
    add_trajectory(store, "bb", GUIDED, stages=stages, verdicts=[*WRONG, verdict(2, True, "passed")])
    add_trajectory(store, "aa", PLAIN, stages=stages, verdicts=[verdict(1, True, "p2p_broken")])
    [row], _ = pairs(store, tmp_path)
    assert (row["guided"]["verdict"]["attempt"], row["guided"]["verdict"]["tests"]) == (2, "passed")
    assert row["unguided"]["verdict"]["tests"] == "p2p_broken"


def test_a_verdict_from_before_the_fork_is_not_of_its_attempt(store: Store, tmp_path: Path) -> None:
    plain = stage(Attempt(3), Attempt(6))
    add_trajectory(store, "aa", plain, stages=[StageRow(1, "running")], verdicts=WRONG)
    add_trajectory(store, "bb", guided_after(plain, 5), stages=[StageRow(1, "accepted")], verdicts=RIGHT)
    rows, counts = pairs(store, tmp_path)
    assert rows == [] and counts.forked == 1


def test_an_agent_that_saw_its_stage_alone_shares_that_alone(store: Store, tmp_path: Path) -> None:
    first = stage(Attempt(2))
    plain = [*first, *(replace(it, ordinal=it.ordinal + len(first)) for it in stage(Attempt(6), position=2, after=2))]
    guided = [replace(it, position=2) if it.kind is EntryKind.GUIDANCE else it for it in guided_after(plain, 4)]
    for name, entries, verdicts in (("aa", plain, WRONG), ("bb", guided, RIGHT)):
        placed = [replace(it, position=2) for it in verdicts]
        stages = [StageRow(1, "accepted"), StageRow(2, "accepted")]
        add_trajectory(store, name, entries, stages=stages, verdicts=placed, context="stage")
    [row], _ = pairs(store, tmp_path)
    assert (row["position"], row["step"], len(row["messages"])) == (2, 4, 5)


def test_windows_and_pairs_of_a_task_that_measures_models_are_left_out_and_counted_unless_asked_for(
    store: Store, tmp_path: Path
) -> None:
    add_trajectory(store, "bb", GUIDED, stages=[StageRow(1, "accepted")], verdicts=RIGHT, parent=("aa", 5))
    add_trajectory(store, "aa", PLAIN, stages=[StageRow(1, "rejected")], verdicts=WRONG)
    said = {"chain_id": "c", "source": "x/Verified", "form": "swe-bench", "instance_id": "i-1", "base_commit": "0" * 40}
    texts = {"patch": "", "test_patch": "", "f2p": [], "p2p": [], "test_command": [], "imported_at": "2026-01-01"}
    add_window(store, "w1", "aa", (1, 5))
    windows = labels(store, tmp_path)[1].rows
    with store.transaction() as tx:
        tx.upsert(ImportedTask, [{**said, **texts, "benchmark": True, "breaks": False}])
    assert [labels(store, tmp_path, benchmarks=asked)[1].rows for asked in (False, True)] == [0, windows] == [0, 1]
    assert dict(labels(store, tmp_path)[1].left_out) == {"benchmark": 1}
    assert [pairs(store, tmp_path, benchmarks=asked)[1].rows for asked in (False, True)] == [0, 1]
    assert dict(pairs(store, tmp_path)[1].left_out) == {"benchmark": 2}
