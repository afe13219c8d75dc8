"""What is said of an engine that cannot be reached: what was tried, why it failed, and the ways out."""

from __future__ import annotations

import gc
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import docker
import pytest
import requests
from docker.constants import DEFAULT_UNIX_SOCKET

from environments.sandboxes import engine
from environments.sandboxes.engine import (
    connect,
    disk_usage,
    engine_failures,
    engine_words,
    pause,
    pull,
    tried_address,
    why_silent,
)
from prchain.core.errors import DiskFull, EngineUnavailable, ImageError

WAYS_OUT = ("start it", "environments_engine or DOCKER_HOST", "--backend local")
INTERNALS = ("Error(", "aborted", "Errno", "HTTPConnectionPool", "<", "Traceback")


@pytest.fixture
def leaky() -> Iterator[None]:
    """The SDK leaves a Unix socket open that it could not connect; its warning is no failure of our tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@contextmanager
def a_socket(path: Path) -> Iterator[str]:
    """The address of a socket that nobody listens at."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield f"unix://{path}"


@pytest.mark.usefixtures("leaky")
@pytest.mark.parametrize("setting", ["environments_engine", "DOCKER_HOST"])
def test_an_engine_that_is_not_there_is_told_with_its_address_what_names_it_and_the_ways_out(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"unix://{tmp_path}/none.sock"
    if setting == "DOCKER_HOST":
        monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(EngineUnavailable) as caught:
        connect(address if setting == "environments_engine" else None)
    message = str(caught.value)
    assert f"the Docker engine at {address} ({setting}) does not answer: there is no such socket" in message
    assert all(word in message for word in WAYS_OUT)
    assert not [word for word in INTERNALS if word in message]


def test_without_a_name_the_socket_that_was_tried_is_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert tried_address(None) == " at unix:///var/run/docker.sock (the default)"
    assert DEFAULT_UNIX_SOCKET.endswith("/var/run/docker.sock")


def test_an_address_is_told_without_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://user:pass-word@host:1")
    assert "pass-word" not in tried_address(None) + tried_address("tcp://user:pass-word@host:1")


@pytest.mark.usefixtures("leaky")
def test_a_socket_that_nothing_listens_at_is_told_in_plain_words(tmp_path: Path) -> None:
    with a_socket(tmp_path / "s") as address, pytest.raises(EngineUnavailable, match="nothing listens there") as caught:
        connect(address)
    assert not [word for word in INTERNALS if word in str(caught.value)]


def test_an_address_that_is_none_is_told_as_the_sdk_says_it() -> None:
    with pytest.raises(EngineUnavailable, match=r"at gopher://x .* does not answer: Invalid bind address protocol"):
        connect("gopher://x")


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (PermissionError(13, "Permission denied"), "may not use its socket"),
        (ConnectionRefusedError(111, "Connection refused"), "nothing listens there"),
        (ConnectionResetError(104, "Connection reset by peer"), "it ended the connection"),
        (TimeoutError("timed out"), "no answer came in time"),
        (socket.gaierror(-2, "Name or service not known"), "its host's name is unknown"),
    ],
)
def test_the_systems_own_error_is_found_behind_those_that_wrap_it(cause: OSError, says: str) -> None:
    wrapped = requests.ConnectionError(Exception("Connection aborted.", cause))
    assert says in why_silent(docker.errors.DockerException(f"Error while fetching: {wrapped}", wrapped))
    try:
        try:
            raise cause
        except OSError as inner:
            raise docker.errors.DockerException("Error while fetching server API version") from inner
    except docker.errors.DockerException as error:
        assert says in why_silent(error)


def test_an_engine_that_goes_away_in_the_middle_is_told_without_an_address() -> None:
    with pytest.raises(EngineUnavailable) as caught, engine_failures():
        raise requests.ConnectionError(Exception("Connection aborted.", ConnectionResetError(104, "reset")))
    assert str(caught.value) == (
        "the Docker engine does not answer: it ended the connection; start it, or name another in environments_engine "
        "or DOCKER_HOST"
    )


class BusyEngine:
    """An engine of API 1.41 that refuses the disk usage and to pause `times` times, with `says`."""

    def __init__(self, times: int, says: str) -> None:
        self.api, self.times, self.says = self, times, says

    def df(self) -> dict[str, list[str]]:
        self.times -= 1
        if self.times >= 0:
            raise docker.errors.APIError(self.says)
        return {"Images": []}

    def pause(self, container: str) -> None:
        self.df()


def test_what_waits_for_a_disk_is_paused_when_it_has_gone_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_FREEZE_PAUSE", 0.0)
    pause(BusyEngine(3, "OCI runtime pause failed: unable to freeze: unknown"), "c")
    for refusing, left in (
        (BusyEngine(99, "OCI runtime pause failed: unable to freeze: unknown"), 89),
        (BusyEngine(99, "Container c is already paused"), 98),
    ):
        with pytest.raises(docker.errors.APIError):
            pause(refusing, "c")
        assert refusing.times == left


def test_the_disk_usage_is_waited_for_while_the_engine_counts_it_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_USAGE_PAUSE", 0.0)
    assert disk_usage(BusyEngine(3, "a disk usage operation is already running")) == {"Images": []}
    monkeypatch.setattr(engine, "_USAGE_PATIENCE", 0.0)
    with pytest.raises(ImageError, match="already running"):
        disk_usage(BusyEngine(3, "a disk usage operation is already running"))


def test_another_refusal_of_the_disk_usage_is_told_at_once() -> None:
    refusing = BusyEngine(1, "no such driver")
    with pytest.raises(ImageError, match="no such driver"):
        disk_usage(refusing)
    assert refusing.times == 0


@pytest.mark.parametrize(
    "words", ["write /var/lib/x: no space left on device", "mkdir x: disk quota exceeded", "No space left on device"]
)
def test_a_full_disk_of_the_engine_is_told_with_the_cure_and_ends_a_run_like_any_full_disk(words: str) -> None:
    with pytest.raises(DiskFull, match="`prchain environments prune` makes room") as caught, engine_failures():
        raise docker.errors.APIError("500 Server Error", explanation=words)
    assert caught.value.name == "disk_full" and words in str(caught.value) and isinstance(caught.value, ImageError)
    with pytest.raises(DiskFull, match="prune"):
        engine_words(f'{{"status": "Pulling"}}\n{{"error": "failed to register layer: {words}"}}\n')


def test_what_ends_a_pull_in_the_middle_is_told() -> None:
    def answers(said: str) -> SimpleNamespace:
        api = SimpleNamespace(pull=lambda repository, tag: f"{repository} {tag}\n{said}\n")
        return SimpleNamespace(api=api, images=SimpleNamespace(get=lambda name: f"the image {name}"))

    assert pull(answers('{"status": "Pulling"}'), "h/a") == "the image h/a"
    with pytest.raises(ImageError, match="unexpected EOF"):
        pull(answers('{"error": "unexpected EOF"}'), "h/a:1")
