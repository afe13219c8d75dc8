"""Options: how many there are, how they are told, and what keys of a flag take."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import pytest

import prchain.cli
from prchain.cli import COMPLETE, cli, run
from prchain.completion import BashShell
from prchain.core.cli_options import ToldOption
from prchain.core.keyed import KeyedOption
from prchain.renamed import OLD
from research.options_page import ShownCommand, all_commands, page
from trajectories.model import AgentLimits

ROOT = Path(__file__).parents[2]

COMMANDS = {one.words: one for one in all_commands()}

MOST_OPTIONS = 30
MOST_LINES = 100

KIND = {
    "integer range": "integer",
    "float range": "float",
    "directory": "path",
    "file": "path",
    "choice": "text",
}
"""What click calls a type, to what it is of."""


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_has_at_most_30_options_and_its_help_100_lines(words: str) -> None:
    one = COMMANDS[words]
    assert len(one.options) <= MOST_OPTIONS, "make it a key of a flag, or do without (prchain/core/told.py)"
    assert one.help_lines <= MOST_LINES, "shorten it"


def test_many_options_stand_under_headings() -> None:
    text = COMMANDS["rollouts run"].command.get_help(COMMANDS["rollouts run"].context)
    headings = re.findall(r"^(\w+):$", text, re.M)
    assert headings == ["Which", "Cost", "Agent", "Stages", "Sandbox", "Guidance", "Output"]
    assert "Options:" in COMMANDS["status"].command.get_help(COMMANDS["status"].context)


def test_a_told_option_says_who_needs_it() -> None:
    keys = [key for one in COMMANDS.values() for option in one.options for key in told(option)]
    assert len(keys) > 50
    assert [key.field for key in keys if not key.told.why or not key.told.help] == []


def told(option: click.Option) -> list[Any]:
    if isinstance(option, KeyedOption):
        return option.type.every
    return [option.key] if isinstance(option, ToldOption) else []


def test_a_flag_takes_the_same_kind_of_value_everywhere() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for one in COMMANDS.values():
        for option in one.options:
            kinds[option.opts[0]].add("flag" if option.is_flag else KIND.get(option.type.name, option.type.name))
    assert {flag: names for flag, names in kinds.items() if len(names) > 1} == {}


def test_the_page_of_options_is_what_the_classes_tell() -> None:
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert page() == text, "run: python -m research.options_page > docs/options.md"


# ---- old names


@pytest.mark.parametrize(("words", "flag"), [(words, flag) for words, flags in OLD.items() for flag in flags])
def test_a_flag_that_went_says_what_to_write_and_is_in_no_help(
    words: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = COMMANDS[words]
    assert flag not in {name for option in command.options for name in (*option.opts, *option.secondary_opts)}
    for written in ([flag], [f"{flag}=1"], [flag, "1"]):
        assert run([*words.split(), *written]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith(f"prchain: error: {flag} of `prchain {words}` is gone; write ")
        assert len(err.splitlines()) == 1
    now = OLD[words][flag].split()
    flags = {name: option for option in command.options for name in option.opts}
    if now[0] != "nothing:":
        option = flags[now[0]]
        if isinstance(option, KeyedOption) and "=" in now[-1]:
            key = now[-1].rpartition(":")[2].partition("=")[0]
            assert key in option.type.keys, "the key is one"


# ---- keys


def given(command: ShownCommand, *words: str) -> dict[str, Any]:
    """The parameters that a command line makes."""
    context = command.command.make_context(command.words, [*words], parent=click.Context(cli))
    return context.params


RUN = COMMANDS["rollouts run"]


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (("--agent", "context_tokens=9,overflow=elide"), "agent", {"context_tokens": 9, "overflow": "elide"}),
        (("--agent", "temperature=1", "--agent", "context=stage"), "agent", {"temperature": 1.0, "context": "stage"}),
        (("--gate", "both"), "gate", {"gate": "both"}),
        (
            ("--gate", "both:threshold=0.9,sees=tests"),
            "gate",
            {"gate": "both", "threshold": 0.9, "judge_sees": "tests"},
        ),
        (("--gate", "threshold=0.9"), "gate", {"threshold": 0.9}),
        (("--sandbox", "track=off"), "sandbox", {"track_steps": False}),
        (("--prm", "--limit", "1"), "prm", {"variant": "D"}),
        (("--prm", "S:every=3"), "prm", {"variant": "S", "every": "3"}),
        (("--prm", "style=concise,example=off"), "prm", {"style": "concise", "example": "false"}),
        ((), "prm", None),
        ((), "stage_limits", AgentLimits(steps=100)),
        (("--stage-limits", "usd=2"), "stage_limits", AgentLimits(steps=100, usd=2.0)),
        (("--chain-limits", "minutes=2"), "chain_limits", AgentLimits(seconds=120.0)),
    ],
)
def test_keys_are_read(words: tuple[str, ...], name: str, value: Any) -> None:
    assert given(RUN, *words)[name] == value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "contxt_tokens=9"), "'contxt_tokens' is no key; did you mean context_tokens? See "),
        (("--agent", "zzz=9"), "known are context, calls, shell, temperature"),
        (("--agent", "overflow"), "it takes KEY=VALUE,..., not 'overflow'; keys are context"),
        (("--agent", ""), "it takes KEY=VALUE"),
        (("--agent", "overflow=elid"), "overflow: 'elid' is not one of 'stop', 'elide'."),
        (("--agent", "temperature=3"), "temperature: 3.0 is not in the range 0<=x<=2."),
        (("--agent", "temperature=1,temperature=2"), "temperature is given twice."),
        (("--agent", "temperature=1", "--agent", "temperature=2"), "temperature is given twice."),
        (
            ("--gate", "bth"),
            "'bth' is not one of 'judge', 'tests', 'both', 'either', "
            "'judge+audit', 'tests+audit', 'both+audit', 'either+audit'.",
        ),
        (
            ("--gate", "both:"),
            "it takes judge|tests|both|either[+audit][:KEY=VALUE,...], not ''",
        ),
        (("--sandbox", "track=maybe"), "track: 'maybe' is not one of 'on', 'off'."),
    ],
)
def test_what_cannot_be_read_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rollouts", "run", *words]) == 2
    err = capsys.readouterr().err
    assert f"'{words[0]}': " in err and said in err and len(err.splitlines()) == 1


def test_help_in_the_place_of_a_value_prints_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rollouts", "run", "--agent", "help"]) == 0
    assert re.search(r"^overflow +stop\|elide +When the context is full", capsys.readouterr().out, re.M)


def test_a_default_of_one_command_alone_is_told_and_holds() -> None:
    sweep = given(COMMANDS["prm sweep"])
    assert (sweep["gate"], sweep["refinements"]) == ({"gate": "tests"}, 0)
    assert (sweep["agent"], sweep["stage_limits"]) == ({"temperature": 0.0}, AgentLimits(steps=75))
    text = COMMANDS["prm sweep"].command.get_help(COMMANDS["prm sweep"].context)
    assert "--gate tests|judge" in text and "steps=75" in text


# ---- completion


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("--agent ov", ["overflow="]),
        ("--agent overflow=elide,con", ["elide,context=", "elide,context_tokens="]),
        ("--agent overflow=", ["stop", "elide"]),
        ("--agent overflow = s", ["stop"]),
        ("--gate bo", ["both", "both+audit"]),
        ("--gate=bo", ["both", "both+audit"]),
        ("--gate both : thr", ["threshold="]),
        ("--prm D : every = 3,ke", ["3,keep="]),
        ("--stage-limits st", ["steps="]),
    ],
)
def test_the_shell_completes_heads_keys_and_values(
    typed: str, offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"prchain rollouts run {typed}"
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    lines = BashShell(cli, {}, "prchain", COMPLETE).complete().splitlines()
    assert [line.removeprefix("plain,") for line in lines] == offered


# ---- prchain.toml


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `rollouts run` is called with."""
    found: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(RUN.command, "callback", lambda **params: found.update(params))
    return found


def test_the_file_has_defaults_of_a_command_and_flags_go_before_them(seen: dict[str, Any]) -> None:
    Path(prchain.cli.FILE).write_text(
        '[defaults.rollouts.run]\non_fail = "continue"\ngate = "both:threshold=0.9"\n'
        "agent = { context_tokens = 65536 }\nstage_limits = { usd = 2 }\n"
    )
    assert run(["rollouts", "run"]) == 0
    assert (seen["on_fail"], seen["gate"]) == ("continue", {"gate": "both", "threshold": 0.9})
    assert seen["stage_limits"] == AgentLimits(steps=100, usd=2.0)
    assert run(["rollouts", "run", "--gate", "judge", "--agent", "overflow=elide", "--on-fail", "stop"]) == 0
    assert (seen["on_fail"], seen["gate"]) == ("stop", {"gate": "judge", "threshold": 0.9})
    assert seen["agent"] == {"context_tokens": 65536, "overflow": "elide"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[defaults.rollout.run]", "defaults.rollout is no command that it can hold; did you mean rollouts?"),
        ("[defaults.rollouts.runs]", "defaults.rollouts.runs is no command that it can hold; did you mean run?"),
        (
            "[defaults.rollouts.run]\ngat = 1",
            "run.gat is no option that it can hold; did you mean gate",
        ),
        ("[defaults.rollouts.run]\nunsafe_local = true", "defaults.rollouts.run.unsafe_local is no option"),
        ("[defaults.rollouts.run]\nlimit = 1", "defaults.rollouts.run.limit is no option"),
        ("[defaults.rollouts.run]\nrefinements = -1", "defaults.rollouts.run.refinements: -1 is not in the range"),
        ("[defaults.rollouts.run]\nagent = {overflw = 1}", "'overflw' is no key; did you mean overflow?"),
        ("[defaults.rollouts]\nrun = 3", "defaults.rollouts.run must be a table"),
    ],
)
def test_what_the_file_cannot_hold_is_one_line(
    text: str, said: str, seen: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(prchain.cli.FILE).write_text(text)
    assert run(["rollouts", "run"]) == 2
    err = capsys.readouterr().err
    assert f"prchain.toml: {said}" in err or said in err
    assert len(err.splitlines()) == 1 and seen == {}


@pytest.mark.parametrize("words", ["tasks build", "environments validate", "rollouts run", "prm sweep"])
def test_a_chain_that_is_named_twice_is_refused_and_not_passed_over(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words.split(), "--chain", "aa", "--chain", "bb"]) == 2
    assert capsys.readouterr().err.startswith(
        "prchain: error: --chain is given twice, and takes one; run the command for each. See "
    )
