"""Which lines of a file programs print that print nothing else: ``cat``, ``head``, ``nl``, ``sed -n``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

END: Final = 10**12
"""Stands for the last line of a file, whatever its number."""

Lines: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of lines, both ends included, in the order in which they are printed."""

WHOLE: Final[Lines] = ((1, END),)

MOST_RANGES = 64
"""More ranges at once than that are no view."""

_SED_ADDRESS = re.compile(r"([0-9]{1,9}|\$)(?:,(\+?[0-9]{1,9}|\$))?p|[0-9]{1,9}q")
_COUNT = re.compile(r"[0-9]{1,9}")


class PrintedLines(NamedTuple):
    """Which lines of its files, or of its input where it names none, a program prints."""

    files: list[str]
    lines: Lines


def selection(program: str, words: Sequence[str]) -> PrintedLines | None:
    """What a program prints with these arguments; None for one that prints something else than lines of files whose
    numbers are known."""
    choose = _PROGRAMS.get(program)
    chosen = choose(words) if choose else None
    return None if chosen is None or len(chosen.lines) > MOST_RANGES else chosen


def _cat(words: Sequence[str]) -> PrintedLines | None:
    return PrintedLines([word for word in words if word == "-" or not word.startswith("-")], WHOLE)


def _head(words: Sequence[str]) -> PrintedLines | None:
    count = "10"
    files: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in {"-n", "--lines"}:
            count = next(rest, "")
        elif word.startswith("--lines="):
            count = word.partition("=")[2]
        elif word.startswith("-n"):
            count = word[2:]
        elif word in {"-q", "-v", "--quiet", "--verbose", "--"}:
            pass
        elif word.startswith("-") and word != "-":
            count = word[1:]
        else:
            files.append(word)
    if not _COUNT.fullmatch(count) or int(count) == 0:
        return None
    return PrintedLines(files, ((1, int(count)),))


def _nl(words: Sequence[str]) -> PrintedLines | None:
    files: list[str] = []
    rest = iter(words)
    for word in rest:
        if len(word) == 2 and word[0] == "-" and word[1] in "bdfhilnsvw":
            next(rest, None)
        elif word == "-" or not word.startswith("-"):
            files.append(word)
    return PrintedLines(files, WHOLE)


def _sed(words: Sequence[str]) -> PrintedLines | None:
    scripts: list[str] = []
    names: list[str] = []
    quiet = False
    rest = iter(words)
    for word in rest:
        if word in {"--quiet", "--silent"}:
            quiet = True
        elif word == "--expression":
            scripts.append(next(rest, ""))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif re.fullmatch(r"-[nEru]*e?", word) and word != "-":
            quiet = quiet or "n" in word
            scripts += [next(rest, "")] if word.endswith("e") else []
        elif word.startswith("-") and word != "-":
            return None
        else:
            names.append(word)
    if not scripts:
        scripts, names = names[:1], names[1:]
    lines = _printed("\n".join(scripts)) if quiet else None
    # The lines of several files have one numbering.
    return None if lines is None or len(names) > 1 else PrintedLines(names, lines)


def _printed(script: str) -> Lines | None:
    """The lines that a script of ``sed -n`` prints; None where it does more than that."""
    lines: list[tuple[int, int]] = []
    end = END
    for command in re.split(r"[;\n]", "".join(script.split(" "))):
        match = _SED_ADDRESS.fullmatch(command)
        if match is None:
            return None
        if match[1] is None:
            end = min(end, int(command[:-1]))
            continue
        first = END if match[1] == "$" else int(match[1])
        if first == 0:
            return None
        lines.append((first, max(first, _last(first, match[2]))))
    return merged((first, min(last, end)) for first, last in lines if first <= end) or None


def merged(lines: Iterable[tuple[int, int]]) -> Lines:
    """The same lines as ranges that neither overlap nor touch, in the order of the file."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if out and first <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(out[-1][1], last)
        else:
            out.append((first, last))
    return tuple(out)


def _last(first: int, address: str | None) -> int:
    if address is None or address == "$":
        return first if address is None else END
    return min(first + int(address[1:]), END) if address.startswith("+") else int(address)


_PROGRAMS: Mapping[str, Callable[[Sequence[str]], PrintedLines | None]] = {
    "cat": _cat,
    "head": _head,
    "nl": _nl,
    "sed": _sed,
}


def narrowed(lines: Lines, chosen: Lines) -> Lines:
    """The `chosen` of the lines, counted in the order in which they are printed; of more than `MOST_RANGES` the first
    ones."""
    out: list[tuple[int, int]] = []
    for first, last in chosen:
        before = 0
        for start, end in lines:
            count = END if end == END else end - start + 1
            low, high = max(first - before, 1), min(last - before, count)
            if low <= high:
                out.append((min(start + low - 1, END), END if end == END and last == END else start + high - 1))
            before += count
            if before >= last or len(out) > MOST_RANGES:
                break
    return tuple(out[: MOST_RANGES + 1])
