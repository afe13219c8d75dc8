"""Which imported stages work in an image of their publisher, and what became of the others' images."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any

from environments.images.image_plan import ImagePlan
from environments.images.images import Image
from environments.images.published.images import make_published, own_name, published_plan
from environments.images.published.said import Published, read_published
from environments.images.stage_image import StageBase, StageImage
from prchain.core.errors import DiskFull, ImageError, ImageMissing
from sql.store import Store


class PublishedImages:
    """Makes the images of imported stages of those that publishers name; safe for threads.

    An image that cannot be had, or made fit, is asked for once. `alone` is entered with a name for work that one
    process at a time does, and `record` is told of each image.
    """

    def __init__(
        self, store: Store, alone: Callable[[str], AbstractContextManager[None]], record: Callable[[Image], None]
    ) -> None:
        self._store = store
        self._alone = alone
        self._record = record
        self._guard = threading.Lock()
        self._making: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._why_not: dict[str, str] = {}

    def said_of(self, stage: StageBase) -> Published | None:
        """What its publisher says of a stage's environment; None where no image is named."""
        if not stage.chain:
            return None
        with self._store.reading() as tx:
            return read_published(tx, stage.chain)

    def provide(
        self,
        engine: Any,
        repository: str,
        said: Published,
        ours: Callable[[], ImagePlan],
        *,
        kept: str | None = None,
        rebuild: bool = False,
    ) -> StageImage | str:
        """The image of a stage with the plan for it, or why there is none. `ours` makes the plan by which we would
        build; `kept` is the image in which the stage was proved. Raises as that, and `SandboxError`."""
        if kept is not None:
            return self._stage_image(repository, said, ours, kept, cached=True)
        name = own_name(repository, said)
        with self._guard:
            making = self._making[name]
        with making, self._alone(f"image-{sha256(name.encode()).hexdigest()[:16]}"):
            if (why := self._why_not.get(said.image)) is not None:
                return why
            try:
                image = make_published(engine, repository, said, rebuild=rebuild)
            except DiskFull:
                raise
            except (ImageError, ImageMissing) as error:
                self._why_not[said.image] = str(error)
                return str(error)
            self._record(image)
        return self._stage_image(repository, said, ours, name, cached=image.cached, seconds=image.seconds)

    @staticmethod
    def _stage_image(
        repository: str,
        said: Published,
        ours: Callable[[], ImagePlan],
        name: str,
        *,
        cached: bool,
        seconds: float = 0.0,
    ) -> StageImage:
        plan, note = published_plan(repository, said, name, ours)
        words = f"in {said.image}" + (f"; {note}" if note else "")
        return StageImage(plan, name, (), seconds, cached, publisher=words)
