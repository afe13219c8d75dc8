"""The channel's near end, against a far end that lies, falls silent or breaks; and what it keeps of a long output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.sandboxes.channel import Channel, HeadTail
from environments.sandboxes.sandbox import OUT_OF_MEMORY, OUTPUT_LIMIT, PROCESS_LIMIT, ExecResult
from prchain.core.errors import SandboxLost

Event = tuple[bool, bytes]


class Far:
    """A far end that answers each request as a test says; splits what it says into pieces of `size` bytes."""

    def __init__(self, answer: Callable[[list[str]], list[Event]], size: int = 1 << 20) -> None:
        self._answer = answer
        self._size = size
        self.waiting: deque[Event] = deque()
        self.requests: list[list[str]] = []
        self.closed = False

    def send(self, content: bytes) -> None:
        if self.closed:
            raise BrokenPipeError
        words = content.split(b"\n")[0].decode().split()
        self.requests.append(words)
        for is_answer, payload in self._answer(words):
            for start in range(0, len(payload), self._size):
                self.waiting.append((is_answer, payload[start : start + self._size]))

    def receive(self, timeout: float) -> Event | None:
        if self.closed:
            raise ConnectionError("it was cut")
        return self.waiting.popleft() if self.waiting else None

    def close(self) -> None:
        self.closed = True


def honest(
    output: bytes, done: str = "done 0 0", before: bytes = b"", after: bytes = b""
) -> Callable[..., list[Event]]:
    """What a server says to one command that prints `output`."""

    def answer(words: list[str]) -> list[Event]:
        match words:
            case ["run", name, mark, *_]:
                printed = name.encode() + output + mark.encode()
                return [(False, before + printed + after), (True, f"{name} {done}\n".encode())]
            case ["end", mark]:
                return [(False, mark.encode())]
            case ["kill", name]:
                return [(True, f"{name} killed 0\n".encode())]
        return []

    return answer


def run(far: Far, patience: float = 0.2, **arguments: object) -> ExecResult:
    given_: dict[str, object] = {"timeout": 5.0, "workdir": "/", **arguments}
    return Channel(far, patience=patience).run("x", **given_)  # type: ignore[arg-type]


@given(output=st.binary(max_size=300), size=st.integers(1, 50), before=st.binary(max_size=60))
def test_any_output_in_any_pieces_between_any_leftovers(output: bytes, size: int, before: bytes) -> None:
    result = run(Far(honest(output, before=before, after=b"late"), size))
    assert (result.output, result.exit_code, result.timed_out) == (output, 0, False)


@given(chunks=st.lists(st.binary(max_size=40)), limit=st.integers(2, 60))
def test_head_and_tail_of_any_stream(chunks: list[bytes], limit: int) -> None:
    kept = HeadTail(limit)
    for chunk in chunks:
        kept.add(chunk)
    whole = b"".join(chunks)
    head, tail, omitted = kept.parts()
    assert len(head) + len(tail) + omitted == len(whole)
    assert whole.startswith(head) and whole.endswith(tail) and len(head) + len(tail) == min(limit, len(whole))


def test_a_stream_without_end_takes_no_memory() -> None:
    kept = HeadTail(1000)
    for _ in range(10_000):
        kept.add(b"x" * 700)
    assert sum(map(len, kept._tail)) < 2000


@pytest.mark.parametrize(
    "answer",
    [
        lambda words: [],
        lambda words: [(False, words[1].encode())] if words[0] == "run" else [],
        lambda words: [(False, b"x" * 100)],
        lambda words: [(True, b"done 0 0\nnonsense\n\n" + b"0" * 32 + b" done 0 0\n")],
        lambda words: (
            [(False, words[1].encode()), (True, f"{words[1]} done 0 0\n".encode())] if words[0] == "run" else []
        ),
        lambda words: [(True, b"x" * 100_000)],
    ],
)
def test_silence_and_nonsense_end_in_a_lost_sandbox(answer: Callable[[list[str]], list[Event]]) -> None:
    far = Far(answer)
    with pytest.raises(SandboxLost):
        run(far)
    assert far.closed


@pytest.mark.parametrize("done", ["done x 0", "done 0", "done", "done 0 0 0"])
def test_a_broken_answer_is_no_result(done: str) -> None:
    with pytest.raises(SandboxLost):
        run(Far(honest(b"", done=done)))


def test_a_lost_channel_stays_lost() -> None:
    channel = Channel(Far(lambda words: []), patience=0.1)
    for _ in range(2):
        with pytest.raises(SandboxLost):
            channel.run("x", timeout=1, workdir="/")
    assert channel.lost


def test_limits_are_named() -> None:
    channel = Channel(Far(honest(b"", done="done 137 2")))
    assert channel.run("x", timeout=1, workdir="/").limit == OUT_OF_MEMORY
    assert channel.run("x", timeout=1, workdir="/").limit is None

    def crowded(words: list[str]) -> list[Event]:
        first = [(True, f"{words[1]} crowded\n".encode())] if words[0] == "run" else []
        return first + honest(b"")(words)

    assert run(Far(crowded)).limit == PROCESS_LIMIT


def test_output_without_end_is_ended() -> None:
    flood = b"y" * (1 << 20)

    def answer(words: list[str]) -> list[Event]:
        if words[0] == "run":
            return [(False, words[1].encode())] + [(False, flood)] * 100
        return honest(b"")(words)

    far = Far(answer)
    result = run(far, patience=60, timeout=60, output_limit=1000)
    assert (result.exit_code, result.limit, len(result.output)) == (None, OUTPUT_LIMIT, 1000)
    assert [words[0] for words in far.requests if words[0] != "ping"] == ["run", "kill", "end", "fin"]


def test_what_cannot_be_killed_loses_the_sandbox() -> None:
    def answer(words: list[str]) -> list[Event]:
        if words[0] == "kill":
            return [(True, f"{words[1]} killed 3\n".encode())]
        return [(False, words[1].encode())] if words[0] == "run" else []

    with pytest.raises(SandboxLost, match="3 processes"):
        run(Far(answer), timeout=0.05)
