"""The interpreters that images can have here: the base image's own, official images, this machine's, other bases'."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeVar

from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.images import ensure_base_image, find_tagged
from environments.images.interpreters.go_layers import go_layer_name, lay_go
from environments.images.interpreters.host_pythons import HostPython, host_pythons
from environments.images.interpreters.layers import is_unfit, lay, lay_tools, layer_name, tools_name
from environments.images.interpreters.node_layers import lay_node, node_layer_name
from environments.images.registry import registry_has
from environments.images.wanted_python import OLDEST, Minor, era_of
from environments.sandboxes.engine import BASE_LABEL, engine_failures
from prchain.core.errors import BuildFailed, PrchainError

log = logging.getLogger(__name__)

T = TypeVar("T")

BASE, REGISTRY, HOST, OTHER_BASE = "the base image", "official image", "this machine", "base image"

RELEASES: dict[str, Minor] = {"bullseye": (3, 9), "bookworm": (3, 11), "trixie": (3, 13)}
"""Python of Debian's releases."""

OFFICIAL: tuple[Minor, ...] = tuple((3, minor) for minor in range(6, 15))
"""Of these there are official images, ``python:X.Y-slim``."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An interpreter that images can have. `source` is an image's name, or a program of this machine."""

    minor: Minor
    origin: str
    source: str
    host: HostPython | None = None

    @property
    def text(self) -> str:
        """``3.8``."""
        return ".".join(map(str, self.minor))

    @property
    def years(self) -> str:
        """The years of which it is the newest that packages know, e.g. ``2020 to 2021``."""
        first, last = era_of(self.minor).year, era_of((3, self.minor[1] + 1)).year
        return f"to {last}" if self.minor == OLDEST else f"{first} to {last}"


class Interpreters:
    """Finds what is there, once, and lays interpreters over the base image; safe for threads.

    `alone` is entered with a name for work that one process at a time does.
    """

    def __init__(
        self, settings: BuildSettings, alone: Callable[[str], AbstractContextManager[None]] | None = None
    ) -> None:
        self._settings = settings
        self._alone = alone or (lambda work: nullcontext())
        self._guard = threading.Lock()
        self._laying: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._offers: dict[Minor, list[Offer]] | None = None
        self.node_refused = ""
        """Why Node cannot be had but from the base image's release of Debian; empty while nothing is known of that."""
        self.go_refused = ""
        """The same of Go."""

    def offers(self, engine: Any) -> dict[Minor, Offer]:
        """By version, each from the best source that has it. Raises what an engine raises, `ImageMissing` for the base
        image."""
        with self._guard:
            if self._offers is None:
                own = self.default(engine)
                self._offers = {own: [Offer(own, BASE, self._settings.base_image)]}
                for offer in self._others(engine):
                    self._offers.setdefault(offer.minor, []).append(offer)
            return {minor: offers[0] for minor, offers in sorted(self._offers.items()) if offers}

    def without_base(self, engine: Any) -> dict[Minor, Offer]:
        """As `offers`, where the base image is not there."""
        found: dict[Minor, Offer] = {}
        for offer in self._others(engine):
            found.setdefault(offer.minor, offer)
        return dict(sorted(found.items()))

    def _others(self, engine: Any) -> Iterator[Offer]:
        yield from _official(engine)
        tools = tools_name(engine, self._settings)
        base_id = find_tagged(engine, tools) or find_tagged(engine, self._settings.base_image)
        for offer in _of_host():
            # One that was tried before and does not run there is tried no more.
            if base_id is None or offer.host is None or not is_unfit(engine, layer_name(offer.host, base_id)):
                yield offer
        yield from _of_bases(engine)

    def default(self, engine: Any) -> Minor:
        """The base image's own Python, by its release of Debian; Debian 12's where it does not say."""
        ensure_base_image(engine, self._settings.base_image)
        with engine_failures():
            labels = engine.images.get(self._settings.base_image).attrs["Config"].get("Labels") or {}
        words = f"{labels.get(BASE_LABEL, '')} {self._settings.base_image}"
        return next((minor for name, minor in RELEASES.items() if name in words), RELEASES["bookworm"])

    def settings_of(self, engine: Any, plan: ImagePlan) -> BuildSettings | None:
        """The settings with the base image that a plan's interpreter is in; None as `settings_for` says."""
        if plan.python is not None:
            return self.settings_for(engine, plan.python.minor)
        if plan.node is not None and plan.node.node is not None:
            return self.settings_with_node(engine, plan.node.node.major)
        if plan.go is not None:
            return self.settings_with_go(engine, plan.go.text)
        return self._settings

    def settings_for(self, engine: Any, minor: Minor) -> BuildSettings | None:
        """The settings with the base image that has an interpreter; raises what an engine raises.

        None where it does not run there, or cannot be copied: it is offered no more then, and a plan is to be made
        anew with what is.
        """
        offer = self.offers(engine).get(minor)
        if offer is None:
            return None
        settings = self._settings
        if offer.origin in {REGISTRY, OTHER_BASE}:
            settings = replace(settings, base_image=offer.source)
        settings = self._with_tools(engine, settings)
        if offer.host is None or offer.origin == BASE:
            return settings
        base = settings.base_image
        base_id = find_tagged(engine, base) or base
        try:
            with self._one_at_a_time(layer_name(offer.host, base_id)):
                return replace(settings, base_image=lay(engine, base, base_id, offer.host))
        except (BuildFailed, OSError, ValueError) as error:
            if isinstance(error, PrchainError) and not isinstance(error, BuildFailed):
                raise  # the engine or the database failed, which says nothing of the interpreter
            log.warning("Python %s of this machine does not run in %s: %s", offer.host.text, base, error)
        with self._guard:
            if self._offers is not None and offer in self._offers[minor]:
                self._offers[minor].remove(offer)
        return None

    def settings_with_node(self, engine: Any, major: int) -> BuildSettings | None:
        """As `settings_for`, with a Node of npm's registry. None where that refuses it, or it does not run here: then
        `node_refused` says why."""
        found, refused = self._with_layer(engine, lay_node, node_layer_name, major)
        self.node_refused = refused or self.node_refused
        return found

    def settings_with_go(self, engine: Any, text: str) -> BuildSettings | None:
        """As `settings_with_node`, with a Go of PyPI (``1.22``), and `go_refused`."""
        found, refused = self._with_layer(engine, lay_go, go_layer_name, text)
        self.go_refused = refused or self.go_refused
        return found

    def _with_layer(
        self,
        engine: Any,
        lay_it: Callable[[Any, BuildSettings, T], str],
        name_of: Callable[[T, str], str],
        version: T,
    ) -> tuple[BuildSettings | None, str]:
        """The settings with a layer over the tools, or why there is none."""
        settings = self._with_tools(engine, self._settings)
        base_id = find_tagged(engine, settings.base_image) or settings.base_image
        name = name_of(version, base_id)
        try:
            with self._one_at_a_time(name):
                return replace(settings, base_image=lay_it(engine, settings, version)), ""
        except BuildFailed as failure:
            log.warning("no layer %s over %s: %s", name, settings.base_image, failure)
            return None, failure.lines[-1] if failure.lines else str(failure)

    def _with_tools(self, engine: Any, settings: BuildSettings) -> BuildSettings:
        ensure_base_image(engine, settings.base_image)
        try:
            with self._one_at_a_time(tools_name(engine, settings)):
                return replace(settings, base_image=lay_tools(engine, settings))
        except BuildFailed as failure:  # each build may do it by itself, and then says what it lacks
            log.warning("no layer of tools over %s: %s", settings.base_image, failure)
            return settings

    @contextmanager
    def _one_at_a_time(self, layer: str) -> Iterator[None]:
        with self._guard:
            laying = self._laying[layer]
        with laying, self._alone(f"layer-{sha256(layer.encode()).hexdigest()[:16]}"):
            yield


def _of_host() -> Iterable[Offer]:
    return [Offer((it.version[0], it.version[1]), HOST, it.program, it) for it in host_pythons()]


def _official(engine: Any) -> Iterable[Offer]:
    """Official images: those that the engine has, and all where a registry answers."""
    names = {minor: f"python:{minor[0]}.{minor[1]}-slim" for minor in OFFICIAL}
    there = {minor for minor, name in names.items() if find_tagged(engine, name)}
    if len(there) < len(names) and registry_has(engine, names[OFFICIAL[0]]):
        there = set(names)
    return [Offer(minor, REGISTRY, name) for minor, name in names.items() if minor in there]


def _of_bases(engine: Any) -> Iterable[Offer]:
    """Base images of other releases of Debian, as `environments.images.base_image` labels them."""
    with engine_failures():
        images = engine.images.list(filters={"label": BASE_LABEL})
    found = []
    for image in images:
        suite = (image.attrs["Config"].get("Labels") or {}).get(BASE_LABEL)
        if suite in RELEASES and image.tags:
            found.append(Offer(RELEASES[suite], OTHER_BASE, image.tags[0]))
    return found
