"""An agent program as data: how it is installed, set up and begun. Ours are ``shipped/*.toml``; a user's folder
(`agents_dir`) stands beside it.

In variables, in files and their paths, and in commands, these words are filled in: ``{base_url}``, ``{token}`` and
``{model}`` of the endpoint that answers it, ``{folder}`` with its program, ``{home}`` for what it writes, ``{session}``
for what it needs to go on, ``{task}``, a file with the task or the comment, and ``{workdir}`` with the repository. In
commands they are quoted for the shell.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from environments.programs.program import AgentProgram
from prchain.core.errors import UsageError


def _pattern(text: str) -> str:
    try:
        re.compile(f"(?:{text})")  # as it is used, beside others: flags for all would not stand at the beginning
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return text


Script = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\n]*$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=500), AfterValidator(_pattern)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_SUFFIX = ".toml"


class NextTurn(BaseModel):
    """How an agent program goes on with its session."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    command: Script
    """As `ProgramSpec.command`, with a comment, or the next stage's query, in ``{task}``."""


class ProgramSpec(BaseModel):
    """An agent program."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Text
    """That of its file."""
    help: Text
    version: Text
    """What is installed; its own exact number."""
    licence: Text
    protocol: Literal["chat/completions"] = "chat/completions"
    """What it speaks with its model."""
    install: Script
    """See `environments.programs.program.AgentProgram`."""
    volatile: tuple[Pattern, ...] = ()
    """Regular expressions of what the agent writes anew into what was said before, such as the date: it does not count
    where its requests are compared."""
    variables: dict[VariableName, str] = {}
    files: dict[Text, str] = {}
    """Path to content."""
    command: Script
    """Bash, in the repository; its end is the end of its work, with exit code 0 where it is done."""
    next: NextTurn | None = None
    """None: it cannot go on with a session; each attempt begins one."""

    @property
    def program(self) -> AgentProgram:
        """What is installed of it."""
        return AgentProgram(self.name, self.install)

    @property
    def digest(self) -> str:
        """Tells agents apart that work differently in their first turn."""
        none = () if self.volatile else ("volatile",)
        return _digest(self.model_dump(exclude={"name", "help", "licence", "next", *none}))

    @property
    def next_digest(self) -> str | None:
        """Tells agents apart that go on differently; None where it cannot."""
        return None if self.next is None else _digest(self.next.model_dump())


def _digest(value: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def filled(text: str, values: Mapping[str, str], *, for_shell: bool = False) -> str:
    """The text with the words in braces that `values` names filled in; other braces stay."""
    pattern = re.compile(r"\{(" + "|".join(map(re.escape, values)) + r")\}")
    return pattern.sub(lambda found: shlex.quote(values[found[1]]) if for_shell else values[found[1]], text)


def parse_program(name: str, text: str) -> ProgramSpec:
    """The agent of a file. Raises `UsageError` with one line."""
    try:
        values = tomllib.loads(text)
        return ProgramSpec.model_validate({**values, "name": name})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}{_SUFFIX} is no TOML: {error}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise UsageError(f"{name}{_SUFFIX}: {place}: {fault['msg']}") from None


class Programs(Mapping[str, ProgramSpec]):
    """Those that ship, and those of the user's folder, if there is one. Raises `UsageError` for a file of it that is no
    agent when that is looked up."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None and not folder.is_dir():
            raise UsageError(f"agents_dir: {folder} is no folder")
        self._shipped = resources.files("trajectories.programs") / "shipped"
        names = {item.name.removesuffix(_SUFFIX): item for item in self._shipped.iterdir() if _is_spec(item.name)}
        own = (
            {}
            if folder is None
            else {it.name.removesuffix(_SUFFIX): it for it in folder.iterdir() if _is_spec(it.name)}
        )
        self._files = dict(sorted({**names, **own}.items()))

    def __getitem__(self, name: str) -> ProgramSpec:
        file = self._files[name]
        if not _NAME.fullmatch(name):
            raise UsageError(f"agents_dir: {name!r} is no name of an agent: small letters, digits and hyphens")
        try:
            return parse_program(name, file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"agents_dir: {name}{_SUFFIX} cannot be read: {type(error).__name__}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _is_spec(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith(".")
