"""The page `docs/tables.md`: every table and column, from the declarations of `sql.tables` and the words beside them.

`python -m research.tables_page > docs/tables.md` writes it anew; a test compares it with what stands there.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from types import ModuleType

from sqlalchemy import Column, ForeignKeyConstraint, Table, UniqueConstraint
from sqlalchemy import types as kinds

import sql.tables as all_tables
from sql.tables import Base, asked, chained, curated, guided, imported, labelled, lined, mined, proved, rolled

MODULES = (mined, lined, chained, imported, labelled, proved, rolled, curated, guided, asked)
"""In the order in which the data flows."""

_WIDTH = 120

_HEAD = """\
# Tables

What `python -m research.tables_page` prints of `sql/tables/`; change the words there. `prchain sql --query
"SELECT ..."` reads the database, and [mining](mining.md#views-and-queries) tells of the views whose columns stay.
"""

_KINDS = (
    (kinds.Boolean, "boolean"),
    (kinds.Integer, "integer"),
    (kinds.Float, "real"),
    (kinds.LargeBinary, "binary"),
    (kinds.String, "text"),
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD, _conventions()]
    for module in MODULES:
        parts.append(_title(module))
        parts += [_table(node, Base.metadata.tables[name]) for name, node in _classes(module)]
    return "\n".join(parts)


def _conventions() -> str:
    """The conventions from the package's docstring, unchanged."""
    return _markdown(inspect.cleandoc(all_tables.__doc__ or "").split("\n\n", 1)[1]) + "\n"


def _title(module: ModuleType) -> str:
    name = module.__name__.rpartition(".")[2].capitalize()
    return f"## {name}\n\n{_wrapped(inspect.cleandoc(module.__doc__ or ''))}\n"


def _classes(module: ModuleType) -> Iterator[tuple[str, ast.ClassDef]]:
    """The tables of a module in the order of its source: name and declaration."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            table = getattr(module, node.name).__table__
            yield table.name, node


def _table(node: ast.ClassDef, table: Table) -> str:
    words = _words(node)
    sentences = [_markdown(ast.get_docstring(node) or ""), f"Key: {_column_names(table.primary_key.columns.keys())}."]
    sentences += sorted(filter(None, map(_constraint_text, table.constraints)))
    lines = [f"### {table.name}\n", _wrapped(" ".join(sentences)), ""]
    lines += [_wrapped(_column(column, words.get(column.name)), "  ") for column in table.columns]
    return "\n".join(lines) + "\n"


def _constraint_text(constraint: object) -> str:
    """What a constraint says, in words; nothing for the primary key, which has its own."""
    if isinstance(constraint, ForeignKeyConstraint):
        return f"Refers to `{constraint.referred_table.name}` by {_column_names(constraint.column_keys)}."
    if isinstance(constraint, UniqueConstraint):
        return f"Unique: {_column_names(constraint.columns.keys())}."
    return ""


def _column_names(columns: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def _column(column: Column[object], words: str | None) -> str:
    own = column.type.impl if isinstance(column.type, kinds.TypeDecorator) else column.type
    kind = next(name for of, name in _KINDS if isinstance(own, of))
    null = ", or null" if column.nullable else ""
    return f"- `{column.name}` ({kind}{null})" + (f": {words}" if words else "")


def _words(node: ast.ClassDef) -> dict[str, str]:
    """Column to the text below its declaration."""
    found = {}
    for statement, after in zip(node.body, node.body[1:], strict=False):
        match statement, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = _markdown(" ".join(text.split()))
    return found


def _markdown(text: str) -> str:
    """A docstring's marks as Markdown's."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()), _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    print(page(), end="")
