"""The files that steer a test runner, by the paths and sections that the runners themselves name.

Pure. Every runner's files count in every tree: a repository can have tests of several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from configparser import Error
from functools import cache
from typing import Any

from environments.suites.projectfiles import FORMATS, Part, ProjectFormat, get_part, set_part
from environments.suites.runners import RUNNERS
from environments.suites.setup_script import same_but_declared

WHOLE = "file"
"""In place of a section: the file as a whole."""


def is_steering(path: bytes) -> bool:
    """Whether a file does nothing but tell a runner what to run and how to judge it."""
    return path in steering_files([path])


def steering_files(paths: Iterable[bytes]) -> set[bytes]:
    """Those of the paths that `is_steering` holds for."""
    ending = _ending(tuple(pattern for runner in RUNNERS.values() for pattern in runner.steering))
    return {path for path in paths if ending.search(path)}


def may_steer(path: bytes) -> bool:
    """Whether a file that has other work too can steer a runner: project files, scripts, its own name."""
    patterns = tuple(pattern for runner in RUNNERS.values() for pattern in (*runner.project_files, *runner.shadows))
    return bool(_ending(patterns).search(path))


def shadows_runner(path: bytes) -> bool:
    """Whether a file has the runner's own name: it is taken for the runner."""
    return bool(_ending(tuple(pattern for runner in RUNNERS.values() for pattern in runner.shadows)).search(path))


def steering_changed(path: bytes, old: bytes | None, new: bytes | None) -> tuple[str, ...]:
    """The parts of a file that steer a runner and differ between M_t (`old`) and the agent's tree (`new`).

    Project files are compared section by section (``tool.pytest``, ``scripts``, ``test`` ...), so that a new dependency
    is no finding; one that cannot be parsed, and any other file of `may_steer`, is a finding as a whole.
    """
    if old == new or not may_steer(path):
        return ()
    name = path.rpartition(b"/")[2].lower()
    if name == b"setup.py":
        return () if same_but_declared(old or b"", new or b"") else (WHOLE,)
    before, after = (_values(name, text) for text in (old, new))
    if before is None or after is None:
        return (WHOLE,)
    parts = {part for part in {*before, *after} if repr(before.get(part)) != repr(after.get(part))}
    if not parts and _headings(_text(old)) != _headings(_text(new)):
        return (WHOLE,)
    return tuple(sorted(parts))


def with_steering_of(path: bytes, own: bytes, landed: bytes | None) -> bytes | None:
    """A project file of the agent's with M_t's steering sections, all else as it was; None where it has to be M_t's as
    a whole: neither format nor content can be read, or what was written does not read back."""
    name = path.rpartition(b"/")[2].lower()
    format_, parts, placing = _parts(name)
    if format_ is None:
        return None
    try:
        values, reference = format_.read(_text(own)), format_.read(_text(landed))
        for part in (*parts, *(part for part in placing if _names_started(get_part(values, part)))):
            set_part(values, part, get_part(reference, part))
        text = format_.write(values)
        again = format_.read(text)
    except _UNREADABLE:
        return None
    # Runners read these files by other parsers than ours.
    is_same = repr(again) == repr(values) and _headings(text) == _headings(_text(landed))
    return text.encode() if is_same else None


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8-sig")


def _headings(text: str) -> list[str]:
    """What may be a heading of a runner's section, by whatever parser."""
    return sorted(re.findall(r"\[\s*(?:tool:)?pytest[^\r\n]*|\[\s*coverage:run[^\r\n]*", text))


_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, Error, RecursionError)


def _values(name: bytes, text: bytes | None) -> dict[str, Any] | None:
    """The steering sections of a project file; None where it has no reader here, or does not parse."""
    format_, parts, placing = _parts(name)
    if format_ is None:
        return None
    try:
        read = format_.read(_text(text))
        found = {".".join(part): get_part(read, part) for part in parts}
        found |= {".".join(part): value for part in placing if _names_started(value := get_part(read, part))}
    except _UNREADABLE:
        return None
    return {part: value for part, value in found.items() if value is not None}


def _parts(name: bytes) -> tuple[ProjectFormat | None, list[Part], list[Part]]:
    """How a project file is read, its parts that steer a runner, and those that may place what is started with it."""
    file = name.decode(errors="replace")
    parts = [part for runner in RUNNERS.values() for part in runner.sections.get(file, ())]
    placing = [part for runner in RUNNERS.values() for part in runner.placing.get(file, ())]
    return FORMATS.get(file) if parts else None, list(dict.fromkeys(parts)), list(dict.fromkeys(placing))


def _names_started(value: Any) -> bool:
    """Whether a value names a module that runs before the tests: ``package-dir = {sitecustomize = "src/x"}``."""
    started = {name for runner in RUNNERS.values() for name in runner.started}
    words = (word for text in _texts(value) for word in re.split(r"[\s,=]+", text))
    return any(re.split(r"[./]", word)[0] in started for word in words)


def _texts(value: Any) -> Iterator[str]:
    """The keys and texts of a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from map(str, value)
        yield from (text for inner in value.values() for text in _texts(inner))
    elif isinstance(value, Sequence):
        yield from (text for inner in value for text in _texts(inner))


@cache
def _ending(patterns: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(rf"(?i)(?:^|/)(?:{'|'.join(dict.fromkeys(patterns))})$".encode())
