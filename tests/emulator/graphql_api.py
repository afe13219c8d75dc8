"""Runs GraphQL queries as GitHub does: validated, priced, limited, partial data with typed errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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


@dataclass
class GraphQLApi:
    """Execution over one world. Parsed and validated queries are kept by their text."""

    world: World
    _documents: dict[str, tuple[DocumentNode | None, tuple[dict[str, Any], ...]]] = field(default_factory=dict)
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
            return Prepared(document, name, cost_of(self.schema, document, variables, operation_name))
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
        context = Context(self.world, rate_limit, viewer, self._pulls, bend)
        result = execute_sync(
            self.schema,
            prepared.document,
            context_value=context,
            variable_values=variables,
            operation_name=operation_name,
        )
        body: dict[str, Any] = {"data": result.data}
        if result.errors:
            body["errors"] = [_shape(error) for error in result.errors]
        return body

    def _parse(self, query: str) -> tuple[DocumentNode | None, tuple[dict[str, Any], ...]]:
        if query not in self._documents:
            try:
                document = parse(query)
                errors = tuple(_shape(error) for error in validate(self.schema, document))
                self._documents[query] = (document, errors)
            except GraphQLSyntaxError as error:
                self._documents[query] = (None, (_shape(error),))
        return self._documents[query]


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
