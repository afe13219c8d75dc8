"""Multi-SWE-bench, and Multi-SWE-RL, which has the same columns.

Columns and the rule for images are those of its repository (`multi_swe_bench.harness.dataset.Dataset`,
`Image.image_full_name`). The query is what its publisher's agents ask (MagentLess's `agentless/multilang/utils.py`,
MSWE-agent's `sweagent/environment/swe_env.py`) and OpenHands does: title and body of the first issue that the pull
request resolves. Tests that were not there, or were skipped, before the patch and pass after it count as F2P, as in its
report.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from chains.imports import reader
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row
from prchain.core.errors import BadInstance, NoQuery

_COLUMNS = frozenset({"org", "repo", "number", "fix_patch", "test_patch"})
_F2P = ("f2p_tests", "s2p_tests", "n2p_tests")


class MultiSweBench:
    """See the module."""

    help = "Multi-SWE-bench, Multi-SWE-RL"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        return {*columns} >= _COLUMNS

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        names = {"repo": f"{reader.text(row, 'org').strip()}/{reader.text(row, 'repo').strip()}"}
        repository = reader.repository_name(names)
        number = row.get("number")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 10**9:
            raise BadInstance("number is no number of a pull request")
        owner, _, name = repository.partition("/")
        tests = {
            "f2p": list(dict.fromkeys(test for column in _F2P for test in _names(row, column))),
            "p2p": _names(row, "p2p_tests"),
        }
        return Instance(
            where.source,
            "multi-swe-bench",
            reader.instance_name({"instance_id": row.get("instance_id") or f"{owner}__{name}-{number}"}),
            repository,
            reader.commit_name(reader.mapping(row, "base"), "sha"),
            _query(row),
            reader.patch_text(row, "fix_patch"),
            reader.patch_text(row, "test_patch", needed=False),
            *reader.lists(tests, "f2p", "p2p"),
            image=reader.image_name("repo", expected_image(owner, name, number)),
            image_by="rule",
            workdir=f"/home/{name}",
            revision=where.revision,
            split=where.split,
            language=reader.word_or_none(row, "lang") or reader.word_or_none(row, "language"),
        )


def expected_image(owner: str, name: str, number: int) -> str:
    """The image of a pull request."""
    return f"mswebench/{owner}_m_{name}:pr-{number}".lower()


def _query(row: Row) -> str:
    issues = row.get("resolved_issues")
    if issues in (None, []):
        raise NoQuery("resolved_issues holds none: nothing is asked")
    if not isinstance(issues, list) or not all(isinstance(issue, dict) for issue in issues):
        raise BadInstance("resolved_issues is no list of issues, and the query is what the first says")
    first = issues[0]
    title, body = reader.query_text(first, "title"), reader.text_or_none(first, "body")
    return title if body is None else f"{title}\n{body}"


def _names(row: Row, column: str) -> list[str]:
    """Names of tests from an object of them, which the hub's table keeps as an object of columns."""
    # A table has a column for each test of any row: those of other rows are null.
    value: Any = {name: it for name, it in reader.mapping(row, column).items() if it is not None}
    if isinstance(value.get("name"), list):
        value = value["name"]
    return list(reader.texts({column: list(value)}, column))


READER = MultiSweBench()
