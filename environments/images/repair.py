"""Repairing a recipe that does not build: a model reads the log and proposes changes, a bounded number of times.

A proposal can only fill in fields that are checked one by one; it reaches a shell in the build's container and nowhere
else. The recipe that worked is stored as the user's own for that repository, a file to read, change and share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from environments.images.recipes import PackageName, Recipe, VariableName, override_name, with_values
from prchain.core.errors import BuildFailed, RecipeError
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.prompts import Fence, load_prompt
from prchain.core.secrets.scrub import scrub_mined

PURPOSE = "repair"

MOST_TRIES = 3

_LONGEST_LOG = 12_000

_LONGEST_MANIFESTS = 20_000

_KEPT_OUT = frozenset({"PATH", "HOME", "BUILD", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV"})

Built = TypeVar("Built")


class Proposal(BaseModel):
    """A change of a recipe. What is empty stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: Annotated[str, StringConstraints(max_length=600)]
    packages: tuple[PackageName, ...] = Field(default=(), max_length=40)
    requirements: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][ -~]*$", max_length=300)], ...] = Field(
        default=(), max_length=40
    )
    extras: tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=100)], ...] | None = None
    python: Annotated[str, StringConstraints(pattern=r"^[0-9.<>=!~, *]*$", max_length=60)] = ""
    environment: dict[VariableName, Annotated[str, StringConstraints(max_length=500)]] = {}
    script: Annotated[str, StringConstraints(max_length=4_000)] = ""


def apply_proposal(recipe: Recipe, proposal: Proposal) -> Recipe:
    """The recipe with the change. Raises `RecipeError` for a proposal that changes nothing, or what it may not."""
    return with_values(recipe, changes(recipe, proposal), "the proposal")


def changes(recipe: Recipe, proposal: Proposal) -> dict[str, object]:
    """The keys of the recipe that the proposal changes, with their new values, as a user's file has them."""
    found: dict[str, object] = {}
    packages = tuple(dict.fromkeys((*recipe.packages, *proposal.packages)))
    requirements = tuple(dict.fromkeys((*recipe.requirements, *proposal.requirements)))
    if packages != recipe.packages:
        found["packages"] = packages
    if requirements != recipe.requirements:
        found["requirements"] = requirements
    if proposal.extras is not None and proposal.extras != recipe.extras:
        found["extras"] = proposal.extras
    if proposal.python and proposal.python != recipe.python:
        found["python"] = proposal.python
    if forbidden := _KEPT_OUT & proposal.environment.keys():
        raise RecipeError(f"the proposal: environment: {', '.join(sorted(forbidden))} may not be set")
    if any(recipe.environment.get(name) != value for name, value in proposal.environment.items()):
        found["environment"] = {**recipe.environment, **proposal.environment}
    if proposal.script.strip():
        steps = [step.model_dump() for step in recipe.build if step.name != PURPOSE]
        index = next((index for index, step in enumerate(steps) if step["name"] == "dependencies"), 0)
        found["build"] = (*steps[:index], {"name": PURPOSE, "run": (proposal.script,)}, *steps[index:])
    if not found:
        raise RecipeError("the proposal changes nothing")
    return found


def question(
    repository: str, recipe: Recipe, manifests: Mapping[str, str], failure: BuildFailed, tried: str, attempt: int
) -> Question:
    """The question to the model. Logs and manifests are text of others: scrubbed, cut and fenced."""
    log = scrub_mined("\n".join([*failure.lines, "...", failure.log[-_LONGEST_LOG:]]))
    texts = scrub_mined("\n\n".join(f"=== {path}\n{text}" for path, text in manifests.items()))[:_LONGEST_MANIFESTS]
    recipe_text = recipe.model_dump_json(indent=1, exclude={"detects", "manifests", "versions", "rank"})
    fence = Fence(texts, recipe_text, log, tried)
    prompt = load_prompt("environments.images", "repair")
    messages = prompt.render(
        repository=repository, step=failure.step, manifests=texts, recipe=recipe_text, log=log, tried=tried, fence=fence
    )
    return Question(PURPOSE, repository, prompt, messages, attempt=attempt)


def repair(
    gateway: Gateway,
    repository: str,
    recipe: Recipe,
    manifests: Mapping[str, str],
    failure: BuildFailed,
    build: Callable[[Recipe], Built],
    *,
    tries: int = MOST_TRIES,
) -> tuple[Recipe, Built]:
    """Ask for changes until `build` succeeds with the changed recipe; returns that recipe and what was built.

    Each proposal builds on the ones before it. Raises the last `BuildFailed` after `tries` proposals, where two led to
    the same failure, and where one changes nothing; `LlmError` where it gets no proposal.
    """
    tried: list[str] = []
    seen = set[tuple[str, str]]()
    for attempt in range(tries):
        repair_question = question(repository, recipe, manifests, failure, "\n".join(tried), attempt)
        proposal = gateway.ask_for(repair_question, Proposal).value
        if proposal == Proposal(why=proposal.why):
            raise failure
        try:
            recipe = apply_proposal(recipe, proposal)
            return recipe, build(recipe)
        except RecipeError as error:
            tried.append(f"{proposal.model_dump_json(exclude_defaults=True)}\n-> {error}")
        except BuildFailed as error:
            failure = error
            if (error.step, str(error)) in seen:
                raise
            seen.add((error.step, str(error)))
            tried.append(f"{proposal.model_dump_json(exclude_defaults=True)}\n-> {scrub_mined(str(error))}")
    raise failure


def changed_keys(origin: Recipe, recipe: Recipe) -> dict[str, object]:
    """The keys in which a recipe differs from its origin, with its values: the content of a user's file."""
    old, new = origin.model_dump(), recipe.model_dump()
    return {key: value for key, value in new.items() if value != old[key] and value is not None}


def store_recipe(folder: Path, repository: str, recipe: Recipe, changed: Mapping[str, object]) -> Path:
    """Write the user's file for a repository: the recipe that it starts from, and the keys that changed.

    A file that is there is kept beside it as ``.toml.bak``. Raises `RecipeError` where the folder cannot be written.
    """
    lines = [f"recipe = {_quoted(recipe.name)}"]
    steps = changed.get("build", ())
    lines += [f"{key} = {_quoted(value)}" for key, value in changed.items() if key not in {"name", "build"}]
    for step in steps if isinstance(steps, tuple) else ():
        lines += ["", "[[build]]", *(f"{key} = {_quoted(value)}" for key, value in step.items())]
    file = folder / override_name(repository)
    new = file.with_suffix(".toml.new")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if file.exists():
            file.replace(file.with_suffix(".toml.bak"))
        new.replace(file)
    except OSError as error:
        raise RecipeError(f"the recipe that worked cannot be stored in {folder}: {error.strerror}") from None
    return file


def _quoted(value: object) -> str:
    """A value as TOML writes it in one line; texts in JSON's way, but for the one character that only TOML escapes."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_quoted(str(key))} = {_quoted(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_quoted, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
