"""The commands of the demo, in order, each with what is printed before it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prchain.demo.backend import ChosenBackend
from prchain.demo.folder import LIST

SAMPLES = "samples.jsonl"

PAGES = "pages"
"""The folder of what `prchain view` writes."""

GRAPH_CHAIN = "3976"
"""Beginning of the id of the chain of #4 and #11, which is the same everywhere; the script knows its first stage."""

GUIDED_CHAIN = "eaa9"
"""The same of the chain of #3, #6 and #10; the script knows what its guided agent does."""

UNCITED_CHAIN = "71c4"
"""The same of the chain of #13 and #14, of which the later one changes the earlier one's code and does not say so."""

CHEATED_CHAIN = "2cff"
"""The same of the chain of #2, #5 and #8, on which the script lets an agent cheat."""


@dataclass(frozen=True, slots=True)
class DemoCommand:
    """A command (its words after ``prchain``; none: nothing is run), with title and text to print before it."""

    title: str
    words: str
    command: Sequence[str]
    must_succeed: bool = True
    """Whether the demo stops where it does not: what a real model makes of a task or a graph may be too little."""
    refused: bool = False
    """Whether it shows work that is not accepted, so that it ends with 1 as it should."""


def demo_commands(chosen: ChosenBackend, *, everything: bool) -> list[DemoCommand]:
    """The commands, in order: from mining to the export and the pages, and with `everything` curation, guidance and the
    cheat."""
    commands = [*_from_history_to_rollouts(chosen), *(_for_those_who_ask(chosen) if everything else []), *_export()]
    numbers = itertools.count(1)
    return [replace(one, title=f"{next(numbers)}. {one.title}") if one.title else one for one in commands]


def _from_history_to_rollouts(chosen: ChosenBackend) -> list[DemoCommand]:
    return [
        DemoCommand(
            "Mine",
            "Reads the repository's history and its pull heads: which pull request landed how, and who cites whom.",
            ["mine", LIST, "--source", "git"],
        ),
        DemoCommand(
            "Chains",
            "Chooses pull requests that build on each other, at first as they say themselves. A revert, and what was "
            "reverted, cannot be a stage.",
            ["chains", "build", "--strategy", "reference"],
        ),
        DemoCommand("", "These are they, best first:", ["chains", "list"]),
        DemoCommand(
            "Tasks",
            "A model writes an overview for each chain and a query for each stage; each passes the leak check.",
            ["tasks", "build"],
            must_succeed=False,
        ),
        DemoCommand(
            "",
            "Most pull requests that build on an earlier one do not say so; their code does. So now chains are made of "
            "all evidence, as they are by default. Those that have tasks stay as they are:",
            ["chains", "build"],
        ),
        DemoCommand(
            "",
            "One more, which nobody cited. This is what its second stage changes of the first:",
            ["chains", "show", UNCITED_CHAIN, "--diff"],
        ),
        DemoCommand("", "It gets a task like the others:", ["tasks", "build"], must_succeed=False),
        DemoCommand(
            "Environments",
            "Runs each stage's tests before and after its reference patch: once each, as none of ours is flaky, and "
            "three times by default. F2P tests fail before and pass after; P2P tests pass on both sides.",
            ["environments", "validate", "--runs", "1", *chosen.flags],
        ),
        DemoCommand(
            "Rollouts",
            "An agent works through each chain, stage by stage, on its own earlier code. A stage is accepted when the "
            "judge gives 0.8 or more and its tests pass; else the judge's comment goes back to the agent, three times "
            "at most.",
            ["rollouts", "run", "--gate", "both", *chosen.flags],
            must_succeed=False,
        ),
    ]


def _for_those_who_ask(chosen: ChosenBackend) -> list[DemoCommand]:
    return [
        DemoCommand(
            "Process graph",
            "Where rollouts fail, the reference patch still tells what has to be found out first. A proposer collects "
            "it, a critic takes out what gives the patch away, and what they claim is run again. Of one stage:",
            ["curate", "graphs", GRAPH_CHAIN, *chosen.flags],
            must_succeed=False,
        ),
        _windows(chosen),
        *_guidance(chosen),
        _cheat(chosen),
    ]


def _export() -> list[DemoCommand]:
    return [
        DemoCommand(
            "Export",
            "Writes what was accepted as samples for fine-tuning. Turns that a review refused, or whose tool call "
            "failed, stay in the conversation and are left out of the loss. Of trajectories of a chain that end with "
            "the same files one is written: the one with the fewest attempts, then steps.",
            ["export", "--format", "openai", "--mask", "tool_errors", "--out", SAMPLES, "--force"],
        ),
        DemoCommand("", "And figures on all accepted trajectories, also on those that were not written:", ["stats"]),
        DemoCommand(
            "Pages",
            "Shows all of it, as files for any browser.",
            ["view", "--export", SAMPLES, "--out", PAGES],
            must_succeed=False,
        ),
    ]


def _windows(chosen: ChosenBackend) -> DemoCommand:
    title = "Windows"
    if chosen.backend.unsafe:
        return DemoCommand(title, "Left out: windows need snapshots of sandboxes, and plain processes take none.", [])
    return DemoCommand(
        title,
        "Along that graph the chain is worked through again. In each window the agent goes on by itself in a copy of "
        "the sandbox; in a variant of that a curator writes one step anew, from nothing but what was seen by then. "
        "Tests alone say whether a stage is accepted. One seed a window: a script says the same each time.",
        ["curate", "run", GRAPH_CHAIN, "--windows", "seeds=1", *chosen.flags],
        must_succeed=False,
    )


def _cheat(chosen: ChosenBackend) -> DemoCommand:
    limits = ["--gate", "tests", "--refinements", "0", "--stage-limits", "steps=12", "--min-length", "1"]
    return DemoCommand(
        "A cheat",
        "An agent that is paid for passing tests may learn to pass them without the work. The script lets one answer "
        "for every name and stop unittest from calling tests. Among the hidden tests stand some whose result is known, "
        "with other names in every run:",
        ["rollouts", "run", "--chain", CHEATED_CHAIN, "--tools", "bash", *limits, *chosen.flags],
        must_succeed=False,
        refused=True,
    )


def _guidance(chosen: ChosenBackend) -> list[DemoCommand]:
    limits = ["--gate", "tests", "--refinements", "0", "--stage-limits", "steps=12", "--min-length", "1"]
    command = ["rollouts", "run", "--chain", GUIDED_CHAIN, "--tools", "bash", *limits, *chosen.flags]
    return [
        DemoCommand(
            "Guidance",
            "An agent that goes round in circles gains nothing by more steps; the script lets one do so on purpose. It "
            "has bash alone and twelve steps a stage, and tests alone say whether a stage is accepted. At first nobody "
            "speaks to it:",
            command,
            must_succeed=False,
            refused=True,
        ),
        DemoCommand(
            "",
            "Then a process reward model reads the last eight steps after every fifth one: it says which of twelve "
            "kinds of errors it sees in them, by which quotes, and how to go on. Detectors, which are plain code, look "
            "at the same steps; what they find is stored and not told.",
            [*command, "--prm", "D"],
            must_succeed=False,
        ),
    ]
