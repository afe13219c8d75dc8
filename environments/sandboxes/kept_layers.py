"""Places that are kept as layers of ours (`environments.sandboxes.own_layers`), of an engine on this machine; see
`environments.sandboxes.kept_places`.

Who stands on one holds a lock on it, which ends with the process. One without a lock may be removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from environments.sandboxes.leftovers import make_owned
from environments.sandboxes.own_layers import OwnLayer, area

_PREFIX = "place-"
_FACTS = "place.json"
"""The file in its folder that says on which image it stands and what it takes; its time is that of the last use."""

_TOUCHED = 600.0
"""Seconds: a use is written down so often at most."""


@dataclass(frozen=True)
class KeptLayer:
    """A place, which stays while its lock is open."""

    layer: OwnLayer
    lock: IO[str]


def find_layer(layers_at: Path, name: str) -> KeptLayer | None:
    """The place of a name, which counts as used now; None where there is none."""
    return _found(area(layers_at) / f"{_PREFIX}{name}")


def _found(folder: Path) -> KeptLayer | None:
    lock = _locked(folder, fcntl.LOCK_SH)
    if lock is None:
        return None
    with contextlib.suppress(OSError):
        if os.fstat(lock.fileno()).st_mtime < time.time() - _TOUCHED:
            os.utime(folder / _FACTS)
    return KeptLayer(OwnLayer(folder), lock)


def keep_layer(layer: OwnLayer, name: str, below: str) -> KeptLayer | None:
    """Make a place of a layer that nobody writes to any more, on the image with the id `below`; None where another
    process has made it just now. Raises `OSError`; the layer is as it was then."""
    facts = {"below": below, "bytes": layer.used}
    (layer.folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
    own, lock = layer.folder.name, _locked(layer.folder, fcntl.LOCK_SH)
    assert lock is not None
    try:
        return KeptLayer(layer.renamed(f"{_PREFIX}{name}"), lock)
    except OSError as error:
        lock.close()
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        layer.renamed(own)
        return None


def bound_layers(layers_at: Path, most_bytes: int, images: Collection[str] | None = None) -> list[str]:
    """Remove places until they take at most so many bytes, and those that stand on none of these `images`; returns the
    names of what was removed. The one that was longest not used goes first, and one in use stays."""
    known = sorted(_places(layers_at), key=lambda place: place.used_at)
    gone = [place for place in known if images is not None and place.below not in images]
    left = [place for place in known if place not in gone]
    taken = sum(place.bytes for place in left)
    for place in left:
        if taken <= most_bytes:
            break
        taken -= place.bytes
        gone.append(place)
    return [place.name for place in gone if _remove(place.folder)]


def drop_layers(layers_at: Path, below: str | None = None, *, named: str | None = None) -> Mapping[str, bool]:
    """Remove the places on an image, or the one of a name, or all; returns the name of each, and whether it is gone."""
    return {
        place.name: _remove(place.folder)
        for place in _places(layers_at)
        if below in (None, place.below) and named in (None, place.name)
    }


@dataclass(frozen=True, slots=True)
class _StoredLayer:
    folder: Path
    below: str
    bytes: int
    used_at: float

    @property
    def name(self) -> str:
        return self.folder.name.removeprefix(_PREFIX)


def _places(layers_at: Path) -> Iterator[_StoredLayer]:
    for folder in sorted(area(layers_at).glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            used_at = (folder / _FACTS).stat().st_mtime
            yield _StoredLayer(folder, str(facts["below"]), int(facts["bytes"]), used_at)


def _remove(folder: Path) -> bool:
    """Whether it is gone. It goes under another name, so that nobody finds a part of it."""
    lock = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if lock is None:
        return not folder.exists()
    with lock:
        try:
            doomed = make_owned(folder)
        except OSError:
            return False
    OwnLayer(doomed).remove()
    return True


def _locked(folder: Path, how: int) -> IO[str] | None:
    """The lock of a place that is there; None where there is none, or another one holds it."""
    try:
        file = (folder / _FACTS).open(encoding="utf-8")
    except OSError:
        return None
    try:
        fcntl.flock(file, how)
        if os.path.samestat(os.fstat(file.fileno()), (folder / _FACTS).stat()):
            return file
    except OSError:
        pass
    file.close()
    return None
