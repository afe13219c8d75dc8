from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from prchain import cli
from prchain.core.errors import RepositoryListError, StoreCorrupt

TOKEN = "plain-looking-token-0123456789"


PutCommand = Callable[[Callable[[], None]], None]


@pytest.fixture
def put_command(monkeypatch: pytest.MonkeyPatch) -> PutCommand:
    """Puts a function in the place of every command."""

    def put(function: Callable[[], None]) -> None:
        command = click.command()(function)
        monkeypatch.setattr(cli.StageCommands, "get_command", lambda *_: command)

    return put


def test_a_failure_is_one_line_without_secrets_and_with_its_exit_code(
    put_command: PutCommand, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    def fail() -> None:
        raise RepositoryListError(f"repos.txt:3: {TOKEN} in\nhttps://user:password@host/x")

    put_command(fail)
    assert cli.run(["mine"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "prchain: error: repos.txt:3: [redacted] in https://host/x\n")


def test_no_room_on_a_disk_is_one_line_in_any_command(
    put_command: PutCommand, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put_command(fail)
    assert cli.run(["mine"]) == 1
    assert capsys.readouterr().err.startswith("prchain: error: no room is left on the disk of temporary files")


def test_the_traceback_of_a_failure_is_shown_on_demand_without_secrets(
    put_command: PutCommand, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("PRCHAIN_DEBUG", "1")

    def fail() -> None:
        raise StoreCorrupt("damaged") from ValueError(TOKEN)

    put_command(fail)
    assert cli.run(["mine"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("prchain: error: damaged\n")
    assert TOKEN not in err


def test_a_defect_is_shown_whole_but_without_secrets(
    put_command: PutCommand, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    def fail() -> None:
        raise ZeroDivisionError(f"with {TOKEN}")

    put_command(fail)
    assert cli.run(["mine"]) == 1
    err = capsys.readouterr().err
    assert "ZeroDivisionError: with [redacted]" in err
    assert "defect" in err
    assert TOKEN not in err


def test_ctrl_c_ends_with_130_and_one_line(put_command: PutCommand, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    put_command(interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without it
    try:
        assert cli.run(["mine"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.strip().count("\n") == 0


def test_a_lock_that_a_signal_leaves_free_does_not_hide_what_ended_the_command(
    put_command: PutCommand, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        try:
            raise cli.Terminated
        finally:
            threading.Lock().release()

    put_command(interrupted)
    assert cli.run(["mine"]) == 143
    assert capsys.readouterr().err.startswith("prchain: terminated; ")


RUN = """
import signal, sys, time
from contextlib import nullcontext
from dataclasses import dataclass
import click
from prchain import cli
from prchain.core.console.progress import SILENT
from prchain.core.runs import run_units

@dataclass(frozen=True)
class Unit:
    key: str
    group: str = "all"

class Work:
    title = "units"
    spent = lambda self: None
    holding = lambda self, unit: nullcontext()

    def work_on(self, unit, tell):
        sys.stdout.write("working\\n")  # print writes the line and its end apart, and another worker may come between
        sys.stdout.flush()
        time.sleep(600)

@click.command()
def mine():
    run_units(Work(), [Unit("a"), Unit("b"), Unit("c")], workers=2, progress=SILENT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without it
sys.modules["made"] = sys.modules["__main__"]
cli.COMMANDS["mine"] = ("made:mine", "")
cli.main()
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_sigterm_ends_a_run_with_workers_as_ctrl_c_does(sign: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", RUN, "mine"]
    with subprocess.Popen(command, env=environment, text=True, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        try:
            assert [process.stdout.readline() for _ in range(2)] == ["working\n"] * 2
            process.send_signal(sign)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[sign]
    assert (process.returncode, out) == (128 + sign, ""), "no other unit was begun"
    assert err == f"prchain: {word}; what was stored stays, run the same command again\n"


@pytest.mark.parametrize("arguments", [["nope"], ["--nope"], ["sql", "--nope"], ["sql", "runs", "--csv", "--json"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("mien", "Did you mean 'mine'?"),
        ("chains lst", "Did you mean 'list'?"),
        ("sql --jsn", "'--json'"),
        ("sql funel", "did you mean funnel?"),
        ("nothing-like-it", "See `prchain --help`."),
        ("tasks nothing-like-it", "See `prchain tasks --help`."),
    ],
)
def test_of_a_mistyped_name_the_nearest_one_is_told_in_one_line(
    typed: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(typed.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("prchain: error: ")
    assert words in err


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    out = capsys.readouterr().out
    for name, (_, line) in cli.COMMANDS.items():
        assert name in out
        assert line in out


def test_help_says_what_prchain_is_and_in_what_order_its_commands_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    introduction, _, _ = capsys.readouterr().out.partition("Options:")
    assert "training data for" in introduction
    steps = ("mine", "chains build", "tasks build", "environments validate", "rollouts run", "export")
    places = [introduction.index(f"    prchain {step}") for step in steps]
    assert places == sorted(places)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Example" in out
    assert f"prchain {name}" in out
    assert "--db" in out or "Commands:" in out or name == "demo"  # which has a database of its own


def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path) -> None:
    code = (
        "import click, prchain.cli as c\n"
        "@click.command()\n"
        "def talk():\n    [print('x' * 1000) for _ in range(1000)]\n"
        "c.StageCommands.get_command = lambda *a: talk\n"
        "import sys; sys.argv = ['prchain', 'mine']; c.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])},
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
