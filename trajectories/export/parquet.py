"""Rows as Parquet, a few at a time. Needs pyarrow, from the extra ``parquet``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from prchain.core.errors import UsageError
from trajectories.export.write import HashedFile

_ROWS_AT_ONCE = 64
"""A row group: about 25 MB where samples have 85,000 tokens."""


class ParquetRows:
    """Writes rows with a schema that is given beforehand, so that no row's missing key decides another's type."""

    def __init__(self, stream: HashedFile, columns: Mapping[str, Any]) -> None:
        """`columns` as in `trajectories.export.columns`. Raises `UsageError` where pyarrow is not installed."""
        self.count = 0
        self._stream = stream
        self._arrow, self._parquet = _pyarrow()
        self._columns = columns
        self._schema: Any = None
        self._writer: Any = None
        self._pending_rows: list[dict[str, Any]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._begin(row)
        if unknown := row.keys() - set(self._schema.names):
            raise ValueError(f"no column for {', '.join(sorted(unknown))}")
        self._pending_rows.append(
            {name: _column_value(row.get(name), self._columns[name]) for name in self._schema.names}
        )
        self.count += 1
        if len(self._pending_rows) >= _ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        if self._writer is None:
            self._begin(self._columns)
        self._flush()
        self._writer.close()

    def _begin(self, row: Mapping[str, Any]) -> None:
        used = {name: column_type for name, column_type in self._columns.items() if name in row}
        self._schema = self._arrow.schema([(name, self._type(column_type)) for name, column_type in used.items()])
        self._writer = self._parquet.ParquetWriter(self._stream, self._schema, compression="zstd")

    def _flush(self) -> None:
        if self._pending_rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._pending_rows, schema=self._schema))
            self._pending_rows = []

    def _type(self, column_type: Any) -> Any:
        if isinstance(column_type, str):
            return getattr(self._arrow, {"bool": "bool_"}.get(column_type, column_type))()
        if isinstance(column_type, list):
            return self._arrow.list_(self._type(column_type[0]))
        return self._arrow.struct([(name, self._type(inner)) for name, inner in column_type.items()])


def _column_value(value: Any, column_type: Any) -> Any:
    """A value as its column takes it: in a column of texts, a value that is no text becomes JSON. Raises `ValueError`
    for a key without a column: it would be lost."""
    if value is None:
        return None
    if isinstance(column_type, list):
        return [_column_value(item, column_type[0]) for item in value]
    if isinstance(column_type, dict):
        if unknown := value.keys() - column_type.keys():
            raise ValueError(f"no column for {', '.join(sorted(unknown))}")
        return {name: _column_value(value.get(name), inner) for name, inner in column_type.items()}
    if column_type == "string" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return value


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")  # heavy, and an extra
    except ImportError as error:
        raise UsageError("Parquet needs the package pyarrow: install prchain with its extra [parquet]") from error
