"""The taxonomy of what goes wrong in an agent's work: data, ours or a user's (SWE-PRM, section 3.2.1)."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import tomllib
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prchain.core.errors import UsageError

_HASH_LENGTH = 16
_NAME = r"^[a-z][a-z0-9_]{0,47}$"
_TITLE = r"^[^\W\d_][^\n:*#]{0,63}$"


class _Values(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Category(_Values):
    """One way in which work goes wrong."""

    name: str = Field(pattern=_NAME)
    """As rows and exports keep it."""
    title: str = Field(pattern=_TITLE)
    """As a model writes it."""
    definition: str = Field(min_length=1)
    recovery: str = Field(min_length=1)
    """What guidance does about it."""


class Family(_Values):
    """Categories that belong together."""

    name: str = Field(pattern=_NAME)
    title: str = Field(pattern=_TITLE)
    about: str
    categories: tuple[Category, ...] = Field(min_length=1)


class _File(_Values):
    families: tuple[Family, ...] = Field(min_length=1)


class Taxonomy(_Values):
    """The categories in use. `hash` is that of the file."""

    families: tuple[Family, ...]
    hash: str

    @functools.cached_property
    def categories(self) -> tuple[Category, ...]:
        """Those of all families, in order."""
        return tuple(category for family in self.families for category in family.categories)

    def has(self, name: str) -> bool:
        """Whether a category has this name."""
        return any(category.name == name for category in self.categories)


@functools.cache
def load_taxonomy(path: str | None = None) -> Taxonomy:
    """The taxonomy of a TOML file; None: the one that ships. Raises `UsageError` with what is wrong with the file."""
    try:
        if path is None:
            content = (importlib.resources.files("trajectories.agents.guidance") / "taxonomy.toml").read_bytes()
        else:
            content = Path(path).read_bytes()
        families = _File.model_validate(tomllib.loads(content.decode("utf-8"))).families
    except OSError as error:
        raise UsageError(f"the taxonomy {path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the taxonomy {path} is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise UsageError(f"the taxonomy {path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    taxonomy = Taxonomy(families=families, hash=hashlib.sha256(content).hexdigest()[:_HASH_LENGTH])
    for what in ("name", "title"):
        words = Counter(getattr(category, what).casefold() for category in taxonomy.categories)
        if twice := [word for word, count in words.items() if count > 1]:
            raise UsageError(f"the taxonomy {path} has two categories with the {what} {twice[0]!r}")
    return taxonomy
