"""A folder with prompts of the user's own, in place of ours: the setting ``prompts_dir``.

``FOLDER/GROUP/NAME.j2`` stands for the prompt of that name of the package whose last part is GROUP: ``verdicts/judge``.
It has the blocks and the variables of ours. A variable that it leaves out on purpose is named in a comment, so that no
material is lost by an oversight: ``{# without: results, nonce #}``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from prchain.core.errors import PromptError, SettingsError
from prchain.core.llm.prompts import Prompt, prompt_source
from prchain.core.suggest import meant

_SUFFIX = ".j2"

_WITHOUT = re.compile(r"\{#-?\s*without:([^#]*?)-?#\}")


class PromptForm(NamedTuple):
    """What a template needs, and has."""

    variables: frozenset[str]
    """Those that whoever asks gives it."""
    blocks: frozenset[str]
    others: bool
    """Whether it takes in other files, which its hash would not cover."""


def form_of(name: str, content: bytes) -> PromptForm:
    """The form of a template. Raises `PromptError` for bytes that are none."""
    from jinja2 import Environment, TemplateError, meta, nodes  # noqa: PLC0415  loaded with the first prompt

    try:
        tree = Environment().parse(content.decode("utf-8"))
    except (TemplateError, UnicodeDecodeError) as error:
        raise PromptError(f"the prompt {name} is no template: {error}") from None
    own = {one.name for one in tree.find_all(nodes.Name) if one.ctx == "store"}
    taken_in = (nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)
    return PromptForm(
        # What is set in a branch counts there as not declared.
        frozenset(meta.find_undeclared_variables(tree)) - own,
        frozenset(block.name for block in tree.find_all(nodes.Block)),
        any(True for _ in tree.find_all(taken_in)),
    )


def group_of(package: str) -> str:
    """The folder of a package's prompts in `prompts_dir`."""
    return package.rpartition(".")[2]


class PromptFolder:
    """The user's own prompts. All of them are checked when the first prompt is wanted, before any call."""

    def __init__(self, folder: Path, known: Collection[tuple[str, str]]) -> None:
        """`known` are the packages and names of all prompts."""
        self._folder = folder.absolute()
        self._known = {f"{group_of(package)}/{name}": (package, name) for package, name in known}

    def __call__(self, package: str, name: str) -> Prompt | None:
        """See `prchain.core.llm.prompts.OwnPrompts`. Raises `SettingsError` where any file of the folder is no good."""
        return self._prompts.get((package, name))

    @functools.cached_property
    def _prompts(self) -> dict[tuple[str, str], Prompt]:
        if not self._folder.is_dir():
            raise SettingsError(f"prompts_dir: {self._folder} is no folder")
        return {
            self._known_as(path): self._checked(path, *self._known_as(path))
            for path in sorted(self._folder.rglob(f"*{_SUFFIX}"))
        }

    def _known_as(self, path: Path) -> tuple[str, str]:
        name = path.relative_to(self._folder).as_posix().removesuffix(_SUFFIX)
        if name not in self._known:
            raise SettingsError(f"prompts_dir: {name}{_SUFFIX} is no prompt; {meant(name, self._known, 'known are')}")
        return self._known[name]

    def _checked(self, path: Path, package: str, name: str) -> Prompt:
        place = f"prompts_dir: {path.relative_to(self._folder).as_posix()}"
        ours = form_of(name, prompt_source(package, name))
        try:
            content = path.read_bytes()
            own, prompt = form_of(name, content), Prompt.from_source(name, content)
        except OSError as error:
            raise SettingsError(f"{place} cannot be read: {type(error).__name__}") from None
        except PromptError as error:
            raise SettingsError(f"{place}: {error}") from None
        if own.others:
            raise SettingsError(f"{place} takes in another file; a prompt is one file")
        if own.blocks != ours.blocks:
            raise SettingsError(f"{place} must have the blocks {', '.join(sorted(ours.blocks))}, and no other")
        without = _without(content)
        for one in sorted((own.variables | without) - ours.variables):
            raise SettingsError(f"{place}: it has no variable {one}; {meant(one, ours.variables, 'known are')}")
        if both := without & own.variables:
            raise SettingsError(f"{place} names {min(both)} as left out, and has it")
        if missing := sorted(ours.variables - own.variables - without):
            words = ", ".join(missing)
            raise SettingsError(f"{place} lacks {words}; what is left out on purpose is told: {{# without: {words} #}}")
        return prompt


def _without(content: bytes) -> frozenset[str]:
    text = content.decode("utf-8")
    words = (word.strip() for found in _WITHOUT.finditer(text) for word in found[1].split(","))
    return frozenset(word for word in words if word)
