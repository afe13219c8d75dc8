"""The emulator's schema and the product's queries hold against the schema that GitHub publishes."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate

from miner.github import queries
from tests.contract.subset import differences
from tests.emulator.resolvers import SCHEMA_FILE, load_schema

QUERIES = sorted(
    path
    for path in (Path(__file__).parents[2] / "miner" / "graphql").glob("*.graphql")
    if "query " in path.read_text(encoding="utf-8")  # the other file holds what these have in common
)


@functools.cache
def published() -> GraphQLSchema:
    """GitHub's schema: schema.graphql of the npm package @octokit/graphql-schema."""
    return build_schema(Path(os.environ["PRCHAIN_GITHUB_SCHEMA"]).read_text(encoding="utf-8"), assume_valid=True)


@pytest.mark.github_schema
def test_the_emulators_schema_is_a_true_subset_of_githubs() -> None:
    assert differences(load_schema(), published()) == []


@pytest.mark.github_schema
@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_is_valid_at_github(path: Path) -> None:
    assert [error.message for error in validate(published(), parse(queries.load(path.stem).text))] == []


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_is_valid_at_the_emulator(path: Path) -> None:
    assert [error.message for error in validate(load_schema(), parse(queries.load(path.stem).text))] == []


@pytest.mark.github_schema
@pytest.mark.parametrize(
    "path", [path for path in QUERIES if path.stem.startswith("more_")], ids=lambda path: path.stem
)
def test_a_query_asked_of_several_pull_requests_at_once_is_valid_too(path: Path) -> None:
    document = parse(queries.batch(path.stem, 3).text)
    for schema in (published(), load_schema()):
        assert [error.message for error in validate(schema, document)] == []


def test_there_are_queries_to_validate() -> None:
    assert QUERIES


THEIRS = """
    type Query { hero(id: ID!, lang: Language = EN): Hero all(first: Int, order: Order): [Hero!]! any: Any }
    interface Named { name: String! }
    type Hero implements Named { name: String! age: Int friends: [Hero] }
    type Villain { name: String! }
    union Any = Hero | Villain
    enum Language { EN FR }
    input Order { field: Language!, up: Boolean }
    scalar Date
"""

WRONG = {
    "an unknown field": ("age: Int", "age: Int size: Int", "Hero.size: no such field"),
    "another type": ("age: Int", "age: String", "Hero.age: String here, Int there"),
    "nullability of a field": ("age: Int", "age: Int!", "Hero.age: Int! here, Int there"),
    "nullability in a list": ("[Hero!]!", "[Hero]!", "Query.all: [Hero]! here, [Hero!]! there"),
    "an unknown argument": ("first: Int", "last: Int", "Query.all(last:): no such argument"),
    "nullability of an argument": ("id: ID!", "id: ID", "Query.hero(id:): ID here, ID! there"),
    "a required argument left out": ("id: ID!, ", "", "Query.hero(id:): required there, missing here"),
    "another default": ("= EN", "= FR", "Query.hero(lang:): default FR here, EN there"),
    "an unknown enum value": ("EN FR", "EN DE", "Language.DE: no such enum value"),
    "a union member": (
        "union Any = Hero | Villain",
        "union Any = Hero | Rogue\n type Rogue { x: Int }",
        "Any: no member Rogue",
    ),
    "an unknown type": ("scalar Date", "scalar Moment", "Moment: unknown type"),
    "another kind of type": ("scalar Date", "enum Date { TODAY }", "Date: a GraphQLEnumType here"),
    "an interface": ("type Villain {", "type Villain implements Named {", "Villain: is no Named there"),
    "an unknown input field": ("up: Boolean", "down: Boolean", "Order.down: no such input field"),
    "a required input field left out": ("field: Language!, ", "", "Order.field: required there, missing here"),
}


@pytest.mark.parametrize("old, new, line", WRONG.values(), ids=WRONG.keys())
def test_the_comparison_finds(old: str, new: str, line: str) -> None:
    assert old in THEIRS
    found = differences(build_schema(THEIRS.replace(old, new, 1)), build_schema(THEIRS))
    assert any(each.startswith(line) for each in found), found


def test_the_comparison_accepts_a_subset_that_leaves_out_what_is_optional() -> None:
    ours = """
        type Query { hero(id: ID!): Hero any: Any }
        type Hero { name: String! }
        union Any = Hero
    """
    assert differences(build_schema(ours), build_schema(THEIRS)) == []


@pytest.mark.github_schema
@pytest.mark.parametrize(
    "old, new, line",
    [
        (
            "isCrossRepository: Boolean!",
            "isCrossRepository: Boolean",
            "isCrossRepository: Boolean here, Boolean! there",
        ),
        ("  mergeCommit: Commit\n", "  mergedCommit: Commit\n", "PullRequest.mergedCommit: no such field"),
        ("  DISMISSED\n", "  DISMISSED\n  IGNORED\n", "PullRequestReviewState.IGNORED: no such enum value"),
    ],
)
def test_a_mistake_in_the_emulators_schema_is_found(old: str, new: str, line: str) -> None:
    text = SCHEMA_FILE.read_text(encoding="utf-8")
    assert old in text
    found = differences(build_schema(text.replace(old, new, 1)), published())
    assert any(line in each for each in found), found
