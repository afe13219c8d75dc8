"""The file of a study's drawing: refused before the work where it cannot be, written after it."""

from __future__ import annotations

from pathlib import Path

from prchain.core.errors import UsageError, no_room


def require_drawing(path: Path) -> None:
    """Refuse a file that is there and is no drawing; one that is was made by the same command before.

    Raises `UsageError`.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"<svg":
                raise UsageError(f"{path} is there already, and is no drawing; give another name")
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise UsageError(f"{path} cannot be written: there is no folder {path.parent}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def write_drawing(path: Path, svg: str) -> None:
    """Write a drawing. Raises `UsageError` and `DiskFull`."""
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise no_room(error, path) or UsageError(f"{path} cannot be written: {error.strerror}") from None
