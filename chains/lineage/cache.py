"""The state of a walk on disk, so that the next walk goes on from it. It can be deleted at any time.

The file is a header line of JSON, the arrays of owners one after another, and a digest of both. It is written beside
its name and renamed, so that a kill leaves the one from before.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from chains.lineage.definitions import DefinitionOwners, Owned
from chains.lineage.owners import ARRAY_TYPE, LineOwners
from chains.lineage.walk import WalkState

VERSION = 1
"""Of the file and of all rules whose results it holds: who owns a line, what a definition is, which changes are the
same."""
_DIGEST = 32


@dataclass(frozen=True, slots=True)
class CachedWalk:
    """What a walk leaves for the next one: states by the tips of branches."""

    key: str
    """That of the walk's rows; see `sql.tables.lined.LineageWalk`."""
    walked: str
    """Digest of the commits that were walked and of who owns them."""
    states: Mapping[str, WalkState]
    patches: Mapping[str, str]


def save(path: Path, cached: CachedWalk) -> None:
    """Write a walk's state; raises `OSError` where it cannot be, and leaves what was there."""
    arrays: dict[int, tuple[int, array[int]]] = {}
    owned: dict[int, tuple[int, Owned]] = {}
    states = []
    for tip, state in cached.states.items():
        files = {
            _text(name): None if owners is None else arrays.setdefault(id(owners), (len(arrays), owners))[0]
            for name, owners in state.lines.files.items()
        }
        definitions = {
            _text(name): owned.setdefault(id(names), (len(owned), names))[0]
            for name, names in state.definitions.files.items()
        }
        states.append(
            {"tip": tip, "unread": sorted(map(_text, state.lines.unread)), "files": files, "definitions": definitions}
        )
    header = {
        "version": VERSION,
        "key": cached.key,
        "walked": cached.walked,
        "states": states,
        "owned": [names for _, names in owned.values()],
        "lengths": [len(owners) for _, owners in arrays.values()],
        "patches": dict(cached.patches),
    }
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    digest = blake2b(digest_size=_DIGEST)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            for part in (json.dumps(header).encode() + b"\n", *(owners.tobytes() for _, owners in arrays.values())):
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path) -> CachedWalk | None:
    """The state that was saved; None where there is none, or it is of another version, cut off or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    body = memoryview(content)[:-_DIGEST]
    if blake2b(body, digest_size=_DIGEST).digest() != content[-_DIGEST:]:
        return None
    end = content.index(b"\n") + 1
    header = json.loads(content[:end])
    if header["version"] != VERSION:
        return None
    arrays = []
    for length in header["lengths"]:
        owners = array(ARRAY_TYPE)
        owners.frombytes(body[end : end + length * owners.itemsize])
        end += length * owners.itemsize
        arrays.append(owners)
    owned: list[Owned] = [{name: tuple(owners) for name, owners in names.items()} for names in header["owned"]]
    return CachedWalk(
        header["key"],
        header["walked"],
        {state["tip"]: _state(state, arrays, owned) for state in header["states"]},
        header["patches"],
    )


def _state(state: Mapping[str, Any], arrays: list[array[int]], owned: list[Owned]) -> WalkState:
    lines = {_bytes(name): None if place is None else arrays[place] for name, place in state["files"].items()}
    definitions = {_bytes(name): owned[place] for name, place in state["definitions"].items()}
    return WalkState(LineOwners(lines, set(map(_bytes, state["unread"]))), DefinitionOwners.of(definitions))


def _text(name: bytes) -> str:
    """Bytes as a JSON string, byte for byte."""
    return name.decode("latin-1")


def _bytes(name: str) -> bytes:
    return name.encode("latin-1")
