"""Columns of JSON: values in the code, JSON text in the database, which named queries and hashes read as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Dialect, Text, type_coerce
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import TypeDecorator

from prchain.core.errors import RowUnreadable
from prchain.core.storable import clean_text


class JsonText(TypeDecorator[Any]):
    """A text column that takes and gives JSON lists and objects; None is SQL's null.

    The text of a column never changes its form, because hashes are taken of it: `sort_keys` and `unicode` (letters
    beyond ASCII as they are, not as ``\\uXXXX``) belong to the column. Reading raises `RowUnreadable` where the text is
    no JSON.
    """

    impl = Text
    cache_ok = True
    place = "a column"
    """``table.column``, for messages; `sql.tables.base.Base` sets it."""

    def __init__(self, *, sort_keys: bool = False, unicode: bool = False) -> None:
        super().__init__()
        self.sort_keys = sort_keys
        self.unicode = unicode

    def text_of(self, value: Any) -> str:
        """The text that the column holds of a value: a mapping, or a list, tuple or other sequence.

        Raises `TypeError` for a text: it would be quoted, and is most likely JSON already.
        """
        if isinstance(value, str):
            raise TypeError(f"{self.place} takes JSON values, and was given a text")
        plain = dict(value) if isinstance(value, Mapping) else list(value)
        text = json.dumps(plain, sort_keys=self.sort_keys, ensure_ascii=not self.unicode)
        return clean_text(text)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """See SQLAlchemy."""
        return None if value is None else self.text_of(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """See SQLAlchemy."""
        if value is None:
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RowUnreadable(f"the database holds a text in {self.place} that is no JSON") from error


def as_stored(columns: Iterable[Any]) -> list[ColumnElement[Any]]:
    """The columns for a query that gives JSON as the text that is stored, not as values."""
    return [type_coerce(column, Text) if isinstance(column.type, JsonText) else column for column in columns]
