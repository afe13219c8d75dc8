"""The named queries and the command that runs them."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prchain.cli import run
from prchain.core.console.terminal import STEERING
from prchain.core.errors import UsageError
from prchain.core.llm.ledger import CallKey, CallNote
from prchain.core.llm.model import Reply
from sql.ledger import SqlLedger
from sql.named import named_queries, run_query, run_sql
from sql.output import write_csv, write_json, write_lines, write_table
from sql.store import Store
from sql.tables import LandingFile, MineRun, PullRequest, PullRequestText, Repository
from tests.databases import open_new
from tests.sql.rows import REPOSITORY, citation, fill, landing, pull_request

HOSTILE = "a\tb\nc\x1b[31m[bold]\x9b"


@pytest.fixture
def filled(database_url: str) -> str:
    """The URL of a database with two repositories."""
    store = Store.open(database_url)
    with store.transaction() as tx:
        fill(
            tx,
            landings=[landing(1, "main"), landing(2, "main", style="merge"), landing(2, "release", style="rebase")],
            citations=[citation(2, 1), citation(3, 1), citation(3, 2), citation(4, 2, counted=False, reason="quoted")],
        )
        tx.upsert(PullRequest, [pull_request(5, outcome="open")])
        tx.upsert(Repository, [REPOSITORY | {"id": 2, "owner": "p", "name": "q"}])
        tx.upsert(PullRequest, [pull_request(1, repository_id=2)])
        columns = ["repository_id", "number", "branch", "path", "status", "additions"]
        columns += ["old_mode", "new_mode", "old_blob", "new_blob"]
        tx.bulk(LandingFile, columns, [(1, 2, "main", f"{n}.py", "M", 5, "1", "1", "a", "b") for n in range(3)])
        run_row = {"repository_id": 1, "spec": "o/n", "source": "git", "started_at": "t", "outcome": "mined"}
        tx.upsert(MineRun, [run_row | {"id": number} for number in range(1, 30)])
    store.close()
    return database_url


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert run(["sql", *arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert isinstance(rows, list)
    return rows


def test_the_funnel_adds_up(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "funnel", "repository=o/n", "--db", filled)
    counts = {(row["stage"], row["name"]): row["count"] for row in rows}
    assert counts == {
        ("pull requests", ""): 5,
        ("outcome", "landed"): 4,
        ("outcome", "open"): 1,
        ("landed by style", "squash"): 1,
        ("landed by style", "merge"): 1,
        ("citations", "counted"): 3,
        ("citations", "quoted"): 1,
    }
    assert {row["repository"] for row in answer(capsys, "funnel", "--db", filled)} == {"o/n", "p/q"}


def test_the_other_queries_answer_what_they_say(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    edges = answer(capsys, "edges_by_relation", "--db", filled)
    assert [tuple(row.values()) for row in edges] == [("o/n", "mentions", 3, 1, 3, 2)]
    citers = answer(capsys, "busiest_citers", "--db", filled)
    assert [(row["number"], row["cited"], row["style"]) for row in citers] == [(3, 2, None), (2, 1, "merge")]
    (largest,) = answer(capsys, "largest_landings", "--db", filled)
    assert (largest["number"], largest["files"], largest["additions"]) == (2, 3, 15)
    assert len(answer(capsys, "runs", "--db", filled)) == 20
    assert [row["run"] for row in answer(capsys, "runs", "limit=2", "--db", filled)] == [29, 28]


def test_what_repositories_are_chosen_by_is_counted_of_what_landed(
    filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """daVinci-Agency, section 4.1: scale, review, languages. What bots say is no review."""
    store = Store.open(filled)
    told = [
        (1, "review", "a", "User"),
        (1, "review_comment", "b", None),
        (2, "review", "c", "Bot"),
        (2, "comment", "d", ""),
    ]
    with store.transaction() as tx:
        row = {"repository_id": 1, "author": "x", "author_association": None, "body": "Why?"}
        texts = [
            row | {"number": number, "field": field, "key": key, "author_kind": kind or None}
            for number, field, key, kind in told
        ]
        tx.upsert(PullRequestText, texts)
    store.close()
    (first, second) = answer(capsys, "choice", "--db", filled)
    assert tuple(first.values()) == ("o/n", 4, 1, 2, 1, "Python", 3, None, None)
    assert (second["repository"], second["landed"], second["reviews"], second["language"]) == ("p/q", 1, 0, None)


@pytest.mark.parametrize("name", sorted(named_queries()))
def test_every_query_runs_on_an_empty_store_with_and_without_its_parameters(name: str, store: Store) -> None:
    query = named_queries()[name]
    assert query.description.endswith(".")
    assert "repository" in query.parameters
    for values in ({}, {"repository": "o/n"}):
        with run_query(store, query, values) as result:
            assert list(result.rows) == []
            assert result.columns


def test_a_statement_of_the_users_own_reads(filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT 'a:b' AS colon, '100%' AS percent, number FROM pull_requests WHERE number = 5; "
    assert answer(capsys, "--query", sql, "--db", filled) == [{"colon": "a:b", "percent": "100%", "number": 5}]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM pull_requests",
        "DROP TABLE labels",
        "CREATE TABLE x (y INTEGER)",
        "SELECT 1; DELETE FROM pull_requests",
        "COMMIT",
        "SELEKT 1",
        "",
    ],
)
def test_a_statement_that_does_anything_else_is_refused_with_exit_code_2(
    statement: str, filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sql", "--query", statement, "--db", filled]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("prchain: error: ")
    assert err.count("\n") == 1
    store = Store.open(filled)
    with run_sql(store, "SELECT count(*) FROM pull_requests") as result:
        assert [tuple(row) for row in result.rows] == [(6,)]
    store.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["SELECT 1"],
        ["funnel", "--list"],
        [],
        ["funnel", "limit=3"],
        ["funnel", "repository"],
        ["--query", "SELECT 1", "x=y"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sql", *arguments[:1], "--db", filled, *arguments[1:]]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


def test_an_unknown_name_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "nope"]) == 2
    err = capsys.readouterr().err
    assert all(name in err for name in named_queries())


def test_the_list_needs_no_database(capsys: pytest.CaptureFixture[str]) -> None:
    listed = answer(capsys, "--list", "--db", "/proc/nowhere/x.db")
    assert {row["name"] for row in listed} == set(named_queries()) >= {"funnel", "runs"}


def test_plain_output_is_one_line_a_row_whatever_the_cells_hold() -> None:
    out = io.StringIO()
    write_lines(("x", "y"), [(HOSTILE, None), (1, 0.5)], out)
    assert out.getvalue() == "x\ty\na\\tb\\nc\\x1b[31m[bold]\\x9b\t\n1\t0.5\n"


def test_a_number_is_shown_without_the_digits_that_only_adding_up_made() -> None:
    cells = (0.1 + 0.2, 0.10728599999999998, 1234567.25, 2.0, 0.0, 1.23456e-7, -0.00012345678, float("inf"), 1e22)
    expected = ["0.3", "0.107286", "1234567.25", "2.0", "0.0", "1.23e-07", "-0.000123", "inf", "1e+22"]
    out = io.StringIO()
    write_lines(("x",), [(cell,) for cell in cells], out)
    assert out.getvalue().split() == ["x", *expected]
    table = io.StringIO()
    write_table(("x",), [(0.10728599999999998,)], table)
    assert "0.107286" in table.getvalue() and "0.10728599" not in table.getvalue()
    for write in (write_csv, write_json):
        exact = io.StringIO()
        write(("x",), [(0.10728599999999998,)], exact)
        assert "0.10728599999999998" in exact.getvalue()


def test_the_spending_counts_calls_as_the_commands_do(
    store: Store, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = SqlLedger(store, "r")
    note = CallNote("p", "h", "m")
    calls = [ledger.reserve(CallKey("plan", str(n), 0, 0, 0, "x"), note, 1.0, None) for n in range(5)]
    for call in calls[:3]:
        ledger.release(call, "endpoint_unreachable: down")
    ledger.settle(calls[3], Reply("x", "m"), None)
    spent = ledger.spending()
    assert spent.words() == "2 calls, 3 refused, 2.0000 USD"
    (row,) = answer(capsys, "spending", "--db", database_url)
    assert (row["calls"], row["refused"], row["usd"]) == (spent.calls, spent.refused, spent.usd)


def test_the_spending_keeps_calls_apart_by_where_their_prices_are_from(
    store: Store, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = SqlLedger(store, "r")
    for number, source in enumerate(("settings", "genai-prices 0.2.3, prices to 2026-11-09", "settings")):
        note = CallNote("p", "h", "m", source)
        call = ledger.reserve(CallKey("plan", str(number), 0, 0, 0, "x"), note, 1.0, None)
        ledger.settle(call, Reply("x", "m"), 0.25)
    rows = answer(capsys, "spending", "--db", database_url)
    assert [(row["priced_by"], row["calls"], row["usd"]) for row in rows] == [
        ("genai-prices 0.2.3, prices to 2026-11-09", 1, 0.25),
        ("settings", 2, 0.5),
    ]


def test_a_table_shows_cells_and_lets_none_of_them_steer_the_terminal() -> None:
    out = io.StringIO()
    write_table(("x",), [(HOSTILE,)], out)
    assert "\\x1b[31m[bold]" in out.getvalue()
    assert not set("\x1b\x9b\t") & set(out.getvalue())


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_table_too_wide_for_the_terminal_shows_each_row_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = "a reason of some words, " * 5
    names = [f"column_{number}" for number in range(9)]
    out = Terminal()
    write_table(names, [("5f0c12ab90ff3344", 1, words, *["acme/widgets"] * 6), (None, 2, *"abcdefg")], out)
    lines = out.getvalue().splitlines()
    assert lines[:3] == ["-- row 1 of 2", "column_0  5f0c12ab90ff3344", "column_1  1"]
    assert "-- row 2 of 2" in lines and "column_8  g" in lines and max(map(len, lines)) <= 80
    assert words.strip() in " ".join(line[10:].strip() for line in lines)


def test_a_table_that_fits_when_its_long_cells_are_folded_stays_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = Terminal()
    write_table(("id", "pulls", "reason"), [("5f0c12ab90ff3344", 12, "and so on " * 20)], out)
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["id", "pulls", "reason"] and lines[1].startswith("5f0c12ab90ff3344     12  and so on")
    assert len(lines) > 3 and max(map(len, lines)) <= 80


def test_a_table_without_rows_says_so() -> None:
    out = Terminal()
    write_table(("id", "pulls"), [], out)
    assert out.getvalue().splitlines() == ["id  pulls", "0 rows"]


STEERING_TEXT = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt.exe\u200b\u2066b"


@pytest.mark.parametrize("options", [[], ["--csv"], ["--json"]], ids=["table", "csv", "json"])
def test_issue_20_control_characters_are_shown_on_a_terminal_and_not_sent(options: list[str], tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    open_new(database).close()
    characters = "||".join(f"char({ord(char)})" for char in STEERING_TEXT)
    query = f"SELECT {characters} AS a, 'b' AS \"c\u202e\""
    command = [sys.executable, "-m", "prchain", "sql", "--db", str(database), *options, "--query", query]
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):  # what Linux says at the end of a terminal
            while piece := os.read(ours, 65536):
                printed += piece
    os.close(ours)
    assert process.returncode == 0, printed
    text = printed.decode().replace("\r\n", "\n")
    assert not STEERING.search(text.replace("\n", ""))
    assert re.search(r"(\\x1b|\\u001b)\[2J", text) and "\\u202e" in text
    piped = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    if options == ["--csv"]:
        assert list(csv.reader(io.StringIO(piped, newline=""))) == [["a", "c\u202e"], [STEERING_TEXT, "b"]]


def test_csv_and_json_come_back_as_they_went_in() -> None:
    rows = [(HOSTILE, 1, None), ('"', 2.5, "")]
    out = io.StringIO()
    write_csv(("a", "b", "c"), rows, out)
    assert list(csv.reader(io.StringIO(out.getvalue(), newline=""))) == [
        ["a", "b", "c"],
        [HOSTILE, "1", ""],
        ['"', "2.5", ""],
    ]
    out = io.StringIO()
    write_json(("a", "b", "c"), rows, out)
    assert [tuple(row.values()) for row in json.loads(out.getvalue())] == rows
    out = io.StringIO()
    write_json(("a",), [], out)
    assert json.loads(out.getvalue()) == []


def test_an_unknown_parameter_is_named(store: Store) -> None:
    with pytest.raises(UsageError, match="takes no nope; its parameters: repository"):  # noqa: SIM117
        with run_query(store, named_queries()["funnel"], {"nope": "1"}):
            pass
