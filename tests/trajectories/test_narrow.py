"""What commands print over a finished demo, on a terminal of 80 columns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout

import pytest

from prchain.cli import run
from prchain.core.console.columns import cell_length
from sql.tables import Chain, GraphRow, Trajectory
from tests.trajectories.demoworld import Ran

QUERIES = ("busiest_citers", "dropped", "edges_by_relation", "funnel", "incomplete", "largest_landings", "pairs")

COMMANDS = [
    "chains build",
    "chains lineage demo/measures",
    "chains list",
    "chains show CHAIN",
    "chains yield",
    "curate list",
    "curate list --graphs",
    "curate show GRAPH",
    "curate study nodes",
    "curate study quality",
    "curate study windows",
    "environments show CHAIN",
    "prm report",
    "rollouts audit",
    "rollouts list",
    "rollouts show TRAJECTORY --brief",
    "show demo/measures#8",
    *(f"sql {name}" for name in (*QUERIES, "runs", "spending")),
    "sql --list",
    "stats",
    "stats --by model",
    "status",
    "tasks list",
]


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def copied(finished_demo: Ran, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = finished_demo.copied(tmp_path_factory.mktemp("narrow") / "demo")
    with chdir(folder):
        yield Ran(folder, finished_demo.printed, finished_demo.logged)


def printed(line: str, ran: Ran, out: io.StringIO) -> str:
    (graph,) = ran.rows(GraphRow, "id")[0]
    places = {"CHAIN": ran.rows(Chain, "id")[0][0], "TRAJECTORY": ran.rows(Trajectory, "id")[0][0], "GRAPH": graph}
    with redirect_stdout(out):
        assert run([places.get(word, word) for word in line.split()]) in {0, 1}
    return out.getvalue()


@pytest.mark.parametrize("line", COMMANDS)
def test_no_line_of_a_command_is_longer_than_the_terminal_or_broken_within_a_word(
    line: str, copied: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = printed(line, copied, Terminal())
    assert "-- row" not in shown or line.startswith("sql "), "our own tables fit"
    longer = [text for text in shown.splitlines() if cell_length(text) > 80]
    assert longer == []
    # As in a pipe, where nothing is folded: the same words, none of them broken.
    monkeypatch.delenv("COLUMNS")
    whole = set(re.split(r"\s+", printed(line, copied, io.StringIO())))
    lines = [text for text in shown.splitlines() if not text.startswith(("next: ", "0 rows"))]
    mostly = [word for text in lines for word in text.split() if len(word) > 3 and word.isalpha()]
    assert [word for word in mostly if word not in whole] == []
