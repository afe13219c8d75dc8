"""What sandboxes' streams share, where no sandbox is needed."""

from __future__ import annotations

import pytest

from environments.sandboxes.streams import ChannelledStream


class _DroppedWhileItWaits(ChannelledStream):
    """Another thread drops it between its reading and its waiting: a closed socket's descriptor is -1."""

    def __init__(self) -> None:
        super().__init__(kill=lambda: None, probe=lambda: None)

    def end_input(self) -> None:
        pass

    def _write(self, content: memoryview) -> int:
        return len(content)

    def _read(self) -> tuple[bool, bytes] | None:
        raise BlockingIOError

    def _sources(self) -> list[int]:
        self.drop()
        return [-1]

    def _sink(self) -> int:
        return -1

    def _code(self) -> int | None:
        return None

    def _free(self) -> None:
        pass


def test_a_stream_that_is_dropped_while_it_waits_has_ended() -> None:
    stream = _DroppedWhileItWaits()
    with pytest.raises(EOFError):
        stream.receive(5)
