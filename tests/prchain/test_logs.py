"""The log of a run: what is in it, what never is, and that nobody sees it who did not ask."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from prchain import cli
from prchain.core.console import logs
from prchain.core.console.progress import SILENT
from prchain.core.errors import StoreCorrupt
from prchain.core.git.mirror import update_mirror
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.model import Message, Request
from prchain.core.runs import run_units
from sql.lock import exclusive_lock, wait_for_lock
from tests.databases import open_new
from tests.endpoint import FakeClock, FakeEndpoint, completion, error, in_turn
from tests.prchain.secrets_table import DRAWN_TOKEN
from tests.prchain.test_runs import Work, units

TOKEN = "plain-looking-token-0123456789"
KEY = "plain-looking-key-0123456789"
SHAPED = DRAWN_TOKEN
PROMPT, REPLY = "the words of a prompt", "the words of a reply"

log = logging.getLogger("miner.somewhere")
foreign = logging.getLogger("openai._base_client")

Put = Callable[[Callable[[], None]], None]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Put:
    """Puts a function in the place of every command; secrets are set, and the folder is the test's."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)

    def put(function: Callable[[], None]) -> None:
        command = click.command()(function)
        monkeypatch.setattr(cli.StageCommands, "get_command", lambda *_: command)

    return put


def talk() -> None:
    log.debug("a detail")
    log.info("done with\n%s", "x")
    log.warning("tried again")
    foreign.warning("a whole request")


def test_without_an_option_nothing_is_shown_but_errors_as_bare_lines(
    put: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        talk()
        log.error("GitHub refused %s", TOKEN)

    put(refused)
    assert cli.run(["mine"]) == 0
    assert capsys.readouterr() == ("", "GitHub refused [redacted]\n")


@pytest.mark.parametrize(("flag", "levels"), [("-v", "INFO WARNING"), ("-vv", "DEBUG INFO WARNING")])
def test_v_logs_on_standard_error_one_line_each_with_its_time(
    flag: str, levels: str, put: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    put(talk)
    assert cli.run([flag, "mine"]) == 0
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "miner.somewhere" in line]
    assert out == ""
    assert [line.split()[1] for line in lines] == levels.split()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in err.splitlines())
    assert "done with x" in err
    assert "whole request" not in err
    assert err.splitlines()[0].endswith("mine begins")
    assert re.search(r"mine is done after \d+\.\d s$", err)


def test_a_log_file_is_appended_to_and_keeps_the_terminal_as_it_is(
    put: Put, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    put(talk)
    for _ in range(2):
        assert cli.run(["--log-file", "run.log", "mine"]) == 0
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "run.log").read_text().count("tried again") == 2
    assert "a detail" not in (tmp_path / "run.log").read_text()


@pytest.mark.parametrize("place", [".", "absent/run.log"])
def test_a_log_file_that_cannot_be_written_is_one_line_and_exit_2(
    place: str, put: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    put(talk)
    assert cli.run(["--log-file", place, "mine"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert re.match(rf"prchain: error: the log file {re.escape(place)} cannot be written: (Is a|No such)", err)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_a_disk_that_fills_up_is_told_once_and_ends_nothing(put: Put, capsys: pytest.CaptureFixture[str]) -> None:
    put(talk)
    assert cli.run(["--log-file", "/dev/full", "mine"]) == 0
    assert capsys.readouterr().err == "prchain: the log cannot be written any more\n"


def test_a_command_within_another_goes_on_with_its_log(put: Put, tmp_path: Path) -> None:
    def outer() -> None:
        put(talk)
        cli.run(["status"])
        log.info("and then")

    put(outer)
    assert cli.run(["--log-file", "run.log", "demo"]) == 0
    log_text = (tmp_path / "run.log").read_text()
    assert log_text.count("tried again") == 1
    assert log_text.index("status begins") < log_text.index("tried again") < log_text.index("and then")


def test_logging_is_as_before_when_a_command_has_ended(put: Put) -> None:
    before = [(package.level, list(package.handlers)) for package in map(logging.getLogger, logs.PACKAGES)]
    put(talk)
    cli.run(["-vv", "mine"])
    assert [(package.level, list(package.handlers)) for package in map(logging.getLogger, logs.PACKAGES)] == before


def test_secrets_prompts_and_replies_never_reach_the_log_file(put: Put, tmp_path: Path) -> None:
    clock = FakeClock()

    def ask() -> None:
        log.info("of %s and https://user:password@host/x and %s", TOKEN, SHAPED)
        with FakeEndpoint() as fake:
            fake.part = in_turn(error(500, message=f"cannot take {PROMPT}"), completion(REPLY))
            endpoint = Endpoint(
                fake.url, KEY, max_tries=4, clock=clock, wall=clock, sleep=clock.sleep, random=lambda: 0.5
            )
            OpenAIModel("small", endpoint).complete(Request((Message("user", PROMPT),), 50, purpose="judge"))
            endpoint.close()
        raise StoreCorrupt(f"damaged by {KEY}") from ValueError(f"{TOKEN} in\n{'x' * 190} {KEY}")

    put(ask)
    assert cli.run(["-vv", "--log-file", "run.log", "mine"]) == 1
    log_text = (tmp_path / "run.log").read_text()
    assert "of [redacted] and https://host/x and [redacted]" in log_text
    assert re.search(r"WARNING .*try 1 of 4 for judge: .*\(500\); again in \d", log_text)
    assert re.search(r"ends with 1 after .*: store_corrupt: damaged by \[redacted\]", log_text)
    assert "raised from" in log_text
    for secret in (TOKEN, KEY, KEY[:12], "password", SHAPED, PROMPT, REPLY):
        assert secret not in log_text, secret


def test_units_are_logged_with_how_they_end_and_a_defect_with_its_place(put: Put, tmp_path: Path) -> None:
    def act(unit: Any) -> str | BaseException:
        return ZeroDivisionError(f"over {TOKEN}") if unit.key == "u1" else "done"

    def work() -> None:
        run_units(Work(act), units(2), workers=1, progress=SILENT)

    put(work)
    assert cli.run(["-vv", "--log-file", "run.log", "mine"]) == 0
    log_text = (tmp_path / "run.log").read_text()
    assert re.search(r"INFO .*prchain\.core\.runs: things: u0 begins\n", log_text)
    assert re.search(r"INFO .*prchain\.core\.runs: things: u0 ended done after \d+\.\d s\n", log_text)
    assert re.search(r"INFO .*prchain\.core\.runs: things: u1 ended defect after \d+\.\d s\n", log_text)
    assert "work_on" in log_text
    assert "ZeroDivisionError: over [redacted]" in log_text


def test_fetching_a_mirror_and_waiting_for_a_lock_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    origin = tmp_path / "origin"
    for words in (["init", "-q"], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x", "--allow-empty"]):
        origin.mkdir(exist_ok=True)
        subprocess.run(["git", *words], cwd=origin, check=True)
    for what in ("cloning", "fetching"):
        caplog.clear()
        update_mirror(origin.as_uri(), tmp_path / "mirror.git")
        assert f"{what} {origin.as_uri()} ..." in caplog.text
        assert "is up to date after" in caplog.text

    def wait() -> None:
        with wait_for_lock(store, "image-1", "prchain environments"):
            pass

    with closing(open_new(tmp_path / "prchain.db")) as store:
        waiting = threading.Thread(target=wait)
        with exclusive_lock(store, "image-1", "prchain environments"):
            waiting.start()
            while "waiting for another run that holds image-1" not in caplog.text:
                time.sleep(0.01)
                assert waiting.is_alive()
        waiting.join()
    assert "holding image-1 after" in caplog.text
