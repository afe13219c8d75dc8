"""Checks whether one GraphQL schema is a true subset of another, and lists every place where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLUnionType,
    is_introspection_type,
    is_specified_scalar_type,
    print_ast,
)


def differences(ours: GraphQLSchema, theirs: GraphQLSchema) -> list[str]:
    """Return one line for each thing of `ours` that `theirs` lacks or has differently; empty means a true subset.

    Output types, argument types, nullability and default values must be equal to the letter, enum values and union
    members must exist, interfaces must be implemented over there too, and no argument or input field that is required
    over there may be missing here (a query that is valid here would be refused there).
    """
    return sorted(_differences(ours, theirs))


def _differences(ours: GraphQLSchema, theirs: GraphQLSchema) -> Iterator[str]:
    for name, type_ in ours.type_map.items():
        if is_introspection_type(type_) or is_specified_scalar_type(type_):
            continue
        other = theirs.type_map.get(name)
        if other is None:
            yield f"{name}: unknown type"
        elif type(other) is not type(type_):
            yield f"{name}: a {type(type_).__name__} here, a {type(other).__name__} there"
        elif isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            yield from _composite(type_, cast("GraphQLObjectType | GraphQLInterfaceType", other))
        elif isinstance(type_, GraphQLUnionType):
            members = {member.name for member in cast(GraphQLUnionType, other).types}
            yield from (f"{name}: no member {member.name}" for member in type_.types if member.name not in members)
        elif isinstance(type_, GraphQLEnumType):
            values = cast(GraphQLEnumType, other).values
            yield from (f"{name}.{value}: no such enum value" for value in type_.values if value not in values)
        elif isinstance(type_, GraphQLInputObjectType):
            yield from _input(type_, cast(GraphQLInputObjectType, other))
        else:
            assert isinstance(type_, GraphQLScalarType)


def _composite(
    ours: GraphQLObjectType | GraphQLInterfaceType, theirs: GraphQLObjectType | GraphQLInterfaceType
) -> Iterator[str]:
    implemented = {interface.name for interface in theirs.interfaces}
    yield from (f"{ours.name}: is no {i.name} there" for i in ours.interfaces if i.name not in implemented)
    for name, field in ours.fields.items():
        where = f"{ours.name}.{name}"
        other = theirs.fields.get(name)
        if other is None:
            yield f"{where}: no such field"
            continue
        if str(field.type) != str(other.type):
            yield f"{where}: {field.type} here, {other.type} there"
        yield from _arguments(where, field, other)


def _arguments(where: str, ours: GraphQLField, theirs: GraphQLField) -> Iterator[str]:
    for name, argument in ours.args.items():
        other = theirs.args.get(name)
        if other is None:
            yield f"{where}({name}:): no such argument"
        elif str(argument.type) != str(other.type):
            yield f"{where}({name}:): {argument.type} here, {other.type} there"
        elif _default(argument) != _default(other):
            yield f"{where}({name}:): default {_default(argument)} here, {_default(other)} there"
    for name, other in theirs.args.items():
        if name not in ours.args and isinstance(other.type, GraphQLNonNull) and _default(other) is None:
            yield f"{where}({name}:): required there, missing here"


def _default(argument: object) -> str | None:
    node = getattr(argument, "ast_node", None)
    value = getattr(node, "default_value", None)
    return print_ast(value) if value is not None else None


def _input(ours: GraphQLInputObjectType, theirs: GraphQLInputObjectType) -> Iterator[str]:
    for name, field in ours.fields.items():
        other = theirs.fields.get(name)
        if other is None:
            yield f"{ours.name}.{name}: no such input field"
        elif str(field.type) != str(other.type):
            yield f"{ours.name}.{name}: {field.type} here, {other.type} there"
    for name, other in theirs.fields.items():
        if name not in ours.fields and isinstance(other.type, GraphQLNonNull) and _default(other) is None:
            yield f"{ours.name}.{name}: required there, missing here"
