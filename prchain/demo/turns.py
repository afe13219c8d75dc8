"""A turn of the demo's scripted agent, and the calls that it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

_STRICT = ConfigDict(extra="forbid", frozen=True)


class Replacement(BaseModel):
    """One edit: `old` must stand exactly once in the file, else the tool reports an error."""

    model_config = _STRICT

    path: str
    old: str
    new: str


class Creation(BaseModel):
    """One new file."""

    model_config = _STRICT

    path: str
    text: str


class AgentTurn(BaseModel):
    """A turn of the agent: its text, and one kind of call (several edits may be one turn)."""

    model_config = _STRICT

    say: str
    bash: str | None = None
    think: str | None = None
    create: Creation | None = None
    replace: tuple[Replacement, ...] = ()
    submit: bool = False


def calls_of(turn: AgentTurn, workdir: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tool and arguments of each call of a turn. `workdir` is the repository's path in a sandbox, for the editor; None
    where it is not known in advance: then files are edited with bash."""
    if turn.bash is not None:
        yield "bash", {"command": turn.bash}
    if turn.think is not None:
        yield "think", {"thought": turn.think}
    if turn.create is not None:
        yield _created(turn.create, workdir)
    for replacement in turn.replace:
        yield _replaced(replacement, workdir)
    if turn.submit:
        yield "submit", {}


def _created(creation: Creation, workdir: str | None) -> tuple[str, dict[str, Any]]:
    if workdir is not None:
        path = f"{workdir}/{creation.path}"
        return "str_replace_editor", {"command": "create", "path": path, "file_text": creation.text}
    return "bash", {"command": f"cat > {creation.path} <<'EOF'\n{creation.text}EOF"}


def _replaced(replacement: Replacement, workdir: str | None) -> tuple[str, dict[str, Any]]:
    if workdir is not None:
        path = f"{workdir}/{replacement.path}"
        return "str_replace_editor", {
            "command": "str_replace",
            "path": path,
            "old_str": replacement.old,
            "new_str": replacement.new,
        }
    program = (
        f"import pathlib\npath = pathlib.Path({replacement.path!r})\n"
        f"old, new = (\n    {replacement.old!r},\n    {replacement.new!r},\n)\n"
        "text = path.read_text()\nassert text.count(old) == 1, f'old stands {text.count(old)} times'\n"
        "path.write_text(text.replace(old, new))"
    )
    return "bash", {"command": f"python3 - <<'EOF'\n{program}\nEOF"}
