"""The log that our own reporters write: one signed event a line.

A reporter (`environments/suites/reporters`) is loaded into the runner from outside the tree. It reads a key from its
standard input before any code of the tree runs, and signs every event with it, so lines that somebody else writes into
the log are seen and dropped. An event carries its number: a line that is taken out, doubled or moved is seen too.

    <hex HMAC-SHA256 of the rest of the line> {"n": 3, "e": "result", "id": "tests/test_a.py::test_b", "s": "passed"}

Events: ``start``; ``collected`` and ``begin`` (``id``); ``result`` (``id``, ``s``; a test may have several, the worst
stands); ``watched`` (functions of the runner are, from here on);
``done`` (``id`` of a file that began: it is no test, and stays only where it has a result); ``overruled``
and ``tampered`` (``what``); ``plugin``, ``hook`` and ``refused`` (``what`` the runner loads, or not); ``left_out``
(``what`` the runner cannot be given);
``end`` (``exit``: the runner's own exit code).

A runner that tells by what it prints how tests ended has a parent that signs it: ``output`` (``text``), ``file`` (the
``text`` of a whole report), ``overtime`` (``what``: a test that took too long) and ``again``: all but those run once
more, and what was printed before does not count.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from environments.suites.testlogs.values import Status, worst
from prchain.core.git.output import name_text

_DIGEST = hashlib.sha256().digest_size * 2


@dataclass(frozen=True, slots=True)
class EventLog:
    """What the signed events say."""

    statuses: dict[str, Status] = field(default_factory=dict)
    started: bool = False
    exit_code: int | None = None
    """What the runner was about to exit with; None where it never came to its end."""
    foreign: int = 0
    """Lines that the reporter did not write."""
    gap: bool = False
    """Events are missing before the last one."""
    watched: bool = False
    """Whether a reporter on Node looks for replaced functions."""
    tampered: tuple[str, ...] = ()
    """Parts of the runner that the code under test replaced."""
    plugins: tuple[str, ...] | None = None
    """The installed plugins that the runner loaded, in order; None where it was told which ones, or has none."""
    hooks: tuple[str, ...] = ()
    """Files of the tree that implement hooks of the runner."""
    refused: tuple[str, ...] = ()
    """Those that were not let in."""
    overruled: tuple[str, ...] = ()
    """Tests whose failure a hook turned into a pass; they have failed."""
    left_out: tuple[str, ...] = ()
    """What the runner cannot be given."""
    printed: str = ""
    """What the runner printed when it ran last."""
    files: tuple[str, ...] = ()
    """What it wrote, each file by itself."""
    overtime: tuple[tuple[str, str], ...] = ()
    """What it printed until a test took too long, and that test's name there."""


def read_events(log: bytes, key: bytes, *, timed_out: bool = False) -> EventLog:
    """What a log says, whatever else stands in it.

    Of the tests that began and never ended, one whose run was out of time timed out, else its process died: an error.
    """
    statuses: dict[str, Status] = {}
    open_tests: dict[str, None] = {}
    tampered: list[str] = []
    overruled: list[str] = []
    named: dict[str, list[str]] = {"plugin": [], "hook": [], "refused": [], "left_out": []}
    started, watched, exit_code, expected, gap = False, False, None, 0, False
    printed: list[str] = []
    files: list[str] = []
    overtime: list[tuple[str, str]] = []
    events = _Events(log, key)
    for event in events:
        number = event.get("n")
        if not isinstance(number, int) or number < expected:
            events.foreign += 1  # a line of the reporter's own, once more
            continue
        gap = gap or number != expected
        expected = number + 1
        kind, test = event.get("e"), event.get("id")
        if kind == "start":
            started = True
        elif kind == "watched":
            watched = True
        elif kind == "end":
            exit_code = event.get("exit")
        elif kind == "output":
            printed.append(str(event.get("text")))
        elif kind == "file":
            files.append(str(event.get("text")))
        elif kind == "overtime":
            overtime.append(("".join(printed), str(event.get("what"))))
        elif kind == "again":
            printed.clear()
        elif kind == "tampered":
            tampered.append(str(event.get("what")))
        elif kind == "overruled":
            overruled.append(str(event.get("what")))
        elif kind in named:
            named[kind].append(str(event.get("what")))
        elif isinstance(test, str):
            test = name_text(test)
            if kind == "collected":
                statuses.setdefault(test, Status.collected)
            elif kind == "begin":
                statuses.setdefault(test, Status.collected)
                open_tests[test] = None
            elif kind == "done":
                open_tests.pop(test, None)
                if statuses.get(test) is Status.collected:
                    del statuses[test]
            elif kind == "result":
                open_tests.pop(test, None)
                statuses[test] = worst((statuses.get(test, Status.missing), Status(event["s"])))
    for test in open_tests:
        statuses[test] = worst((statuses[test], Status.timed_out if timed_out else Status.error))
    replaced, judged = (tuple(dict.fromkeys(ids)) for ids in (tampered, overruled))
    loaded = named["plugin"]
    plugins, hooks, refused, left_out = (tuple(filter(None, dict.fromkeys(names))) for names in named.values())
    return EventLog(
        statuses,
        started,
        exit_code,
        events.foreign,
        gap,
        watched,
        replaced,
        plugins if loaded else None,
        hooks,
        refused,
        judged,
        left_out,
        "".join(printed),
        tuple(files),
        tuple(overtime),
    )


class _Events:
    """The events of the lines whose signature holds, and that the reporter could have written: code under test that
    finds the key can sign anything. Counts the others."""

    def __init__(self, log: bytes, key: bytes) -> None:
        self._log, self._key = log, key
        self.foreign = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._log.split(b"\n"):
            signature, text = line[:_DIGEST], line[_DIGEST + 1 :]
            if hmac.compare_digest(signature, sign(self._key, text)) and (event := _event(text)) is not None:
                yield event
            elif line.strip():
                self.foreign += 1


def _event(text: bytes) -> dict[str, Any] | None:
    """What a line says; None for what no reporter says."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("e"), str):
        return None
    is_result = event["e"] == "result"
    return (
        event if isinstance(event.get("exit"), int | None) and (not is_result or event.get("s") in [*Status]) else None
    )


def sign(key: bytes, text: bytes) -> bytes:
    """The signature of a line's text, in hex."""
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()
