"""Texts that go to a shell in a sandbox: commands, and variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from prchain.core.errors import SandboxError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_variables(environment: Mapping[str, str], *texts: str) -> None:
    """Raises `SandboxError` for what cannot be a variable, or holds a NUL."""
    for name in environment:
        if not _VARIABLE.match(name):
            raise SandboxError(f"{name!r} is no name of a variable")
    for text in (*environment.values(), *texts):
        encoded(text)


def encoded(text: str) -> bytes:
    """A shell text as bytes. Bytes that are no UTF-8 stand in it as lone surrogates (`os.fsdecode`)."""
    if "\0" in text:
        raise SandboxError("a command cannot hold a NUL")
    return text.encode("utf-8", "surrogateescape")
