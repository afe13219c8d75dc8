"""What a tool is: its schema for the model, its arguments for us, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, field_validator

from environments.sandboxes.sandbox import Sandbox
from trajectories.agents.tools.edits import Edits
from trajectories.agents.tools.lasting_shell import LastingShell

_CLOSED = {"type", "description", "enum", "items", "minItems", "maxItems"}
"""Keys of a property's schema that the model gets: every endpoint and chat template accepts these."""


class Arguments(BaseModel):
    """Base of a tool's arguments.

    Types are read leniently (``"10"`` is a number: models often write that), unknown names are refused.
    """

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def _can_be_passed_on(cls, value: Any) -> Any:
        """Refuse characters that no shell and no path can hold; JSON can write them as escapes."""
        if isinstance(value, str):
            if "\0" in value:
                raise ValueError("holds a NUL character")
            if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
                raise ValueError("holds half of a surrogate pair")
        return value


@dataclass(slots=True)
class Workspace:
    """The sandbox and the state that the tools of one attempt share."""

    sandbox: Sandbox
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of every command."""
    timeout: float = 120.0
    """Seconds that a command may take."""
    most: int = 10_000
    """Characters of an observation."""
    cwd: str | None = None
    """The last folder of the agent's session, for entering it again."""
    variables: str | None = None
    """Commands that set the exported variables of the agent's session, where they are known to have changed."""
    whole: bool = False
    """Whether `variables` are of this attempt, so that they include those of `environment`."""
    session_ready: bool = False
    """Whether the session has its variables and its folder."""
    edits: Edits = field(default_factory=Edits)
    """Those of this attempt."""
    shell: LastingShell | None = None
    """The shell of a `bash` whose commands can go on, once it was asked for."""

    def close(self) -> None:
        """End what the tools let go on. Never fails."""
        if self.shell is not None:
            self.shell.close()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool did."""

    content: str
    """The text for the model; any characters."""
    error: str | None = None
    """Why the tool did not do what was asked, in at most 32 characters; None where it did."""
    details: Mapping[str, Any] = field(default_factory=dict)
    submits: bool = False
    """Whether the attempt ends here."""
    worked: bool = False
    """Whether the sandbox's files may have changed."""
    cwd: str | None = None
    """The session's folder, where the tool keeps one and it may have changed."""


class Tool(Protocol):
    """One tool. Keeps nothing itself: several threads use it at once."""

    name: ClassVar[str]
    arguments: ClassVar[type[Arguments]]

    @property
    def description(self) -> str:
        """The description for the model."""

    def run(self, arguments: Any, workspace: Workspace) -> ToolResult:
        """Do it. `arguments` is an instance of the tool's own class. Raises `SandboxError` where the sandbox fails."""


def schema_of(tool: Tool) -> dict[str, Any]:
    """The tool's schema for a model, in OpenAI's form."""
    schema = tool.arguments.model_json_schema()
    properties = {name: _plain(part) for name, part in schema.get("properties", {}).items()}
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _plain(part: Mapping[str, Any]) -> dict[str, Any]:
    """A property's schema without titles, defaults and the ``null`` of optional properties."""
    choices = [choice for choice in part.get("anyOf", ()) if choice.get("type") != "null"]
    merged = {**part, **choices[0]} if choices else dict(part)
    return {name: value for name, value in merged.items() if name in _CLOSED}
