"""Whether a registry answers for an image; it is the engine that asks."""

from __future__ import annotations

import logging
import threading
from typing import Any

from environments.sandboxes.engine import engine_failures
from prchain.core.errors import ImageError, SandboxError

log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds in which a registry answers."""


def registry_has(engine: Any, name: str) -> bool:
    """Whether a registry says within `PATIENCE` that it has the image. Raises nothing."""
    answered = threading.Event()

    def ask() -> None:
        try:
            with engine_failures():
                engine.images.get_registry_data(name)
        except (ImageError, SandboxError) as error:
            log.info("no registry answers for %s: %s", name, error)
        else:
            answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return answered.is_set()
