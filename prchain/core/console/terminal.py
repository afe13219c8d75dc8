"""The output of commands, each kind printed in one way: lines, JSON, tables, lists, and the words for numbers.

All of it may hold mined text, which cannot steer a terminal or forge lines. What stands on a terminal fits its width
(`prchain.core.console.columns`); what goes into a pipe or a file is not folded, and a patch goes there byte by byte.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ParamSpec

import click

from prchain.core.console.columns import cell_length, columns, folded
from prchain.core.console.reports import json_value

_P = ParamSpec("_P")

STEERING = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""Control characters, line breaks, the marks that turn the direction of writing, and what is not seen at all (Unicode's
default ignorable code points). The joiners and variation selectors of emoji and of Persian are no such."""

_BREAKS = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]+")

_FIGURE = re.compile(r"|[-?]|-?[\d.,]+(%| bytes?| [kMGT]B)?")
"""What a right-aligned cell of a table holds."""

_LABEL = 9
_TITLE = 44
_REASONS_SHOWN = 3
_LONGEST_REASON = 400

_PROSE = 100
"""Characters of a line of prose."""

_NARROWEST = 16
"""Columns of a cell that a line shows at least: those of a chain's id."""

_GAP = 2
"""Between two columns."""


def clean(text: str) -> str:
    """The text in one line, in which nothing steers a terminal: line breaks and tabs become a space, and every other
    such character is shown as its escape (``\\x1b``), so that a reader sees that it is there."""
    return escaped(_BREAKS.sub(" ", text)) if STEERING.search(text) else text


def escaped(text: str) -> str:
    """The text in one line, in which everything that steers a terminal, line breaks too, is shown as its escape."""
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def say(line: str = "", *, err: bool = False) -> None:
    """Print one line, whatever it holds; on a terminal that is narrower, in several."""
    for part in folded(clean(line), columns(sys.stderr if err else sys.stdout)):
        click.echo(part, err=err)


def say_whole(line: str, *, err: bool = False) -> None:
    """Print one line that has to stay as it is, as one of a program, or a command to copy."""
    click.echo(clean(line), err=err)


def say_command(command: str) -> None:
    """Print a command behind a prompt; on a terminal that is narrower in several lines, which can be copied as one."""
    width = columns()
    quoted = "'" in command or '"' in command
    *lines, last = folded(clean(f"$ {command}"), None if width is None or quoted else width - 2)
    for line in lines:
        say_whole(f"{line} \\")
    say_whole(last)


def say_traceback(text: str) -> None:
    """Print the lines of a traceback to standard error; what they quote cannot steer."""
    for line in text.splitlines():
        say_whole(line, err=True)


def say_next(command: str) -> None:
    """Name the command that mostly comes next, where a person reads: nothing is printed into a pipe or a file."""
    if sys.stdout.isatty():
        say(f"next: prchain {command}")


def json_text(value: Any) -> str:
    """JSON as every command prints it, of a report, too: indented, in printable ASCII, so that no mined text acts where
    it is shown."""
    return json.dumps(json_value(value), indent=2).replace("\x7f", "\\u007f")


def present(as_json: bool, row: Any, print_text: Callable[_P, None], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Print `row` for machines, or call `print_text` with the rest for people."""
    if as_json:
        click.echo(json_text(row))
    else:
        print_text(*args, **kwargs)


def say_facts(facts: Mapping[str, Any], *, indent: int = 2) -> None:
    """Print names with their values beside each other; what is None or empty is left out."""
    width = max(_LABEL, *map(len, facts))
    for name, value in facts.items():
        if value not in (None, ""):
            say(f"{'':<{indent}}{name:<{width}} {value}")


def say_counts(title: str, counts: Mapping[str, int], *, total: int | None = None, indent: int = 2) -> None:
    """Print a total (None: the sum of the counts), and below it the counts."""
    say(f"{'':<{indent}}{title:<{_TITLE - indent}}{sum(counts.values()) if total is None else total:>8,}")
    for name, count in counts.items():
        say(f"{'':<{indent + 2}}{name:<{_TITLE - indent - 2}}{count:>8,}")


def say_prose(text: str, *, indent: int = 0, further: int = 2, width: int = _PROSE, hyphens: bool = False) -> None:
    """Print a text in lines of `width` characters at most, and of the terminal's, of which the second and the next are
    indented `further`.

    With `hyphens` a line may also end at a hyphen within a word. A text without words is an empty line.
    """
    first, others = " " * indent, " " * (indent + further)
    width = min(width, columns() or width)
    lines = textwrap.wrap(clean(text), width, initial_indent=first, subsequent_indent=others, break_on_hyphens=hyphens)
    for line in lines or [first]:
        say(line)


def say_text(text: str, *, indent: int = 0) -> None:
    """Print a text whole, in its own lines; a tab as the spaces that it stands for."""
    for line in text.removesuffix("\n").split("\n"):
        say_whole(f"{'':<{indent}}{line.removesuffix(chr(13)).expandtabs()}")


def say_content(content: bytes) -> None:
    """Print whole lines of a file, or a patch, which other tools are to read.

    Into a pipe or a file goes every byte as it is. On a terminal a tab is the spaces that it stands for, and everything
    else that steers, a carriage return too, is shown as its escape, as is a byte that is no UTF-8.
    """
    if not sys.stdout.isatty():
        takes_bytes = hasattr(sys.stdout, "buffer")  # a caller may collect texts in a stream of its own
        click.echo(content if takes_bytes else content.decode("utf-8", "replace"), nl=False)
        return
    for line in content.removesuffix(b"\n").split(b"\n"):
        click.echo(escaped(line.decode("utf-8", "backslashreplace").expandtabs()))


def say_some(lines: Collection[str], most: int, *, indent: int = 4, rest: str = "", err: bool = False) -> None:
    """Print `most` lines and the number of the others; `rest` says where these are."""
    for line in list(lines)[:most]:
        say(f"{'':<{indent}}{line}", err=err)
    if len(lines) > most:
        say(f"{'':<{indent}}... {len(lines) - most:,} more" + (f"; {rest}" if rest else ""), err=err)


def say_reasons(ended: Iterable[tuple[str, str, str | None]], *, rest: str = "") -> None:
    """Print to standard error why things ended as they did: name, outcome and reason of each.

    For each outcome the most common reasons are printed, with the first name that ended so and the number of the
    others.
    """
    outcomes: dict[str, dict[str, list[str]]] = {}
    for name, outcome, reason in ended:
        outcomes.setdefault(outcome, {}).setdefault(reason or "no reason given", []).append(name)
    for outcome, reasons in outcomes.items():
        ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
        for reason, names in ordered[:_REASONS_SHOWN]:
            say(f"{listed(names, 1)}: {outcome}: {shortened(reason, _LONGEST_REASON)}", err=True)
        if others := sum(len(names) for _, names in ordered[_REASONS_SHOWN:]):
            say(f"{others:,} more: {outcome}: other reasons" + (f"; {rest}" if rest else ""), err=True)


def say_table(names: Sequence[str], rows: Iterable[Sequence[Any]], *, indent: int = 0, most: int | None = None) -> None:
    """Print rows below the names of their columns, each in one line where they fit into the terminal, and into `most`
    columns wherever they go. Cells are as `table_lines` takes them."""
    width = min(filter(None, (columns(), most)), default=None)
    for line in table_lines(names, rows, width=width and width - indent):
        say_whole(f"{'':<{indent}}{line}".rstrip())


def table_lines(names: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None) -> Iterator[str]:
    """Text columns are left-aligned and number columns right-aligned; columns without names have no head.

    Where `width` is given, long cells and then heads are folded into it; where that leaves columns too narrow to read,
    each row stands by itself, with a line or more for each of its cells.
    """
    cells = [["" if cell is None else clean(str(cell)) for cell in row] for row in rows]
    heads = [clean(str(name)) for name in names]
    shown = heads
    if width is not None and not _fits(heads, cells, width):
        shown = _folded_heads(heads, cells)
        if not _fits(shown, cells, width):
            for number, row in enumerate(cells, 1):
                yield f"-- row {number:,} of {len(cells):,}"
                yield from _lines_of_table((), list(zip(heads, row, strict=True)), width)
            return
    yield from _lines_of_table(shown, cells, width)


def _folded_heads(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """Heads of a word or more a line, no wider than what the column has to show of its cells."""
    return [
        "\n".join(textwrap.wrap(head, max(1, *map(cell_length, head.split()), *(_shown(cell) for cell in column))))
        for head, column in zip_longest(heads, zip(*cells, strict=True), fillvalue="")
    ]


def _shown(cell: str) -> int:
    return min(cell_length(cell), _NARROWEST)


def _fits(heads: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> bool:
    """Whether a table of this width shows heads and figures whole, and of other cells at least `_NARROWEST` a line."""
    least = [
        max(*map(cell_length, head.split("\n")), *(_shown(row[place]) for row in cells), 0)
        for place, head in enumerate(heads)
    ]
    return sum(least) + _GAP * (len(least) - 1) <= width


def _lines_of_table(heads: Sequence[str], cells: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    from rich.console import Console  # noqa: PLC0415  only a table needs it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=bool(heads))
    for head, column in zip_longest(heads, zip(*cells, strict=True), fillvalue=""):
        figures = all(map(_FIGURE.fullmatch, column))
        table.add_column(Text(head), justify="right" if figures else "left", overflow="fold", no_wrap=figures)
    for row in cells:
        table.add_row(*map(Text, row))
    # With a height, too: without one rich takes 80 columns for granted where TERM is dumb, also in a pipe.
    console = Console(width=width or 1_000_000, height=25, color_system=None, legacy_windows=False)
    with console.capture() as printed:
        console.print(table)
    yield from (line.rstrip() for line in printed.get().splitlines())


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the singular or the plural: ``1 chain``, ``2 repositories``, ``3 branches``."""
    plural = re.sub("(?<=[^aeiou])y$", "ie", re.sub("(?<=[cs]h)$", "e", noun)) + "s"
    return f"{count:,} {noun if count == 1 else plural}"


def tally(counts: Mapping[str, int]) -> str:
    """Counts with their names: ``3 accepted, 1 rejected``; what is 0 is left out."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def summed(noun: str, outcomes: Iterable[str]) -> str:
    """How many there are, and how many of each outcome: ``4 tasks, 1 bad_reply, 3 ready``."""
    counts = Counter(outcomes)
    return ", ".join(filter(None, (counted(counts.total(), noun), tally(dict(sorted(counts.items()))))))


def megabytes(size: int) -> str:
    """A number of bytes in words, in megabytes."""
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e6:.1f} MB"


def dollars(usd: float | None) -> str:
    """An amount with its unit; None is a price that is not known."""
    return "price unknown" if usd is None else f"{usd:,.4f} USD"


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others: ``a, b and 3 more``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def shortened(text: str, most: int) -> str:
    """The text in one line of so many characters at most, with a mark where it was cut: between words, but for a long
    one that would take much along."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    kept, between = line[: most - 4], line[most - 4] == " "
    whole = kept if between else kept.rpartition(" ")[0]
    return f"{(whole if len(whole) > len(kept) // 2 else kept).rstrip()} ..."
