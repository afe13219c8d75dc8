"""Rollouts by an agent program of others: a toy, in folders of this machine, whose endpoint is ours."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from environments.backends import BACKENDS
from prchain.cli import cli
from prchain.core.errors import BuildFailed, EndpointUnreachable, UsageError
from prchain.core.llm.model import Request
from prchain.core.settings import Settings
from sql.tables import Trajectory, TrajectoryMessage, TrajectoryStage
from tests.trajectories.rolloutworld import (
    PolicyModel,
    PolicyReply,
    RolloutWorld,
    bash,
    rollout_world,
    works,
)
from tests.trajectories.toyagent import install_toy
from trajectories.export.masks import loss_decisions
from trajectories.model import AgentLimits, EntryKind
from trajectories.options import RolloutOptions
from trajectories.programs.choice import require_program
from trajectories.programs.spec import Programs, filled, parse_program
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

OPTIONS: dict[str, Any] = {"scaffold": "toy", "context": "stage", "refinements": 0}
GOOD = 'help = "h"\nversion = "1"\nlicence = "MIT"\ninstall = "true"\ncommand = "true"\n'


def finishes(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    """Works without a draft, and says something to whoever wants a title."""
    if str(messages[0]["content"]).startswith("A title"):
        return PolicyReply("Parts of a till")
    reply = works(messages)
    command = str(reply.arguments.get("command", "")).replace("  # draft", "")
    return bash(command) if reply.tool == "bash" else reply


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2)]) as made:
        yield made


def rolled(world: RolloutWorld, mode: str = "works", model: PolicyModel | None = None, **options: Any) -> str:
    install_toy(world.folder, mode)
    return roll(world.context(model or PolicyModel(finishes), **{**OPTIONS, **options}), world.chains[0], 0)


def test_it_works_through_a_chain_and_what_its_model_was_told_is_kept(world: RolloutWorld) -> None:
    name = rolled(world)
    assert world.outcome(name)[0] == "accepted"
    with world.store.reading() as tx:
        entries = read_entries(tx, name)
    assert [entry.ordinal for entry in entries] == list(range(len(entries)))
    for position in (1, 2):
        own = [entry for entry in entries if entry.position == position]
        kinds = [str(entry.kind) for entry in own]
        assert kinds == ["system", "query", "turn", "observation", "turn", "observation", "turn"]
        assert own[0].content == "You are a toy. Today is 2026-11-28."
        assert own[1].content.startswith("Please do this:\n") and f"Task {position} of 2" in own[1].content
        assert own[1].details["query"] in own[1].details["asked"]
        assert own[3].tree and own[5].tree is None, "the tree is taken with each request, and kept where it is new"
        assert [entry.step for entry in own[2:]] == [3 * position + step for step in (-2, -2, -1, -1, 0)]
    assert world.stages(name) == [(1, "accepted"), (2, "accepted")]
    assert world.rows(TrajectoryStage, "steps", "endings", trajectory_id=name) == [(3, ["submitted"])] * 2
    ((tools, scaffold, steps),) = world.rows(Trajectory, "tools", "scaffold", "steps", id=name)
    assert ([tool["function"]["name"] for tool in tools], scaffold, steps) == (["bash"], "toy", 6)
    under_loss = [decision.train for decision in loss_decisions(entries, {1: 1, 2: 1})]
    assert sum(under_loss) == len([call for call in world.calls() if call[0] == "agent"]) == 6


def test_a_request_beside_the_conversation_is_paid_and_not_in_it(world: RolloutWorld) -> None:
    name = rolled(world, "titles")
    assert world.outcome(name)[0] == "accepted"
    contents = [row[0] for row in world.rows(TrajectoryMessage, "content", trajectory_id=name)]
    assert len(contents) == 14 and not [text for text in contents if "title" in text.lower()]
    assert len([call for call in world.calls() if call[0] == "agent"]) == 8


def test_a_conversation_that_begins_anew_with_a_summary_is_the_one_that_ends_the_attempt(world: RolloutWorld) -> None:
    name = rolled(world, "compacts")
    assert world.outcome(name)[0] == "accepted"
    with world.store.reading() as tx:
        entries = read_entries(tx, name)
    queries = [entry.content for entry in entries if entry.kind is EntryKind.QUERY]
    assert len(queries) == 2 and all(text.startswith("You have begun.") for text in queries)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("crashes", "it ended with exit code 1; it last printed: toy agent: hello out of ideas; my key is"),
        ("says nothing", "it ended without a reply of its model; it last printed: toy agent: hello"),
    ],
)
def test_one_that_fails_is_the_agents_failure_with_its_last_words(world: RolloutWorld, mode: str, words: str) -> None:
    name = rolled(world, mode)
    outcome, accepted, reason = world.outcome(name)
    assert (outcome, accepted) == ("agent_failed", 0)
    assert words in str(reason) and "ghp_" not in str(reason)
    assert world.rows(TrajectoryStage, "endings", trajectory_id=name, position=1) == [(["failed"],)]
    assert roll(world.context(PolicyModel(finishes), **OPTIONS), world.chains[0], 0) == name, "it is not tried again"


def test_a_limit_ends_one_that_never_ends_with_all_that_it_started(world: RolloutWorld) -> None:
    endless = PolicyModel(
        lambda messages: bash(f"echo {len(messages)} >> log") if "toy" in str(messages[0]) else works(messages)
    )
    name = rolled(world, "stubborn", endless, stage_limits=AgentLimits(steps=3))
    assert world.rows(TrajectoryStage, "steps", "endings", trajectory_id=name, position=1) == [(3, ["step_limit"])]
    assert len([call for call in world.calls() if call[:2] == ("agent", f"{name}/1")]) == 3
    grown = next(world.folder.rglob("grown"))
    before = grown.stat().st_size
    time.sleep(0.3)
    assert grown.stat().st_size == before, "what it forked ignores SIGTERM"


def test_a_model_that_cannot_be_had_is_no_failure_of_the_agents_and_what_was_paid_is_not_paid_again(
    world: RolloutWorld,
) -> None:
    asked: list[Request] = []

    def breaks(request: Request) -> None:
        asked.append(request)
        if len(asked) == 2:
            raise EndpointUnreachable("gone")

    install_toy(world.folder)
    context = replace(world.context(PolicyModel(finishes, breaks), **OPTIONS), retries=0)
    name = roll(context, world.chains[0], 0)
    assert world.outcome(name)[0] == "endpoint_unreachable"
    assert roll(world.context(PolicyModel(finishes, asked.append), **OPTIONS), world.chains[0], 0) == name
    assert world.outcome(name)[0] == "accepted"
    bodies = [json.dumps(request.body, sort_keys=True) for request in asked if request.body is not None]
    assert len(bodies) == 7 and len(set(bodies)) == 6, "only the one that broke is asked twice"


def test_a_budget_holds(world: RolloutWorld) -> None:
    install_toy(world.folder)
    context = replace(world.context(PolicyModel(finishes), budget=0.0001, **OPTIONS), retries=0)
    name = roll(context, world.chains[0], 0)
    assert world.outcome(name)[0] == "budget_exceeded"
    assert world.calls() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tools": "bash"}, "tools of its own"),
        ({"track_steps": False}, "needs its trees"),
        ({"scaffold": "nobody"}, "there is no scaffold 'nobody'; known are mini, "),
    ],
)
def test_what_it_cannot_have_is_refused_in_one_line(world: RolloutWorld, options: dict[str, Any], words: str) -> None:
    install_toy(world.folder)
    with pytest.raises(UsageError) as refused:
        world.context(**{**OPTIONS, **options})
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_another_program_is_another_trajectory_and_another_help_is_not(world: RolloutWorld) -> None:
    first = rolled(world)
    cases: list[tuple[dict[str, Any], bool]] = [({"help": "another text"}, True), ({"version": "1.1"}, False)]
    for more, same in cases:
        install_toy(world.folder, **more)
        assert (roll(world.context(PolicyModel(finishes), **OPTIONS), world.chains[0], 0) == first) is same


@pytest.mark.parametrize("name", list(Programs()))
def test_each_that_ships_is_whole(name: str) -> None:
    program = Programs()[name]
    names = ("base_url", "token", "model", "folder", "home", "session", "task", "workdir")
    for text in (program.command, *([program.next.command] if program.next else [])):
        command = filled(text, dict.fromkeys(names, "it's"), for_shell=True)
        assert "{task}" in text and "{" not in command.replace("${", "")
    assert program.version in program.install, "what is installed is pinned"
    assert {"{base_url}", "{token}"} <= {
        word
        for text in (*program.variables.values(), program.command)
        for word in ("{base_url}", "{token}")
        if word in text
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("help = ", "toy.toml is no TOML"),
        ('help = "h"', "toy.toml: version: Field required"),
        (GOOD + 'speed = "high"', "toy.toml: speed: Extra inputs are not permitted"),
        (GOOD + 'protocol = "messages"', "toy.toml: protocol: Input should be 'chat/completions'"),
        (GOOD + '[variables]\n"A B" = "x"', "toy.toml: variables.A B"),
        (GOOD + "[next]", "toy.toml: next.command: Field required"),
        (GOOD + 'volatile = ["(date"]', "toy.toml: volatile.0: Value error, no regular expression"),
        (GOOD + 'volatile = ["(?m)^date"]', "toy.toml: volatile.0: Value error, no regular expression"),
    ],
)
def test_a_file_that_is_no_agent_has_one_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_program("toy", text)
    assert str(refused.value).startswith(words) and "\n" not in str(refused.value)


def test_words_in_braces_are_filled_in_once_and_quoted_for_the_shell() -> None:
    values = {"model": "a b{token}", "token": "$x"}
    assert filled('{"m": {"{model}": {}}, "t": "{token}", "{other}": 1}', values) == (
        '{"m": {"a b{token}": {}}, "t": "$x", "{other}": 1}'
    )
    assert filled("run {model} {token}", values, for_shell=True) == "run 'a b{token}' '$x'"


def test_an_install_that_fails_leaves_what_stood_there(tmp_path: Path) -> None:
    install_toy(tmp_path)
    before = sorted(path.name for path in (tmp_path / "data" / "agents").iterdir())
    file = tmp_path / "agents" / "toy.toml"
    file.write_text(GOOD.replace('"true"', '"echo no such package >&2; exit 3"', 1))
    settings = Settings(data_dir=tmp_path / "data", agents_dir=tmp_path / "agents")
    program = Programs(tmp_path / "agents")["toy"].program
    with pytest.raises(BuildFailed, match="toy cannot be installed"):
        BACKENDS["unsafe-local"].install_program(program, settings)
    assert not BACKENDS["unsafe-local"].has_program(program, settings)
    assert sorted(path.name for path in (tmp_path / "data" / "agents").iterdir()) == before


def test_the_command_installs_once_and_says_what_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_toy(tmp_path)
    shutil.rmtree(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for name, value in (("DATA_DIR", "data"), ("AGENTS_DIR", "agents"), ("DB", "prchain.db")):
        monkeypatch.setenv(f"PRCHAIN_{name}", value)

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["rollouts", *words])

    plain = ("--backend", "unsafe-local", "--unsafe-local")
    outputs = [run("install", "toy", *plain).output for _ in range(2)]
    assert outputs == [
        "installing toy 1.0 (MIT)\ntoy 1.0 is installed, 0.0 MB\n",
        "toy 1.0 was installed before, 0.0 MB\n",
    ]
    found = json.loads(run("install", "toy", "--renew", "--json", *plain).stdout)
    size = found.pop("bytes")
    assert found == {"name": "toy", "version": "1.0", "licence": "MIT", "installed": True}
    assert 2000 < size < 100_000, "a small file, in whole blocks"
    listed = run("install", *plain).output.splitlines()
    assert [line.split()[0] for line in listed] == ["name", "mini-swe-agent", "opencode", "qwen-code", "toy"]
    assert listed[1].endswith(" no") and listed[-1].split() == ["toy", "1.0", "MIT", "0.0", "MB"]
    rows = json.loads(run("install", "--json", *plain).stdout)["programs"]
    assert rows[-1] == {**found, "bytes": size, "goes_on": True}
    (whole,) = tmp_path.glob("data/agents/*/.whole")
    whole.write_text("")
    assert run("install", *plain).output.splitlines()[-1].split()[-1] == "yes", "one that did not tell its size"
    assert run("install", "--renew", *plain).exit_code == 2
    unknown = run("install", "nobody", *plain)
    assert isinstance(unknown.exception, UsageError)
    assert "there is no agent program 'nobody'; known are mini-swe-agent, opencode, qwen-code, toy" in str(
        unknown.exception
    )
    assert "opencode: opencode, its own program" in " ".join(run("run", "--help").output.split())


def test_one_that_is_not_installed_is_named_before_anything_is_begun(world: RolloutWorld) -> None:
    install_toy(world.folder)
    settings = world.settings()
    shutil.rmtree(world.folder / "data")
    backend = BACKENDS["unsafe-local"]
    with pytest.raises(UsageError, match=r"toy is not installed; run `prchain rollouts install toy --backend unsafe-"):
        require_program(RolloutOptions(backend="unsafe-local", **OPTIONS), settings, backend)
    require_program(RolloutOptions(), settings, backend)
