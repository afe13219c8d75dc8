"""A program that is recorded: the endpoint's side in this process, and requests as an agent would send them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from openai import OpenAI

from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Model
from prchain.core.llm.price import Price
from tests.memory_ledger import MemoryLedger
from trajectories.recording.conversation import Branch
from trajectories.recording.recorder import ProgramRecorder
from trajectories.recording.server import RecordingServer, serving

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


def nothing(_branch: Branch, _first: int) -> None:
    """Keep nothing."""


@contextmanager
def recording(
    model: Model,
    *,
    keep: Callable[[Branch, int], None] = nothing,
    secrets: tuple[str, ...] = (),
    ping_seconds: float = 3.0,
    **options: Any,
) -> Iterator[RecordingServer]:
    gateway = Gateway(MemoryLedger(), Route(model, Price(input=1.0, output=10.0)), pause=lambda tries: None, **options)
    with serving(ProgramRecorder(gateway, "run", keep, secrets), ping_seconds=ping_seconds) as server:
        yield server


def recorder_of(server: RecordingServer) -> ProgramRecorder:
    """What the server's answers come from."""
    assert isinstance(server.recorder, ProgramRecorder)
    return server.recorder


def sdk(server: RecordingServer, **options: Any) -> OpenAI:
    """OpenAI's own client of it."""
    return OpenAI(api_key=server.token, base_url=server.base_url, **{"max_retries": 0, "timeout": 20, **options})
