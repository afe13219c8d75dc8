"""SWE-agent's shell: a command that takes long goes on, an empty one shows more, ctrl+c ends it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ResourceLimits, Sandbox, SandboxConfig
from environments.sandboxes.streams import TOKEN
from prchain.core.errors import UsageError
from prchain.core.llm.model import Reply, Usage
from tests.environments.folder_sandbox import FolderSandbox
from tests.trajectories.agentworld import Model, says, spec, work
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.kinds.mini import SCAFFOLD as MINI
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.tools.lasting_bash import INTERRUPT, RUNS, LastingBash, LastingBashArguments
from trajectories.agents.tools.tool import ToolResult, Workspace
from trajectories.agents.tools.toolset import toolset
from trajectories.model import Ending, EntryKind
from trajectories.options import RolloutOptions


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "work").mkdir()
    workspace = Workspace(FolderSandbox(tmp_path / "work"), {"B": "2"}, timeout=20)
    yield workspace
    workspace.close()


def bash(place: Workspace, command: str, timeout: float = 20) -> ToolResult:
    place.timeout = timeout
    return LastingBash().run(LastingBashArguments(command=command), place)


def test_what_a_command_prints_is_shown_bare_and_a_code_other_than_0_stands_below_it(place: Workspace) -> None:
    shown = bash(place, "echo a; echo b >&2")
    assert (shown.content, shown.details, shown.worked) == ("a\nb", {"exit_code": 0, "shown_lines": 2}, True)
    failed = bash(place, "echo a; (exit 3)")
    assert (failed.content, failed.details["exit_code"], failed.error) == ("a\n(exit code 3)", 3, None)
    assert bash(place, "true").content == ""
    assert bash(place, "cat").content == "", "commands have no input, and none of ours"


def test_the_shell_keeps_folder_variables_and_functions_and_tells_where_it_is(place: Workspace) -> None:
    moved = bash(place, "mkdir -p 'a b' && cd 'a b' && x=3 && f() { echo $x $B $PWD; } && export Y=$x")
    assert isinstance(place.sandbox, FolderSandbox)
    assert moved.cwd == f"{place.sandbox.folder}/a b" == place.cwd
    assert 'declare -x Y="3"' in moved.details["variables"]
    assert TOKEN not in moved.details["variables"]
    shown = bash(place, "f")
    assert (shown.content, shown.cwd) == (f"3 2 {moved.cwd}", None)


def test_a_command_that_takes_long_goes_on_and_an_empty_one_shows_what_comes_next(place: Workspace) -> None:
    began = bash(place, "echo a; while [ ! -e go ]; do sleep 0.02; done; echo b", timeout=0.3)
    assert began.content.startswith("a\n(exit code -1: the command still runs.")
    assert (began.error, began.details) == (
        None,
        {"exit_code": None, "shown_lines": 1, "goes_on": True, "running": True},
    )
    refused = bash(place, "echo c")
    assert refused.error == RUNS and "was not run" in refused.content and not refused.worked
    (Path(place.sandbox.config.workdir) / "go").touch()
    shown = bash(place, "")
    assert (shown.content.strip(), shown.details) == ("b", {"exit_code": 0, "shown_lines": 2, "goes_on": True})
    assert bash(place, "").content == bash(place, INTERRUPT).content == "No command runs."


@pytest.mark.parametrize(
    "command",
    [
        "sleep 100",
        "while true; do sleep 0.05; done",
        "sleep 100 | cat; echo not",
        "sleep 100; echo not",
        "yes >/dev/null",
    ],
)
def test_ctrl_c_ends_the_whole_command_and_the_shell_goes_on(place: Workspace, command: str) -> None:
    bash(place, "kept=yes; cd /")
    assert bash(place, command, timeout=0.2).details["running"]
    ended = bash(place, INTERRUPT)
    assert (ended.content.strip(), ended.details["exit_code"]) == ("(exit code 130)", 130)
    assert bash(place, "echo $kept $PWD").content == "yes /"


def test_what_does_not_end_when_it_is_interrupted_is_killed_with_the_shell(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trajectories.agents.tools.lasting_bash._PATIENCE", 0.3)
    bash(place, "mkdir sub; cd sub; export KEPT=1; lost=1")
    assert bash(place, "trap '' INT; sleep 100", timeout=0.2).details["running"]
    ended = bash(place, INTERRUPT)
    assert "It ended the shell" in ended.content and ended.details["exit_code"] is None
    assert bash(place, "echo $KEPT $lost; basename $PWD").content == "1\nsub", "as a session that is made anew"


def test_a_command_that_ends_the_shell_is_said_to_and_the_next_one_has_another(place: Workspace) -> None:
    assert bash(place, "exit 3").content.endswith(
        "(exit code 3. It ended the shell: the next command begins a new one.)"
    )
    assert bash(place, "echo on").content == "on"


def test_an_endless_output_is_cut_and_waited_for_no_longer_than_any(place: Workspace) -> None:
    place.most = 100
    shown = bash(place, "yes", timeout=0.3)
    assert shown.content.startswith("y\ny") and "characters left out" in shown.content
    assert len(shown.content) < 300 and shown.details["omitted"] > 1000 and shown.details["running"]
    assert bash(place, INTERRUPT).details["exit_code"] == 130
    assert bash(place, "seq 100").content.count("\n") < 60


def test_what_runs_ends_with_the_attempt(place: Workspace) -> None:
    assert bash(place, "echo $$ >pid; exec sleep 100", timeout=0.3).details["running"]
    pid = int((Path(place.sandbox.config.workdir) / "pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    place.close()
    assert not Path(f"/proc/{pid}").exists() and place.shell is not None and not place.shell.runs


@given(st.text(st.characters(exclude_characters="\0\r", categories=("L", "N", "P", "S", "Z")), max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_text_reaches_the_shell_as_it_is(shared: Workspace, text: str) -> None:
    shown = bash(shared, f"printf '%s|' '{text.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'")
    assert shown.content == f"{text}|"


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_command_takes_the_next_one_s_place(shared: Workspace, text: str) -> None:
    """Broken shell text is a fault of its command alone."""
    if "\0" in text or any("\ud800" <= it <= "\udfff" for it in text) or text.strip() in ("", INTERRUPT):
        return
    bash(shared, f"( : ) #{text}")
    assert bash(shared, "echo 'still here'").content == "still here"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("shared") / "work"
    folder.mkdir()
    workspace = Workspace(FolderSandbox(folder), timeout=20)
    yield workspace
    workspace.close()


# ---- in a real sandbox


@pytest.fixture(scope="module")
def sandbox(bubblewrap: None) -> Iterator[LocalSandbox]:
    limits = ResourceLimits(memory_bytes=512 << 20, processes=128, disk_bytes=1 << 30)
    with LocalSandbox(SandboxConfig(None, limits=limits)) as sandbox:
        yield sandbox


def test_commands_go_on_beside_the_others_of_a_real_sandbox(sandbox: Sandbox) -> None:
    goes_on_beside_others(sandbox)


@pytest.mark.docker
def test_commands_go_on_beside_the_others_of_a_container() -> None:
    image = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
    with DockerSandbox(SandboxConfig(image, labels={"prchain.test": "shell"})) as sandbox:
        goes_on_beside_others(sandbox)


def goes_on_beside_others(sandbox: Sandbox) -> None:
    place = Workspace(sandbox, timeout=20)
    assert bash(place, "i=0; while true; do echo $((i++)); sleep 0.05; done", timeout=0.4).content.startswith("0\n1\n")
    assert sandbox.exec("echo beside").output == b"beside\n"
    time.sleep(0.1)
    assert bash(place, "", timeout=0.2).details["running"]
    assert bash(place, INTERRUPT).details["exit_code"] == 130
    assert bash(place, "echo on; cd /tmp").content == "on"
    place.close()
    assert bash(place, "pwd").content == "/tmp"
    place.close()


# ---- the agent


def told(text: str) -> Reply:
    return says(text, usage=Usage(100, 0, 10))


def test_an_agent_reads_observations_in_the_paper_s_form(tmp_path: Path) -> None:
    """SWE-PRM, appendix A.1, listing 1: the word above an output, and other words where nothing was printed."""
    (tmp_path / "work").mkdir()
    form = "Look.\n<function=bash>\n<parameter=command>{}</parameter>\n</function>"
    second = "\n<function=bash>\n<parameter=command>touch second</parameter>\n</function>"
    commands = ("echo a; while [ ! -e go ]; do sleep 0.02; done; echo b", "", "ctrl+c", "touch go")
    model = Model(
        [
            *(told(form.format(it)) for it in commands),
            told("Lo.\n<function=nothing></function>"),
            told(form.format("test ! -e second") + second),
            told("Done.\n<function=submit></function>"),
        ]
    )
    scaffold = ReactScaffold("swe-agent", LoopSettings(calls="text", command_timeout=0.3), "swe-agent")
    sandbox = FolderSandbox(tmp_path / "work")
    attempt, record = work(model, scaffold=scaffold, sandbox=sandbox, attempt_spec=spec())
    assert attempt.ending is Ending.SUBMITTED
    seen = [entry.content for entry in record.entries if entry.kind is EntryKind.OBSERVATION]
    assert seen[0].startswith("OBSERVATION:\na\n(exit code -1")
    assert seen[2].startswith("OBSERVATION:\n") and seen[2].endswith("(exit code 130)")
    assert seen[3] == "The command ended with exit code 0. It printed nothing."
    assert seen[4].startswith("There is no tool of that name"), "a fault is no observation"
    assert seen[5:7] == [seen[3], "This was not run: of a turn only the first call is."]
    assert not (tmp_path / "work" / "second").exists()
    assert model.requests[1].messages[-1].content == seen[0], "what is stored is what was read"
    assert set(scaffold.prompts) == {"system_shell", "query", "comment", "text_calls", "observation"}


def test_the_shell_is_of_swe_agent_s_tools_alone() -> None:
    assert toolset("swe-agent", "swe-agent").tools["bash"].description != toolset("swe-agent").tools["bash"].description
    with pytest.raises(UsageError, match="--tools swe-agent"):
        toolset("full", "swe-agent")
    with pytest.raises(UsageError, match="shell of its own"):
        MINI.make(RolloutOptions(shell="swe-agent"))
