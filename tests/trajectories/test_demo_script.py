"""The demo's script: it answers each state of each conversation in one way, without memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.model import Message, Request
from prchain.core.llm.prompts import load_prompt
from prchain.core.llm.scripted import ScriptedModel
from prchain.demo.graph_script import read_graph_answers
from prchain.demo.guidance_script import SYSTEM, guidance_lines, read_guidance_answers, window_reply
from prchain.demo.library import build
from prchain.demo.script import ChainAnswers, StageAnswers, prose, read_answers, write_script
from prchain.demo.turns import AgentTurn
from prchain.demo.window_script import Author, read_window_answers
from tests.trajectories.demoworld import git, landings
from trajectories.agents.guidance.assessment import TaskStatus
from trajectories.agents.guidance.reply import read_reply
from trajectories.agents.guidance.taxonomy import load_taxonomy

ANSWERS = read_answers()
STAGES = [stage for chain in ANSWERS.values() for stage in chain.stages]
TURNS = [turn for stage in STAGES for attempt in stage.attempts for turn in attempt.turns]
WINDOWS = read_window_answers().stages
CURATED = [turn for stage in WINDOWS for turn in stage.steps]
GUIDED = read_guidance_answers()
BASH_SYSTEM, FULL_SYSTEM = (
    load_prompt("trajectories.agents.scaffolds", f"system_{tools}")
    .render(workdir="/testbed", timeout="120", most="10,000")[0]
    .content
    for tools in ("bash", "full")
)


def model(tmp_path: Path, workdir: str | None = "/testbed") -> ScriptedModel:
    (tmp_path / "script.jsonl").write_text(write_script(workdir), encoding="utf-8")
    return ScriptedModel.load(tmp_path / "script.jsonl")


def ask(scripted: ScriptedModel, purpose: str, *texts: str) -> Any:
    messages = tuple(Message("user", text) for text in texts)
    return scripted.complete(Request(messages=messages, max_tokens=100, purpose=purpose, subject="x"))


def conversation(chain: ChainAnswers) -> list[tuple[str | None, AgentTurn | None]]:
    """The messages to the agent, and its turns, in order: (text, None) or (None, turn)."""
    out: list[tuple[str | None, AgentTurn | None]] = []
    for stage in chain.stages:
        out.append((f"Task:\n{prose(stage.query)}\nGo.", None))
        for place, attempt in enumerate(stage.attempts):
            out += [(None, turn) for turn in attempt.turns]
            if place + 1 < len(stage.attempts):
                out.append((f"Review:\n{attempt.comment}\n\nSomething else.", None))
    return out


@pytest.mark.parametrize("name", ANSWERS)
def test_every_state_of_a_conversation_has_its_own_answer_also_after_a_new_start(name: str, tmp_path: Path) -> None:
    replies: list[str] = []
    going_on = model(tmp_path)
    for words, turn in conversation(ANSWERS[name]):
        if turn is None:
            assert words is not None
            replies.append(words)
        else:
            assert ask(going_on, "agent", *replies).text == turn.say
            assert ask(model(tmp_path), "agent", *replies).text == turn.say
            replies.append(turn.say)


def test_what_tells_states_apart_is_said_once() -> None:
    turns = [turn.say for turn in (*TURNS, *(turn for turn in CURATED if turn.by is not Author.PLAIN))]
    turns += [turn.say for turn in (*GUIDED.loop, *GUIDED.steps)]
    assert [text for text, count in Counter(turns).items() if count > 1] == []
    every = " ".join([*turns, *(window.guidance for window in GUIDED.windows)])
    assert [text for text in turns if every.count(text) > 1] == []


def test_every_call_has_an_id_of_its_own_within_its_chain() -> None:
    lines = [json.loads(line) for line in write_script("/testbed").splitlines()]
    for chain in ANSWERS.values():
        replies = {turn.say for stage in chain.stages for attempt in stage.attempts for turn in attempt.turns}
        ids = [call["id"] for line in lines if line["reply"] in list(replies) for call in line["tool_calls"]]
        assert len(ids) == len(set(ids)) > 0


def test_every_attempt_ends_with_its_submission_and_every_turn_does_one_kind_of_thing() -> None:
    for stage in STAGES:
        for attempt in stage.attempts:
            assert [turn.submit for turn in attempt.turns] == [False] * (len(attempt.turns) - 1) + [True]
    for turn in TURNS:
        assert sum((turn.bash is not None, turn.create is not None, bool(turn.replace), turn.submit)) == 1


def test_the_judge_knows_an_attempt_by_lines_that_stand_neither_in_the_reference_nor_in_the_query(
    tmp_path: Path,
) -> None:
    build(tmp_path / "measures")
    patches = {
        number: git(tmp_path / "measures", "diff", f"{sha}^1", sha)
        for number, sha in landings(tmp_path / "measures").items()
    }
    for stage in STAGES:
        for attempt in stage.attempts:
            assert [number for number, patch in patches.items() if attempt.sees in patch] == []
            assert not any(attempt.sees in stage.query for stage in STAGES)


def test_one_stage_is_mended_after_a_review_and_one_chain_is_refused_four_times() -> None:
    rounds = {
        name: [[attempt.score >= 0.8 for attempt in stage.attempts] for stage in chain.stages]
        for name, chain in ANSWERS.items()
    }
    assert rounds == {
        "columns": [[True], [True]],
        "own": [[False] * 4, []],
        "read": [[True], [False, True], [True]],
        "write": [[True], [True], [True]],
    }


def test_without_a_known_folder_files_are_edited_with_bash_and_to_the_same_effect(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in write_script(None).splitlines()]
    assert {call["name"] for line in lines for call in line.get("tool_calls", ())} == {"bash", "submit", "think"}
    assert "/testbed" not in write_script(None)
    assert {
        call["name"]
        for line in map(json.loads, write_script("/testbed").splitlines())
        for call in line.get("tool_calls", ())
    } == {"bash", "submit", "str_replace_editor", "think"}


def test_every_state_of_a_curated_run_has_its_own_answer(tmp_path: Path) -> None:
    scripted = model(tmp_path)
    said: list[str] = []
    for stage in WINDOWS:
        said.append(f"Task:\n{stage.opening} ...")
        for turn in stage.steps:
            if turn.by is Author.AGENT:
                assert ask(scripted, "agent", *said).text == turn.say
            elif turn.by is Author.CURATOR:
                assert ask(scripted, "curator", f"statement: {turn.target}").text == turn.say
                assert json.loads(ask(scripted, "ground", *said, turn.say).text)["valid"]
            said.append(turn.say)
            found = json.loads(ask(scripted, "establish", *said).text)["nodes"]
            assert {node["id"]: node["evidence"] for node in found} == dict(turn.establishes)


def test_the_curator_changes_what_the_agent_does_and_nothing_before(tmp_path: Path) -> None:
    scripted = model(tmp_path)
    own = ANSWERS["own"].stages[0]
    first, plain = own.attempts[0].turns[:2]
    written = next(turn for turn in CURATED if turn.by is Author.CURATOR)
    assert ask(scripted, "agent", prose(own.query)).text == first.say
    assert ask(scripted, "agent", prose(own.query), first.say).text == plain.say
    after = ask(scripted, "agent", prose(own.query), first.say, written.say).text
    assert after not in {turn.say for turn in TURNS}


def test_nodes_and_targets_of_a_curated_run_are_those_of_its_graphs() -> None:
    for stage, graph in zip(WINDOWS, read_graph_answers().values(), strict=True):
        assert graph.opening == stage.opening
        proposed = {node.id: node.statement for round_ in graph.rounds for node in round_.nodes}
        names = {name.partition(".")[0] for turn in stage.steps for name in turn.establishes}
        assert names <= proposed.keys()
        targets = {turn.target for turn in stage.steps if turn.target is not None}
        assert targets <= set(proposed.values())


def test_an_agent_with_bash_alone_loops_until_it_is_told_to_stop_and_then_works(tmp_path: Path) -> None:
    scripted = model(tmp_path)
    queries = [f"Task:\n{prose(stage.query)}\nGo." for stage in ANSWERS["write"].stages]
    said = [BASH_SYSTEM, queries[0]]
    for turn in [*GUIDED.loop, *[GUIDED.loop[-1]] * 10]:
        assert ask(scripted, "agent", *said).text == turn.say
        said.append(turn.say)
    told = [*said, f"Its guidance:\n{GUIDED.windows[0].guidance.strip()}\n\nWeigh this."]
    for turn in GUIDED.steps:
        reply = ask(scripted, "agent", *told)
        assert reply.text == turn.say
        told.append(turn.say)
        if "COMPLETE_TASK" in reply.tool_calls[0].arguments and len(queries) > 1:
            del queries[0]
            told.append(queries[0])
    assert len(queries) == 1


def test_each_window_has_a_reply_that_can_be_read_and_quotes_what_was_done(tmp_path: Path) -> None:
    scripted = model(tmp_path)
    steps = [*GUIDED.loop, *GUIDED.steps]
    commands = "\n".join(turn.bash or "" for turn in steps)
    for window in GUIDED.windows:
        end = next(place for place, turn in enumerate(steps) if turn.say == window.sees)
        text = ask(scripted, "prm", "You supervise", *(turn.say for turn in steps[max(end - 8, 0) : end + 1])).text
        assert text == window_reply(window)
        assessment = read_reply(text, load_taxonomy(), action=False)
        assert assessment.guidance == window.guidance.strip()
        assert {it.category: (it.evidence, it.recovery) for it in assessment.detections} == {
            name: (it.evidence, it.recovery) for name, it in window.detects.items()
        }
        assert all(it.evidence in commands for it in assessment.detections)
        assert (assessment.status is TaskStatus.ON_TRACK) == (not window.detects)


def test_lines_of_guided_rollouts_answer_no_others() -> None:
    assert SYSTEM in BASH_SYSTEM
    assert SYSTEM not in FULL_SYSTEM
    own = {line["contains"] for line in guidance_lines({turn.say: turn for turn in TURNS})}
    others = [
        json.dumps(line, ensure_ascii=False)
        for line in map(json.loads, write_script("/testbed").splitlines())
        # The lines of the agent that cheats ask for its system prompt, too, and for its own chain.
        if line.get("usage") != "estimate" and not isinstance(line.get("contains"), list)
    ]
    assert not any(text in other for text in own for other in others)
    assert not any(text in stage.query for text in own for stage in STAGES)


def test_guided_steps_do_the_same_work_as_those_of_the_plain_rollout() -> None:
    turns = [turn for stage in ANSWERS["write"].stages for attempt in stage.attempts for turn in attempt.turns]
    changing = [turn.say for turn in turns if turn.create or turn.replace]
    followed = [turn.like for turn in GUIDED.steps if turn.like is not None]
    assert followed == [turn.say for turn in turns if turn.say in followed]
    # One of the plain rollout's edits misses its place.
    assert len([say for say in changing if say not in followed]) == 1
    assert all((turn.like is None) != (turn.bash is None) for turn in (*GUIDED.loop, *GUIDED.steps))


def test_the_script_of_a_stage_is_asked_by_title(tmp_path: Path) -> None:
    scripted = model(tmp_path)
    for stage in STAGES:
        title = f"title: {stage.title} (#1)"
        assert json.loads(ask(scripted, "query", title).text) == {"query": prose(stage.query)}
        assert json.loads(ask(scripted, "plan", title).text) == stage.plan.model_dump()


def titles(stages: Sequence[StageAnswers]) -> list[str]:
    return [stage.title for stage in stages]


def test_no_title_is_part_of_another_one() -> None:
    assert [title for title in titles(STAGES) for other in titles(STAGES) if title != other and title in other] == []


@given(st.text(alphabet="ab \n"))
def test_prose_has_no_line_breaks_but_between_paragraphs(text: str) -> None:
    once = prose(text)
    assert prose(once) == once
    assert once.split() == text.split()
    assert all("\n" not in paragraph for paragraph in once.split("\n\n"))
