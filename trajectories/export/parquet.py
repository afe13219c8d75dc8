"""Rows as Parquet, a few at a time. Needs pyarrow, which the extra ``parquet`` brings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from prchain.errors import UsageError
from trajectories.export.write import HashedFile

_ROWS_AT_ONCE = 64
"""A row group: about 25 MB where samples have 85,000 tokens."""


class ParquetRows:
    """Writes rows under one schema that is said beforehand, so that no row's missing key decides another's type."""

    def __init__(self, stream: HashedFile, columns: Mapping[str, Any]) -> None:
        """`columns` as in `trajectories.export.columns`. Raises `UsageError` where pyarrow is not installed."""
        self.count = 0
        self._stream = stream
        self._arrow, self._parquet = _pyarrow()
        self._columns = columns
        self._schema: Any = None
        self._writer: Any = None
        self._held: list[dict[str, Any]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._begin(row)
        if lost := row.keys() - set(self._schema.names):
            raise ValueError(f"no column for {', '.join(sorted(lost))}")
        self._held.append({name: _fit(row.get(name), self._columns[name]) for name in self._schema.names})
        self.count += 1
        if len(self._held) >= _ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        if self._writer is None:
            self._begin(self._columns)
        self._flush()
        self._writer.close()

    def _begin(self, row: Mapping[str, Any]) -> None:
        used = {name: kind for name, kind in self._columns.items() if name in row}
        self._schema = self._arrow.schema([(name, self._type(kind)) for name, kind in used.items()])
        self._writer = self._parquet.ParquetWriter(self._stream, self._schema, compression="zstd")

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(self._arrow.Table.from_pylist(self._held, schema=self._schema))
            self._held = []

    def _type(self, kind: Any) -> Any:
        if isinstance(kind, str):
            return getattr(self._arrow, {"bool": "bool_"}.get(kind, kind))()
        if isinstance(kind, list):
            return self._arrow.list_(self._type(kind[0]))
        return self._arrow.struct([(name, self._type(inner)) for name, inner in kind.items()])


def _fit(value: Any, kind: Any) -> Any:
    """A value as its column takes it: what is no text in a column of texts becomes JSON. Raises `ValueError` for a key
    that the columns do not know: it would be lost."""
    if value is None:
        return None
    if isinstance(kind, list):
        return [_fit(item, kind[0]) for item in value]
    if isinstance(kind, dict):
        if lost := value.keys() - kind.keys():
            raise ValueError(f"no column for {', '.join(sorted(lost))}")
        return {name: _fit(value.get(name), inner) for name, inner in kind.items()}
    if kind == "string" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return value


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")  # heavy, and an extra
    except ImportError as error:
        raise UsageError("Parquet needs the package pyarrow: install prchain with its extra [parquet]") from error
