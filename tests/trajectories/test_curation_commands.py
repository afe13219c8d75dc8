"""The commands around curated trajectories: list, show, export, and what `curate run` refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from prchain.cli import run
from prchain.core.llm.model import ToolCall
from sql.tables import TrajectoryMessage
from tests.trajectories.curationworld import CurationWorld, curation_world
from trajectories.agents.steps.conversation import steps_of
from trajectories.curation.graphs.graph import Prerequisite, ProcessGraph
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.graphs.surfaced import Surfaced
from trajectories.curation.windows.progress import Standing, StepProgress
from trajectories.curation.windows.rewriting import ScoredSeed, pick_by_rule, places_of
from trajectories.model import Entry, EntryKind


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CurationWorld, str]]:
    """A world with a curated trajectory over two stages."""
    with curation_world(tmp_path_factory.mktemp("world"), ((1, 2),)) as world:
        name = world.curate()
        assert world.outcome(name) == ("accepted", None)
        yield world, name


def at(world: CurationWorld) -> list[str]:
    return ["--db", str(world.store.url.database)]


@pytest.mark.parametrize(("form", "key"), [("slime", "step_loss_mask"), ("openai", "weight")])
def test_of_a_curated_chain_the_tokens_under_loss_are_those_of_the_committed_turns(
    curated: tuple[CurationWorld, str], tmp_path: Path, form: str, key: str
) -> None:
    world, name = curated
    out = tmp_path / "sft.jsonl"
    assert run(["export", "--format", form, "--out", str(out), *at(world)]) == 0
    [sample] = map(json.loads, out.read_text().splitlines())
    taught = [message for message in sample["messages"] if message["role"] == "assistant" and message[key]]
    rows = world.rows(TrajectoryMessage, "position", "content", "tool_calls", trajectory_id=name, kind="turn")
    assert {position for position, _, _ in rows} == {1, 2}
    calls = [[json.loads(call["arguments"]) for call in made] for _, _, made in rows]
    exported = [
        [
            json.loads(arguments) if isinstance(arguments := call["function"]["arguments"], str) else arguments
            for call in message["tool_calls"]
        ]
        for message in taught
    ]
    assert exported == calls
    assert [message.get("content") or "" for message in taught] == [content for _, content, _ in rows]
    assert all(message[key] == 0 for message in sample["messages"] if message["role"] != "assistant" and key in message)


def test_the_list_has_curated_trajectories_and_graphs_on_demand(
    curated: tuple[CurationWorld, str], capsys: pytest.CaptureFixture[str]
) -> None:
    world, name = curated
    assert run(["curate", "list", "--json", *at(world)]) == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [name]
    assert run(["curate", "list", "--graphs", *at(world)]) == 0
    assert "2 graphs, 2 converged" in capsys.readouterr().out


def test_a_page_shows_each_window_with_its_candidates(
    curated: tuple[CurationWorld, str], capsys: pytest.CaptureFixture[str]
) -> None:
    world, name = curated
    assert run(["curate", "show", name[:6], *at(world)]) == 0
    page = capsys.readouterr().out
    assert f"trajectory {name}: accepted" in page
    assert "stage 1, window 1, after step 0: 0 nodes established, floor 0.5" in page
    assert "frontier: listing, absent, repro" in page
    assert "2 on 0 at 2 to again" in page
    assert "committed 5 steps of candidate 2 (floor)" in page
    assert run(["curate", "show", name, "--json", *at(world)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["windows"][0]["candidates"][2]["rewrite"]["text"] == "Before I go on, a check."


def test_a_page_is_of_a_graph_or_of_a_curated_trajectory(
    curated: tuple[CurationWorld, str], capsys: pytest.CaptureFixture[str]
) -> None:
    world, name = curated
    graph = world.windows(name)[0]["graph_id"]
    assert run(["curate", "show", graph, *at(world)]) == 0
    assert f"graph {graph}: converged" in capsys.readouterr().out
    assert run(["curate", "show", "zz", *at(world)]) == 2
    assert "no id begins with 'zz'" in capsys.readouterr().err
    assert run(["curate", "show", name, "--svg", "x.svg", *at(world)]) == 2
    assert "--svg draws graphs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "unsafe-local"], "plain processes take no snapshots"),
        (["--windows", "window=3,stride=4"], "a stride of 4 steps is more than the window of 3"),
        (["--graph", "zz"], "no graph's id begins with 'zz'"),
        (["nothing"], "chain"),
    ],
)
def test_bad_input_is_one_line(
    curated: tuple[CurationWorld, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    words: str,
) -> None:
    world, _ = curated
    script = tmp_path / "script.jsonl"
    script.write_text("", encoding="utf-8")
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(script))
    monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.folder / "data"))
    backend = [] if "--backend" in arguments else ["--backend", "local"]
    assert run(["curate", "run", *arguments, *backend, "--dry-run", *at(world)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1


def test_without_a_model_it_says_so_in_one_line(
    curated: tuple[CurationWorld, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = curated
    for name in ("PRCHAIN_LLM_MODEL", "PRCHAIN_LLM_SCRIPT"):
        monkeypatch.delenv(name, raising=False)
    assert run(["curate", "run", "--backend", "local", *at(world)]) == 2
    error = capsys.readouterr().err
    assert "no model is configured" in error
    assert len(error.strip().splitlines()) == 1


# ---- the curator's place, by rule


def made(words: str, command: str, step: int, error: str | None = None) -> list[Entry]:
    """A step that runs a command."""
    call = ToolCall("c", "bash", json.dumps({"command": command}))
    return [
        Entry(2 * step, 1, 1, step, EntryKind.TURN, "assistant", words, tool_calls=(call,)),
        Entry(2 * step + 1, 1, 1, step, EntryKind.OBSERVATION, "tool", "out", tool_call_id="c", error=error),
    ]


def fact(name: str, command: str, kind: NodeKind = NodeKind.STATIC_FACT) -> Node:
    return Node(name, kind, f"fact {name}", Action(ActionTool.BASH, command=command))


NODES = (
    fact("far", "cat src/unseen_part.py"),
    fact("near", "cat src/seen.py"),
    fact("late", "cat src/seen.py src/more.py"),
    Node("edit", NodeKind.CODE_EDIT, "edit", Action(ActionTool.STR_REPLACE, path="src/seen.py", old="a", new="b")),
)
GRAPH = ProcessGraph(NODES, (Prerequisite("near", "late", "order"),))


def seed(*steps: list[Entry], counted: tuple[int, ...] = ()) -> ScoredSeed:
    entries = [entry for step in steps for entry in step]
    progress = [StepProgress(0.5, ("x",)) if place in counted else StepProgress() for place in range(len(steps))]
    return ScoredSeed(steps_of(entries), [Standing()] * (len(steps) + 1), progress)


def shown(_: int) -> Surfaced:
    from trajectories.agents.steps.entities import entities

    surfaced = Surfaced()
    surfaced.add(entities("src/seen.py is there"))
    return surfaced


def test_the_first_step_without_progress_is_rewritten_towards_the_nearest_node() -> None:
    steps = seed(made("a", "ls", 1), made("b", "ls src", 2), counted=(0,))
    assert pick_by_rule(GRAPH, steps, (), shown) == (1, "near")


@pytest.mark.parametrize(
    "idle", [made("", "ls docs", 3), made("c", "ls src", 3), made("c", "ls docs", 3, error="exit_code")]
)
def test_a_step_that_repeats_fails_or_says_nothing_comes_first(idle: list[Entry]) -> None:
    assert pick_by_rule(GRAPH, seed(made("a", "ls", 1), made("b", "ls src", 2), idle), (), shown) == (2, "near")


def test_what_was_tried_is_not_picked_again() -> None:
    assert pick_by_rule(GRAPH, seed(made("a", "ls", 1)), {(0, "near")}, shown) == (0, "far")
    assert pick_by_rule(GRAPH, seed(made("a", "ls", 1)), {(0, "near"), (0, "far")}, shown) is None


def test_a_seed_that_makes_progress_with_every_step_is_left_as_it_is() -> None:
    assert pick_by_rule(GRAPH, seed(made("a", "ls", 1), counted=(0,)), (), shown) is None


def test_edits_are_no_targets() -> None:
    assert {name for _, name in places_of(GRAPH, seed(made("a", "ls", 1)), ())} == {"near", "far"}
