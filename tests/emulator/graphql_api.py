"""Runs GraphQL queries as GitHub does: validated, priced, limited, partial data with typed errors."""

from __future__ import annotations

import json
import marshal
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from graphql import DocumentNode, GraphQLError, GraphQLSyntaxError, execute_sync, get_operation_ast, parse, validate

from tests.emulator.cost import Cost, Refused, cost_of
from tests.emulator.resolvers import Context, PullIndex, load_schema
from tests.emulator.world import World


@dataclass(frozen=True)
class Prepared:
    """A query that may run, or why it may not: `errors` in GitHub's shape."""

    document: DocumentNode | None
    operation: str | None
    cost: Cost | None
    errors: tuple[dict[str, Any], ...] = ()
    query: str = ""


MOST_KEPT = 32 << 20
"""Bytes of answers that are kept of one state of a world."""


@dataclass
class Kept:
    """Bodies, without what is left of the limits, that one state of a world gave to queries."""

    changes: int
    bodies: dict[tuple[Any, ...], bytes] = field(default_factory=dict)
    size: int = 0


_DOCUMENTS: dict[str, tuple[DocumentNode | None, tuple[dict[str, Any], ...]]] = {}
"""The text of a query to what it is parsed to, and its errors: one for all emulators of a process, as the schema is."""

_ANSWERS: WeakKeyDictionary[World, Kept] = WeakKeyDictionary()
"""Tests read the same world again and again, each time with another fault; to execute its queries took half of their
time."""


@dataclass
class GraphQLApi:
    """Execution over one world."""

    world: World
    _pulls: PullIndex = field(default_factory=PullIndex)

    def __post_init__(self) -> None:
        self.schema = load_schema()

    def prepare(self, query: str, variables: dict[str, Any], operation_name: str | None) -> Prepared:
        document, errors = self._parse(query)
        if document is None or errors:
            return Prepared(document, operation_name, None, errors)
        operation = get_operation_ast(document, operation_name)
        name = operation.name.value if operation and operation.name else operation_name
        try:
            return Prepared(document, name, cost_of(self.schema, document, variables, operation_name), query=query)
        except Refused as refused:
            return Prepared(document, name, None, (refused.error,))

    def run(
        self,
        prepared: Prepared,
        variables: dict[str, Any],
        operation_name: str | None,
        *,
        rate_limit: dict[str, Any] | None,
        viewer: str,
        bend: str | None,
    ) -> dict[str, Any]:
        """Return the answer's body: data, and errors where there were any."""
        assert prepared.document is not None
        if bend is not None:
            return self._executed(prepared.document, variables, operation_name, rate_limit, viewer, bend)
        kept = self._kept()
        key = (prepared.query, operation_name, json.dumps(variables, sort_keys=True), viewer, rate_limit is None)
        if key in kept.bodies:
            body: dict[str, Any] = marshal.loads(kept.bodies[key])
        else:
            body = self._executed(prepared.document, variables, operation_name, rate_limit, viewer, None)
            packed = marshal.dumps(body)
            if self._is_whole(prepared, body) and kept.size + len(packed) < MOST_KEPT:
                kept.bodies[key] = packed
                kept.size += len(packed)
        if rate_limit is not None and body["data"] and "rateLimit" in body["data"]:
            body["data"]["rateLimit"] = {name: rate_limit[name] for name in body["data"]["rateLimit"]}
        return body

    def _kept(self) -> Kept:
        found = _ANSWERS.get(self.world)
        if found is None or found.changes != self.world.changes:
            found = _ANSWERS[self.world] = Kept(self.world.changes)
        return found

    @staticmethod
    def _is_whole(prepared: Prepared, body: dict[str, Any]) -> bool:
        """Whether what is left of the limits stands where it is found again: not under a name of the query's own."""
        return "rateLimit" not in prepared.query or "rateLimit" in (body["data"] or {})

    def _executed(
        self,
        document: DocumentNode,
        variables: dict[str, Any],
        operation_name: str | None,
        rate_limit: dict[str, Any] | None,
        viewer: str,
        bend: str | None,
    ) -> dict[str, Any]:
        context = Context(self.world, rate_limit, viewer, self._pulls, bend)
        result = execute_sync(
            self.schema, document, context_value=context, variable_values=variables, operation_name=operation_name
        )
        body: dict[str, Any] = {"data": result.data}
        if result.errors:
            body["errors"] = [_shape(error) for error in result.errors]
        return body

    def _parse(self, query: str) -> tuple[DocumentNode | None, tuple[dict[str, Any], ...]]:
        if query not in _DOCUMENTS:
            try:
                document = parse(query)
                errors = tuple(_shape(error) for error in validate(self.schema, document))
                _DOCUMENTS[query] = (document, errors)
            except GraphQLSyntaxError as error:
                _DOCUMENTS[query] = (None, (_shape(error),))
        return _DOCUMENTS[query]


def _shape(error: GraphQLError) -> dict[str, Any]:
    """Return an error as GitHub writes it: its type beside the message, not under extensions."""
    if error.original_error is not None and not isinstance(error.original_error, GraphQLError):
        raise error.original_error  # a fault of the emulator itself
    shaped: dict[str, Any] = {"message": error.message}
    if error.path:
        shaped["path"] = list(error.path)
    if error.locations:
        shaped["locations"] = [location._asdict() for location in error.locations]
    if error.extensions:
        shaped.update(error.extensions)
    return shaped
