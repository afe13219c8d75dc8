"""Exit codes over the whole command tree: every command that works has its success defined in docs/outcomes.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from prchain.cli import cli, run
from tests.databases import new_database
from tests.trajectories.demoworld import Ran, alone_in

ROOT = Path(__file__).parents[1]

LOOKS = {
    "status",
    "show",
    "chains list",
    "chains show",
    "chains yield",
    "tasks list",
    "tasks show",
    "environments interpreters",
    "environments list",
    "environments show",
    "rollouts audit",
    "rollouts list",
    "rollouts show",
    "curate list",
    "curate show",
    "curate study baselines",
    "curate study nodes",
    "curate study quality",
    "curate study windows",
    "prm compare",
    "prm report",
    "stats",
    "view",
    "sql",
}
"""Commands that only look: 0 whatever they find."""

CLEARS = {"environments gc", "environments prune"}
"""Commands that clear away: 0 also where there is nothing."""

PREPARES = {"demo", "chains lineage", "environments base", "rollouts install"}
"""Commands that do one thing, which succeeds or ends with the name of an error."""


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command below a group."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*words, name))
    else:
        yield words


ALL = list(commands(cli))


def works() -> set[str]:
    """The commands of the table of what success is."""
    page = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    table = page.partition("| command | success |")[2].partition("\n\n")[0]
    return {name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1] if row else "")}


def test_of_every_command_it_is_said_when_its_exit_code_is_0() -> None:
    kinds = [works(), LOOKS, CLEARS, PREPARES]
    assert {" ".join(words) for words in ALL} == set[str]().union(*kinds)
    assert sum(map(len, kinds)) == len(ALL), "each is of one kind"


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_wrong_usage_of_every_command_is_2_with_one_line(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--no-such-option"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and len(printed.err.splitlines()) == 1


@dataclass(frozen=True)
class Row:
    """A command that works on things. `words` are added to it in both cases; `fails` is what it says where there is
    nothing that could succeed, or names the test in which nothing succeeds, where that is success; `calm` says whether
    a finished demo leaves nothing new for it."""

    words: tuple[str, ...]
    fails: str
    calm: bool = False


PLAIN = ("--backend", "unsafe-local", "--unsafe-local")

ROWS = {
    "mine": Row(("repos.txt", "--source", "git"), r"o/r: not_a_repository: .*", calm=True),
    "chains build": Row((), "no chain is chosen", calm=True),
    "tasks build": Row((), "no chain is chosen; `prchain chains build` chooses them", calm=True),
    "environments build": Row((), "no chain was chosen; `prchain chains build` does"),
    "environments validate": Row(PLAIN, "no chain was chosen; .*"),
    "environments survey": Row(PLAIN, "no landed pull request with tests can be drawn; .*"),
    "rollouts run": Row(PLAIN, "there was nothing to roll out"),
    "rollouts extend": Row(
        PLAIN,
        "tests/trajectories/test_extend.py::test_it_extends_and_a_second_run_finds_nothing_to_do",
    ),
    "curate graphs": Row(PLAIN, "there is no stage to distil"),
    "curate run": Row((), "there was nothing to curate"),
    "judge calibrate": Row((), "no stage has proved tests and a task"),
    "prm replay": Row(
        (),
        "tests/trajectories/test_prm_commands.py::"
        "test_where_no_reply_can_be_read_nothing_was_done_and_the_reason_is_told_once",
    ),
    "prm sweep": Row(PLAIN, "there was nothing to roll out"),
    "curate study coverage": Row(("--out", "study"), "there was no trajectory to read"),
    "curate study disclosure": Row(("--out", "study", *PLAIN), "there was nothing to roll out"),
    "export": Row(("--out", "out.jsonl"), "nothing to export: no trajectory was kept yet; .*"),
    "tasks export": Row(("--out", "out.jsonl"), "no chain is chosen; .*, so out.jsonl was not written"),
    "prm labels": Row(("--out", "out.jsonl"), "no row to write, so out.jsonl was not written"),
    "tasks import": Row(("none.jsonl",), "no task was imported"),
    "rollouts import": Row(("none.jsonl", "--format", "atif"), "no trajectory was imported"),
    "evaluate": Row((), "no rollout over these tasks has ended"),
    "papers run": Row(
        ("davinci", *PLAIN),
        "tests/prchain/comparisons/test_comparisons.py::"
        "test_a_run_goes_on_after_what_is_left_and_ends_where_it_is_refused_or_interrupted",
    ),
    "papers table": Row(
        ("davinci",),
        "tests/prchain/comparisons/test_comparisons.py::test_predictions_that_cannot_be_graded_end_the_table_with_1",
    ),
    "record": Row(("--", "true"), "true asked nothing: .*", calm=False),
}


def test_every_command_that_works_has_a_row() -> None:
    assert ROWS.keys() == works()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Path]:
    """A folder with settings, a database without rows, a model without replies, and a repository that is not there."""
    new_database(tmp_path / "prchain.db")
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "repos.txt").write_text("o/r = ./absent.git\n")
    (tmp_path / "prchain.toml").write_text('db = "sqlite:///prchain.db"\ndata_dir = "."\nllm_script = "none.jsonl"\n')
    with alone_in(tmp_path):
        yield tmp_path


def reasons(err: str) -> list[str]:
    """The lines of standard error but those that tell how far a run is, and what to do next."""
    progress = re.compile(
        r"\w+$|curated trajectories$|[\w/ ]+: (?:\d[\d,]* of |git history|failed)|.* not done; |\w+: 0 "
    )
    return [line for line in err.splitlines() if not progress.match(line)]


@pytest.mark.parametrize("name", ROWS)
def test_where_nothing_succeeds_a_command_that_works_ends_with_1_and_one_reason(
    name: str, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = ROWS[name]
    if "::" in row.fails:
        path, _, test = row.fails.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
        return
    assert run([*name.split(), *row.words]) == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert re.fullmatch(row.fails, "\n".join(reasons(err)))
    assert not (bare / "out.jsonl").exists()


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.calm])
def test_where_nothing_is_new_a_command_that_works_ends_with_0(
    name: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finished.is_dir()
    assert run([*name.split(), *ROWS[name].words]) == 0
    err = capsys.readouterr().err
    assert "Traceback" not in err and "not done" not in err


@pytest.fixture(scope="module")
def finished_copy(finished_demo: Ran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy of the finished demo for all commands that find nothing new there."""
    return finished_demo.copied(tmp_path_factory.mktemp("calm") / "here")


@pytest.fixture
def finished(finished_copy: Path) -> Iterator[Path]:
    """The same, as the current folder."""
    with alone_in(finished_copy):
        yield finished_copy
