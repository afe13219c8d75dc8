"""Recipes: how the dependencies of a repository get into an image. Data files, ours and the user's.

Ours are ``recipes/*.toml``. A user's folder (`environments_recipes_dir`) may hold recipes of its own, which go before
ours, and for one repository a file ``<owner>--<name>.toml``: its keys override those of the recipe that it names with
``recipe``, or else of the one that fits.

Steps are bash, run with ``-euo pipefail``. Their inputs are variables (`environments.images.plans`), never pasted
into their text, so that no text of a repository is run as shell.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, field_validator

from environments.images.globs import matches
from environments.suites.runners import DEFAULT, RUNNERS
from prchain.core.errors import NoRecipe, RecipeError

Script = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Pattern = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.*?\[\]/@+-]+$", max_length=200)]
PackageName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]{0,99}(=[A-Za-z0-9.+:~-]{1,60})?$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]

_STRICT = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class RecipeStep(BaseModel):
    """One step. `run` are scripts of which each is tried only where the one before it failed; the second and later are
    noted on the image, because it is then not what the repository asked for."""

    model_config = _STRICT

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    run: tuple[Script, ...]
    tries: tuple[Annotated[str, StringConstraints(pattern=r"^[ -~]+$", max_length=100)], ...] = ()
    """What each of `run` is called in a note; empty: by its number."""
    root: bool = False
    asks_index: bool = False
    """Runs nothing of the tree and asks the index for what every build needs: where it fails, the index does."""

    @field_validator("run", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("run")
    @classmethod
    def _not_empty(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("must hold a script")
        return value


class VersionRule(BaseModel):
    """A tool that reads a version from git's tags: where `sign` (a regular expression) stands in a manifest, `variable`
    tells the tool the version, because the history in a sandbox has no tags."""

    model_config = _STRICT

    sign: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    variable: VariableName

    @field_validator("sign")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"must be a regular expression: {error}") from None
        return value


class Recipe(BaseModel):
    """How images of one kind of repository are built, brought up to date in a sandbox, and tested."""

    model_config = _STRICT

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]+$")]
    rank: int = 100
    """Of the recipes that fit, the one with the smallest rank is taken."""
    detects: tuple[Pattern, ...] = ()
    """Globs of paths; the recipe fits a tree that has one of them. Without a slash they mean the tree's top folder."""
    manifests: tuple[Pattern, ...] = ()
    """Globs of the files that dependencies follow from; the image's name is a hash over what these say."""
    packages: tuple[PackageName, ...] = ()
    """Debian packages beyond the base image."""
    keep: dict[Pattern, Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9_./-]+$")]] = {}
    """Folders of the work folder that move to a place in the image; the rest is deleted before the commit."""
    environment: dict[VariableName, str] = {}
    """Variables of the image. ``$PATH`` at the end of a value is the base image's."""
    offline: dict[VariableName, str] = {}
    """Variables of the image that the build, which has the network, does not see."""
    build: tuple[RecipeStep, ...] = ()
    """Steps with the network, in the work folder with a tree in it."""
    refresh: tuple[Script, ...] = ()
    """Offline, whenever a tree has been put in place: makes what installing the tree leaves (metadata, extensions)."""
    check: tuple[Script, ...] = ()
    """Offline, after a refresh; an image on which one fails is not kept."""
    lacks: Annotated[str, StringConstraints(max_length=20_000)] = ""
    """Offline, after a refresh, in an image that was built for another tree: prints what this tree's manifests ask for
    and is not there, a line each. Empty: images serve no tree but those whose manifests agree."""
    runner: Annotated[str, StringConstraints(pattern=r"^[a-z]+$")] = DEFAULT
    """What runs the tests and so reads their log: a name of `environments.suites.runners`."""
    test: Annotated[str, StringConstraints(max_length=2000)] = ""
    """A command in place of the runner's own, with ``{files}`` where the test files go; empty: the runner's own."""
    versions: tuple[VersionRule, ...] = ()
    python: Annotated[str, StringConstraints(pattern=r"^[0-9.<>=!~, *]*$", max_length=60)] = ""
    """The Python wanted, as in ``requires-python``; empty: what the project asks for."""
    extras: tuple[str, ...] | None = None
    """Extras to install; None: those for tests and development that the project has."""
    requirements: tuple[Annotated[str, StringConstraints(max_length=300, pattern=r"^[A-Za-z0-9][ -~]*$")], ...] = ()
    """Requirements (PEP 508) beyond the project's own."""
    requirement_files: tuple[Pattern, ...] | None = None
    """Requirement files to install; None: those for tests and development by their names."""

    @field_validator("runner")
    @classmethod
    def _runner_exists(cls, value: str) -> str:
        if value not in RUNNERS:
            raise ValueError(f"there is no test runner {value!r}; known are {', '.join(RUNNERS)}")
        return value

    def fits(self, paths: Iterable[str]) -> bool:
        """Whether the tree has a file that the recipe looks for."""
        return any(matches(path, self.detects) for path in paths)

    def digest(self) -> str:
        """A hash of what the image depends on: the recipe without its keys for tests and detection."""
        left_out: Any = dict.fromkeys(("rank", "detects", "runner", "test", "versions", "refresh", "lacks"), True)
        content = self.model_dump_json(exclude={**left_out, "build": {"__all__": {"tries", "asks_index"}}})
        return hashlib.sha256(content.encode()).hexdigest()


def parse_recipe(text: str, where: str) -> Recipe:
    """The recipe that a file holds; `where` names it in the `RecipeError` for one that holds none."""
    return _validated(_toml(text, where), where)


@cache
def shipped_recipes() -> tuple[Recipe, ...]:
    """The recipes of this package, best first."""
    folder = resources.files("environments.images") / "recipes"
    files = [file for file in folder.iterdir() if file.name.endswith(".toml")]
    found = [parse_recipe(file.read_text(encoding="utf-8"), file.name) for file in files]
    return tuple(sorted(found, key=lambda recipe: (recipe.rank, recipe.name)))


def choose(paths: Collection[str], repository: str, folder: Path | None = None) -> Recipe:
    """The recipe for a tree with these paths of `repository` (``owner/name``), the user's `folder` before ours.

    Raises `NoRecipe`, or `RecipeError` for a user's file that is not valid.
    """
    own, override = _users(folder, repository)
    known = (*own, *shipped_recipes())
    values = dict(override)
    requested = values.pop("recipe", None)
    fitting = [recipe for recipe in known if (recipe.name == requested if requested else recipe.fits(paths))]
    if not fitting:
        if requested:
            names = ", ".join(sorted({recipe.name for recipe in known}))
            raise RecipeError(f"{override_name(repository)}: there is no recipe {requested!r}; known are {names}")
        raise NoRecipe(f"no recipe fits {repository}: no {', '.join(sorted({p for r in known for p in r.detects}))}")
    return with_values(fitting[0], values, override_name(repository)) if values else fitting[0]


def named_recipe(name: str, folder: Path | None = None) -> Recipe:
    """The recipe of that name, the user's `folder` before ours; raises `RecipeError` where there is none."""
    own, _ = _users(folder, "")
    known = (*own, *shipped_recipes())
    for recipe in known:
        if recipe.name == name:
            return recipe
    names = ", ".join(sorted({recipe.name for recipe in known}))
    raise RecipeError(f"there is no recipe {name!r}; known are {names}")


def with_values(recipe: Recipe, values: Mapping[str, Any], where: str) -> Recipe:
    """The recipe with some keys replaced; tables of variables are merged. Raises `RecipeError`."""
    merged = {**recipe.model_dump(), **values}
    for table in ("environment", "offline"):
        merged[table] = {**getattr(recipe, table), **_table(values.get(table, {}), f"{where}: {table}")}
    return _validated(merged, where)


def override_name(repository: str) -> str:
    """The name of a user's file for one repository."""
    return f"{repository.lower().replace('/', '--')}.toml"


def _users(folder: Path | None, repository: str) -> tuple[tuple[Recipe, ...], Mapping[str, Any]]:
    if folder is None:
        return (), {}
    recipes, override = [], {}
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
        for file in files:
            if "--" not in file.name:
                recipes.append(parse_recipe(file.read_text(encoding="utf-8"), str(file)))
            elif file.name.lower() == override_name(repository):
                override = _toml(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"the recipes in {folder} cannot be read: {type(error).__name__}") from None
    return tuple(sorted(recipes, key=lambda recipe: (recipe.rank, recipe.name))), override


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{where} is no TOML: {error}") from None


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RecipeError(f"{where} must be a table")
    return value


def _validated(values: Mapping[str, Any], where: str) -> Recipe:
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise RecipeError(f"{where}: {key} is not a key of a recipe") from None
        raise RecipeError(f"{where}: {key}: {first['msg'].removeprefix('Value error, ')}") from None
