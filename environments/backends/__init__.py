"""The sandbox backends, one a module: each module of this folder holds one, as `BACKEND`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prchain.core.catalogue import Catalogue
from prchain.core.errors import UsageError

if TYPE_CHECKING:
    from environments.backend import Backend

DEFAULT = "docker"
"""The backend where neither command nor settings name one."""

BACKENDS: Catalogue[Backend] = Catalogue(__name__, "BACKEND")


def chosen_backend(name: str | None, *, unsafe: bool) -> Backend:
    """The backend of a name, or the default; `unsafe`: the user allowed others' code on this machine.

    Raises `UsageError` where the backend needs this permission and has none, or has it and does not need it.
    """
    backend = BACKENDS.named(name or DEFAULT)
    if unsafe != backend.unsafe:
        raise UsageError(
            "plain processes run others' code on this machine unprotected; if you mean it, give both "
            "--backend unsafe-local and --unsafe-local"
        )
    return backend
