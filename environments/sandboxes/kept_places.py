"""Places that an engine keeps: images, or layers of ours, of a stage's base, placed and made ready, on which its
sandboxes begin.

A place is named by all that decides what it holds. It is made before anybody but us has used the container, nobody
can write into it, and what is kept is bounded on disk: the place that was longest not used goes first.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from environments.sandboxes.engine import IMAGE_LABEL, LABEL, engine_failures
from environments.sandboxes.kept_layers import bound_layers, drop_layers
from environments.sandboxes.leftovers import OWNER, SANDBOX, SNAPSHOT
from environments.sandboxes.own_layers import engine_layers
from prchain.core.errors import ImageError, ImageMissing

log = logging.getLogger(__name__)

PLACES = "prchain-place"
"""The repository of their images."""

PLACE = f"{LABEL}.place"
PLACE_BASE = f"{LABEL}.place.base"
"""Labels: the place's name, and the id of the image that it stands on."""

VERSION = 3
"""Of how places are made; others are not found any more."""

MOST_BELOW = 90
"""An image of more layers gets no place on it: snapshots need some, too."""

_TOUCHED = timedelta(minutes=10)
"""A use is written down so often at most."""

_MAKING = 900.0
"""Seconds that a commit may take until the engine gives its image a tag."""

_bounding = threading.Lock()


def place_name(below: str, user: str | None, key: str) -> str:
    """The name of a place on the image with the id `below`; `key` says all else that decides what it holds."""
    return hashlib.sha256("\n".join([str(VERSION), below, user or "", key]).encode()).hexdigest()[:40]


def find_place(client: Any, name: str) -> str | None:
    """The id of the image of a place, which counts as used now; None where the engine keeps none of the name. Raises
    `EngineUnavailable`, `ImageError`."""
    tag = f"{PLACES}:{name}"
    try:
        with engine_failures():
            found = client.api.inspect_image(tag)
            if datetime.now(UTC) - _used(found) > _TOUCHED:
                client.api.tag(found["Id"], PLACES, name, force=True)
    except ImageMissing:
        return None
    return str(found["Id"])


def keep_place(container: Any, name: str, below: str) -> None:
    """Make a place of what a container holds. Raises what the SDK raises."""
    none = dict.fromkeys((SANDBOX, SNAPSHOT, OWNER, IMAGE_LABEL), "")
    labels = {**none, PLACE: name, PLACE_BASE: below}
    changes = [f'LABEL {key}="{value}"' for key, value in labels.items()]
    container.commit(repository=PLACES, tag=name, changes=changes)


def bound_places(client: Any, most_bytes: int) -> list[str]:
    """Remove places until they take at most so many bytes, and those of images that are gone; returns the names of
    what was removed. One that a container or a snapshot stands on stays. Raises `EngineUnavailable`, `ImageError`."""
    with _bounding:
        images = _images(client)
        known = _places(images)
        sizes = {item["Id"]: int(item["Size"]) for item in images}
        gone = [place for place in known if place.below not in sizes or place.is_lost]
        left = [place for place in known if place not in gone]
        taken = {place: max(sizes[it] for it in place.images) - sizes[place.below] for place in left}
        if sum(taken.values()) > most_bytes:
            for place in sorted(left, key=lambda place: _last_use(client, place)):
                if sum(taken.values()) <= most_bytes:
                    break
                del taken[place]
                gone.append(place)
        removed = [place.name for place in gone if _remove(client, place)]
    layers_at = _layers_at(client)
    return removed if layers_at is None else removed + bound_layers(layers_at, most_bytes, sizes)


def drop_places(client: Any, below: str | None = None, *, named: str | None = None) -> Mapping[str, bool]:
    """Remove the places on an image, or the one of a name, or all; returns the name of each, and whether it is gone.
    Raises `EngineUnavailable`, `ImageError`."""
    dropped = {
        place.name: _remove(client, place)
        for place in _places(_images(client))
        if below in (None, place.below) and named in (None, place.name)
    }
    layers_at = _layers_at(client)
    return dropped if layers_at is None else {**dropped, **drop_layers(layers_at, below, named=named)}


def _layers_at(client: Any) -> Path | None:
    with engine_failures():
        return engine_layers(client)


@dataclass(frozen=True, slots=True)
class _StoredPlace:
    name: str
    below: str
    images: tuple[str, ...]
    """Newest first; several where processes made it at once."""
    is_lost: bool
    """Whether no tag leads to it, for longer than making it takes."""


def _images(client: Any) -> list[dict[str, Any]]:
    with engine_failures():
        found: list[dict[str, Any]] = client.api.images(all=True)
        return found


def _places(images: Iterable[dict[str, Any]]) -> list[_StoredPlace]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in images:
        labels = item.get("Labels") or {}
        # What is made of a place, a snapshot say, inherits its labels.
        if labels.get(PLACE) and not labels.get(SNAPSHOT) and not labels.get(IMAGE_LABEL):
            groups.setdefault(labels[PLACE], []).append(item)
    return [_place(name, items) for name, items in groups.items()]


def _place(name: str, items: Iterable[Mapping[str, Any]]) -> _StoredPlace:
    newest = sorted(items, key=lambda item: (item["Created"], bool(item.get("RepoTags"))), reverse=True)
    is_tagged = any(f"{PLACES}:{name}" in (item.get("RepoTags") or ()) for item in newest)
    is_lost = not is_tagged and newest[0]["Created"] < time.time() - _MAKING
    return _StoredPlace(name, newest[0]["Labels"].get(PLACE_BASE, ""), tuple(item["Id"] for item in newest), is_lost)


def _last_use(client: Any, place: _StoredPlace) -> datetime:
    try:
        with engine_failures():
            return _used(client.api.inspect_image(f"{PLACES}:{place.name}"))
    except ImageMissing:
        return datetime.min.replace(tzinfo=UTC)


def _used(image: Mapping[str, Any]) -> datetime:
    """When an image was tagged last; the engine's clock."""
    said = str((image.get("Metadata") or {}).get("LastTagTime") or image["Created"])
    return datetime.fromisoformat(said[:19] + "+00:00")


def _remove(client: Any, place: _StoredPlace) -> bool:
    """Whether it is gone."""
    gone = [_tried(partial(client.api.remove_image, image, noprune=True)) for image in place.images]
    return all(gone)


def _tried(call: Callable[[], object]) -> bool:
    try:
        with engine_failures():
            call()
    except ImageMissing:
        return True
    except ImageError as error:
        log.debug("a kept place stays: %s", error)
        return False
    return True
