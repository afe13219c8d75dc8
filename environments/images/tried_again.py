"""What a build that failed hung on beside its tree: where that is another now, it is tried again."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from environments.images.image_settings import BuildSettings
from environments.images.recipes import named_recipe, override_name
from prchain.core.errors import RecipeError

_OF_MACHINE = frozenset({"recipes_dir", "secrets"})


def hangs_on(settings: BuildSettings, folder: Path, repository: str, recipe: str) -> str:
    """A hash of the settings of builds and of a recipe by its name, with what the user's `folder` says of it and of the
    repository."""
    values = {it.name: repr(getattr(settings, it.name)) for it in fields(settings) if it.name not in _OF_MACHINE}
    there = folder if folder.is_dir() else None
    with suppress(RecipeError):  # one that is gone is another
        values["recipe"] = named_recipe(recipe, there).digest()
    with suppress(OSError):
        values["own"] = (folder / override_name(repository)).read_bytes().hex()
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
