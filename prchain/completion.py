"""Completion of values with ``=``, ``:`` and ``,`` in them, which click's own scripts for the shells part or cut."""

from __future__ import annotations

import re
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, FishComplete, add_completion_class

_BREAKS = re.compile(r"[=:]+")
"""What bash makes words of their own (COMP_WORDBREAKS)."""

_PLAIN = "COMPREPLY+=($value)"


class BashShell(BashComplete):
    """bash completes what stands behind the last break of a word, so no more than that is offered."""

    source_template = BashComplete.source_template.replace(
        _PLAIN, f"{_PLAIN}\n            [[ $value == *= ]] && compopt -o nospace"
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """See `BashComplete.get_completion_args`."""
        parted, last = super().get_completion_args()
        words: list[str] = []
        glued = False
        for word in [*parted, last]:
            breaks = _BREAKS.fullmatch(word) is not None
            if words and (breaks or glued):
                words[-1] += word
            else:
                words.append(word)
            glued = breaks
        *whole, incomplete = words
        value = incomplete.partition("=")[2] if incomplete.startswith("-") else incomplete
        ends = [match.end() for match in _BREAKS.finditer(value)]
        self._before = value[: ends[-1]] if ends else ""
        return whole, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """See `BashComplete.format_completion`."""
        return f"{item.type},{str(item.value).removeprefix(self._before)}"


class FishShell(FishComplete):
    """fish parts what it is told at the first comma alone."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m1 ","')


def add_shells() -> None:
    """Have click use these."""
    add_completion_class(BashShell)
    add_completion_class(FishShell)
