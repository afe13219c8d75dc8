"""The cost of a query before it runs: GitHub's documented node and point formulas, and its page limits.

Nodes: every connection counts its page size, times the page sizes of the connections around it; every id of
`nodes(ids:)` counts one and multiplies what is inside it. Points: the number of requests that would fetch each
connection once for each of its possible parents, divided by 100 and rounded, at least 1. A connection without a page
size, of which only the total is requested, counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_named_type,
    get_operation_ast,
    value_from_ast_untyped,
)

NODE_LIMIT = 500_000
PAGE_LIMIT = 100
IDS_LIMIT = 100


class Refused(Exception):
    """GitHub refuses to run this query; `error` is its entry in `errors`."""

    def __init__(self, kind: str, message: str, path: list[str], node: FieldNode | None = None) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"type": kind, "path": path, "message": message}
        if node is not None:
            located = GraphQLError(message, [node])
            self.error["locations"] = [location._asdict() for location in located.locations or ()]


@dataclass(frozen=True)
class Cost:
    points: int
    nodes: int
    requests: int
    page_size: int | None
    """Items requested of the outermost connection or, without one, ids of `nodes(ids:)`."""


@dataclass
class _Tally:
    nodes: int = 0
    requests: int = 0
    page_size: int | None = None


def cost_of(
    schema: GraphQLSchema, document: DocumentNode, variables: dict[str, Any], operation_name: str | None = None
) -> Cost:
    """Return the static cost of a valid document; raises `Refused` beyond a limit."""
    operation = get_operation_ast(document, operation_name)
    if operation is None or schema.query_type is None:
        raise Refused("invalid", "No operation", [])
    fragments = {d.name.value: d for d in document.definitions if isinstance(d, FragmentDefinitionNode)}
    tally = _Tally()
    walker = _Walker(schema, fragments, _with_defaults(operation, variables), tally)
    walker.walk(schema.query_type, [operation.selection_set], 1, [_operation_label(operation)], outermost=True)
    if tally.nodes > NODE_LIMIT:
        message = f"This query requests up to {tally.nodes:,} possible nodes which exceeds the maximum limit of"
        raise Refused("MAX_NODE_LIMIT_EXCEEDED", f"{message} {NODE_LIMIT:,}.", [])
    return Cost(max(1, int(tally.requests / 100 + 0.5)), tally.nodes, tally.requests, tally.page_size)


def _operation_label(operation: OperationDefinitionNode) -> str:
    return f"query {operation.name.value}" if operation.name else "query"


def _with_defaults(operation: OperationDefinitionNode, variables: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        definition.variable.name.value: value_from_ast_untyped(definition.default_value)
        for definition in operation.variable_definitions or ()
        if definition.default_value is not None
    }
    return defaults | variables


class _Walker:
    def __init__(
        self,
        schema: GraphQLSchema,
        fragments: dict[str, FragmentDefinitionNode],
        variables: dict[str, Any],
        tally: _Tally,
    ) -> None:
        self.schema, self.fragments, self.variables, self.tally = schema, fragments, variables, tally

    def walk(
        self, type_: GraphQLNamedType, sets: list[SelectionSetNode], times: int, path: list[str], *, outermost: bool
    ) -> None:
        merged: dict[tuple[str, str], tuple[GraphQLNamedType, list[FieldNode]]] = {}
        for owner, field in self._fields(type_, sets):
            key = field.alias.value if field.alias else field.name.value
            merged.setdefault((owner.name, key), (owner, []))[1].append(field)
        for (_, key), (owner, nodes) in merged.items():
            self._field(owner, nodes, times, [*path, key], outermost=outermost)

    def _field(
        self, owner: GraphQLNamedType, nodes: list[FieldNode], times: int, path: list[str], *, outermost: bool
    ) -> None:
        name = nodes[0].name.value
        if not isinstance(owner, GraphQLObjectType | GraphQLInterfaceType) or name.startswith("__"):
            return
        inner = get_named_type(owner.fields[name].type)
        sets = [node.selection_set for node in nodes if node.selection_set]
        if owner is self.schema.query_type and name == "nodes":
            ids = self._argument(nodes[0], "ids") or []
            if len(ids) > IDS_LIMIT:
                message = f"You may not provide more than {IDS_LIMIT} node ids; you provided {len(ids)}."
                raise Refused("ARGUMENT_LIMIT", message, path, nodes[0])
            times *= len(ids)
            self.tally.nodes += times
            if outermost:
                self.tally.page_size, outermost = max(self.tally.page_size or 0, len(ids)), False
        elif inner.name.endswith("Connection"):
            size = self._page(nodes[0], name, sets, path)
            if size is None:
                return
            self.tally.requests += times
            times *= size
            self.tally.nodes += times
            if outermost:
                self.tally.page_size, outermost = max(self.tally.page_size or 0, size), False
        if sets:
            self.walk(inner, sets, times, path, outermost=outermost)

    def _page(self, node: FieldNode, name: str, sets: list[SelectionSetNode], path: list[str]) -> int | None:
        first, last = self._argument(node, "first"), self._argument(node, "last")
        if first is not None and last is not None:
            message = f"Passing both `first` and `last` to paginate the `{name}` connection is not supported."
            raise Refused("INVALID_PAGINATION_BOUNDARIES", message, path, node)
        size, which = (first, "first") if first is not None else (last, "last")
        if size is None:
            field_names = {s.name.value for group in sets for s in group.selections if isinstance(s, FieldNode)}
            has_fragments = any(not isinstance(s, FieldNode) for group in sets for s in group.selections)
            if field_names <= {"totalCount", "__typename"} and not has_fragments:
                return None
            message = f"You must provide a `first` or `last` value to properly paginate the `{name}` connection."
            raise Refused("MISSING_PAGINATION_BOUNDARIES", message, path, node)
        if size > PAGE_LIMIT:
            message = f"Requesting {size} records on the `{name}` connection exceeds the `{which}` limit of"
            raise Refused("EXCESSIVE_PAGINATION", f"{message} {PAGE_LIMIT} records.", path, node)
        if size < 1:
            message = f"`{which}` on the `{name}` connection must be between 1 and {PAGE_LIMIT}, not {size}."
            raise Refused("INVALID_PAGINATION_BOUNDARIES", message, path, node)
        return int(size)

    def _fields(
        self, type_: GraphQLNamedType, sets: list[SelectionSetNode]
    ) -> Iterator[tuple[GraphQLNamedType, FieldNode]]:
        for selections in sets:
            for selection in selections.selections:
                if not self._included(selection):
                    continue
                if isinstance(selection, FieldNode):
                    yield type_, selection
                elif isinstance(selection, InlineFragmentNode):
                    condition = selection.type_condition
                    on = self.schema.type_map[condition.name.value] if condition else type_
                    yield from self._fields(on, [selection.selection_set])
                elif isinstance(selection, FragmentSpreadNode):
                    fragment = self.fragments[selection.name.value]
                    on = self.schema.type_map[fragment.type_condition.name.value]
                    yield from self._fields(on, [fragment.selection_set])

    def _included(self, selection: Any) -> bool:
        for directive in selection.directives or ():
            include = directive.name.value == "include"
            for argument in directive.arguments or ():
                if bool(value_from_ast_untyped(argument.value, self.variables)) is not include:
                    return False
        return True

    def _argument(self, node: FieldNode, name: str) -> Any:
        for argument in node.arguments or ():
            if argument.name.value == name:
                return value_from_ast_untyped(argument.value, self.variables)
        return None
