"""Memory of builds: images that were built for a repository's other stages, tried before one is built for a stage.

Stages whose manifests agree share an image by its name. Between neighbours in time manifests mostly differ by a bound,
a pin of a lock file, or a tool of the developers, and what the one has installed meets what the other asks for. So an
image of a neighbour serves a stage where it was made in the same way, on the same interpreter, at about the same time,
and where the tree can be put in and nothing that its manifests ask for is missing in it (the recipe's `lacks`). A stage
that is not proved in it gets an image of its own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from environments.images.building import BuildContainer
from environments.images.buildtree import BuildTree
from environments.images.image_plan import ImagePlan
from environments.images.images import Image, find_image, put_in_place
from prchain.core.errors import BuildFailed
from sql.store import Store
from sql.tables import BuiltImage

NEAR = timedelta(days=90)
"""How far an image's packages may be in time from a stage."""

_FAR = timedelta(days=730)
"""The same where a stage has no image of its own, since that does not build."""

_MOST = 3
"""Images that are tried for a stage."""

_DEADLINE = 600.0
"""Seconds to put a tree in and look."""

_CANNOT_BE_HAD = re.compile(r"(?:without|relaxed):(.+)")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An image that serves a stage beside the one it was built for."""

    image: Image
    lacks: tuple[str, ...]
    """What the stage's manifests ask for, and is not in it."""
    days: int
    """How many days its packages are newer than the stage; negative: older."""

    @property
    def words(self) -> str:
        """For people."""
        side = "after" if self.days > 0 else "before"
        lacks = f"; without {', '.join(self.lacks)}" if self.lacks else ""
        return f"in a neighbour's image, of {abs(self.days)} days {side} the stage{lacks}"[:600]


def serving(engine: Any, store: Store, plan: ImagePlan, tree: BuildTree, landed: datetime) -> Neighbour | None:
    """The nearest image of a neighbour that holds all that the plan's manifests ask for, as far as that could be had
    where it was built; None where there is none, or the plan's own is there. Raises what an engine raises."""
    for neighbour in _nearest(engine, store, plan, tree, landed, NEAR):
        if not neighbour.lacks:
            return neighbour
    return None


def next_best(engine: Any, store: Store, plan: ImagePlan, tree: BuildTree, landed: datetime) -> Neighbour | None:
    """The nearest image of a neighbour into which the tree can be put, for a stage that has none since it does not
    build."""
    return next(iter(_nearest(engine, store, plan, tree, landed, _FAR)), None)


def _nearest(
    engine: Any, store: Store, plan: ImagePlan, tree: BuildTree, landed: datetime, most: timedelta
) -> Iterable[Neighbour]:
    if not plan.recipe.lacks or not plan.way:
        return
    known = _known(store, plan, landed, most)
    if not known or find_image(engine, plan.image) is not None:
        return
    tried = 0
    for name, as_of in known:
        image = find_image(engine, name)
        if image is None or image.way != plan.way:
            continue
        tried += 1
        if (lacks := _lacks(engine, image, plan, tree)) is not None:
            yield Neighbour(image, lacks, (as_of - landed).days)
        if tried == _MOST:
            return


def _known(store: Store, plan: ImagePlan, landed: datetime, most: timedelta) -> list[tuple[str, datetime]]:
    query = select(BuiltImage.name, BuiltImage.as_of).where(
        BuiltImage.repository == plan.repository,
        BuiltImage.recipe == plan.recipe.name,
        BuiltImage.as_of.is_not(None),
        BuiltImage.name != plan.image,
    )
    with store.reading() as tx:
        rows = [(name, datetime.fromisoformat(str(as_of))) for name, as_of in tx.connection.execute(query)]
    near = [(abs(as_of - landed), name, as_of) for name, as_of in rows if abs(as_of - landed) <= most]
    return [(name, as_of) for _, name, as_of in sorted(near)]


def _lacks(engine: Any, image: Image, plan: ImagePlan, tree: BuildTree) -> tuple[str, ...] | None:
    """What a tree asks for that the image has not; None where the tree cannot be put in."""
    deadline = time.monotonic() + _DEADLINE
    variables = {**plan.variables, **plan.environment}
    container = BuildContainer(
        engine, image.name, network="none", deadline=deadline, files=plan.files, variables=variables
    )
    try:
        with container:
            put_in_place(container, plan, tree)
            printed = container.run("lacks", plan.recipe.lacks)
    except BuildFailed:
        return None
    return missing(printed.splitlines(), image.notes)


def missing(asked: Iterable[str], notes: Iterable[str]) -> tuple[str, ...]:
    """What is asked for and not there, without what could not be had where the image was built, as its notes say."""
    without = {found[1] for note in notes if (found := _CANNOT_BE_HAD.fullmatch(note))}
    lines = dict.fromkeys(line.strip()[:200] for line in asked if line.strip())
    return tuple(line for line in lines if re.sub(r"\s", "", line) not in without)
