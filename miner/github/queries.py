"""The GraphQL operations, one a file in ``miner/graphql``, and how several pages are asked for in one request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_PAGE = re.compile(r"^fragment Page on .*?^}\n", re.MULTILINE | re.DOTALL)
_OPERATION = re.compile(r"^query (\w+)", re.MULTILINE)
_SPREAD = "...PullRequestFields"
_FRAGMENTS = "pull_request_fields"
"""The file of the fragments of operations that read whole pull requests."""


@dataclass(frozen=True)
class Query:
    """One GraphQL operation."""

    name: str
    text: str


@cache
def load(file: str) -> Query:
    """Return the operation of ``miner/graphql/<file>.graphql``, with the fragments that it uses."""
    text = _read(file)
    if _SPREAD in text:
        text = f"{text}\n{_read(_FRAGMENTS)}"
    match = _OPERATION.search(text)
    assert match is not None, file
    return Query(match.group(1), text)


def _read(file: str) -> str:
    return resources.files("miner").joinpath("graphql", f"{file}.graphql").read_text(encoding="utf-8")


@cache
def batch(file: str, count: int) -> Query:
    """Return the operation of a ``more_*`` file, asked of `count` nodes at once, each with a cursor of its own.

    Node i answers under the alias ``n<i>`` and takes the variables ``id<i>`` and ``after<i>``. By GitHub's formula up
    to 149 nodes cost one point, as one does.
    """
    single = load(file)
    match = _PAGE.search(single.text)
    assert match is not None, file
    page, others = match.group(), single.text[match.end() :]
    variables = "".join(f", $id{i}: ID!, $after{i}: String" for i in range(count))
    fields = "".join(f"  n{i}: node(id: $id{i}) {{ ...Page{i} }}\n" for i in range(count))
    pages = "\n".join(
        page.replace("fragment Page on", f"fragment Page{i} on").replace("$after", f"$after{i}") for i in range(count)
    )
    head = f"query {single.name}($first: Int!{variables}) {{\n  rateLimit {{ cost remaining resetAt }}\n{fields}}}\n"
    return Query(single.name, f"{head}\n{pages}{others}")
