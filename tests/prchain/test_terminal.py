"""What commands print: lines, JSON, tables, lists, and the words for numbers."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest

from prchain.cli import run
from prchain.core.console.terminal import (
    STEERING,
    counted,
    dollars,
    listed,
    present,
    say,
    say_counts,
    say_facts,
    say_next,
    say_prose,
    say_reasons,
    say_some,
    say_table,
    shortened,
    summed,
    table_lines,
    tally,
)

ROOT = Path(__file__).parents[2]
PACKAGES = ("prchain", "sql", "miner", "chains", "environments", "trajectories")
HOSTILE = "\x1b[2Ja\nb\u202ec"


_IGNORABLE = (0xAD, 0x61C, 0x115F, 0x200B, 0x202E, 0x2060, 0x2066, 0x3164, 0xFEFF, 0xFFF9, 0xE0041, 0xE0100)


@pytest.mark.parametrize("character", [chr(code) for code in (*range(32), *range(127, 160), *_IGNORABLE, 0x2028)])
def test_issue_20_a_character_that_steers_is_shown_and_not_sent(
    character: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say(f"a{character}b")
    out = capsys.readouterr().out
    shown = " " if character.isspace() else character.encode("unicode_escape").decode()
    assert out == f"a{shown}b\n"


def test_every_character_of_unicode_that_formats_is_shown() -> None:
    joiners = {0x200C, 0x200D}
    formats = [
        code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in {"Cc", "Cf", "Zl", "Zp"}
    ]
    seen = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    egyptian = set(range(0x13430, 0x13460))
    for code in set(formats) - joiners - seen - egyptian:
        assert STEERING.fullmatch(chr(code)), hex(code)


def test_other_scripts_and_markup_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    say("[red]héllo[/red] שלום 你好 👩‍💻")
    assert capsys.readouterr().out == "[red]héllo[/red] שלום 你好 👩‍💻\n"


def test_json_is_indented_and_holds_nothing_that_acts(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"title": f"{HOSTILE} \x9b é", "usd": None}
    present(True, row, say, "for people")
    out = capsys.readouterr().out
    assert json.loads(out) == row
    assert out.isascii() and "\x1b" not in out
    assert out.splitlines()[0] == "{" and out.splitlines()[-2] == '  "usd": null'
    present(False, row, say, "for people")
    assert capsys.readouterr().out == "for people\n"


def test_a_table_has_texts_to_the_left_and_figures_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("5f0c", "1,204", "0.50", "12%", "1.2 GB", "a/b  x"), ("81c2", 3, None, "-", "?", f"{HOSTILE}你")]
    say_table(("id", "lines", "score", "share", "size", "[b]what"), rows)
    assert capsys.readouterr().out.splitlines() == [
        "id    lines  score  share    size  [b]what",
        "5f0c  1,204   0.50    12%  1.2 GB  a/b  x",
        "81c2      3             -       ?  \\x1b[2Ja b\\u202ec你",
    ]


def test_a_long_row_is_one_line_unless_a_width_is_given() -> None:
    assert list(table_lines(("a",), [("word " * 400,)]))[1] == ("word " * 400).rstrip()
    folded = list(table_lines(("a", "b"), [("x" * 90, "y")], width=40))
    assert len(folded) > 2 and max(map(len, folded)) <= 40
    assert list(table_lines(("a", "b"), [])) == ["a  b"]


def test_facts_stand_below_each_other_without_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    say_facts({"outcome": "ready", "reason": None, "author": "", "files": 0})
    assert capsys.readouterr().out == "  outcome   ready\n  files     0\n"


def test_counts_stand_below_their_sum(capsys: pytest.CaptureFixture[str]) -> None:
    say_counts("edges", {"kept": 1200, "dropped": 3})
    say_counts("citations", {}, total=7, indent=4)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["edges", "1,203"],
        ["kept", "1,200"],
        ["dropped", "3"],
        ["citations", "7"],
    ]
    assert len({len(line) for line in lines}) == 1
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, 4, 4, 4]


def test_prose_is_wrapped_and_its_next_lines_are_indented_further(capsys: pytest.CaptureFixture[str]) -> None:
    say_prose("reason: one two three", indent=2, width=16)
    say_prose("one two three four", indent=1, further=0, width=10)
    say_prose(f"{HOSTILE} {'word ' * 30}")
    assert capsys.readouterr().out.splitlines() == [
        "  reason: one",
        "    two three",
        " one two",
        " three",
        " four",
        f"\\x1b[2Ja b\\u202ec {'word ' * 16}".rstrip(),
        f"  {'word ' * 14}".rstrip(),
    ]


def test_prose_is_broken_at_hyphens_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    say_prose("tuned by fine-tuning", width=16)
    say_prose("tuned by fine-tuning", width=16, hyphens=True)
    assert capsys.readouterr().out.splitlines() == ["tuned by", "  fine-tuning", "tuned by fine-", "  tuning"]


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_prose_without_words_is_an_empty_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say_prose(text, indent=4)
    assert capsys.readouterr().out == "    \n"


def test_a_long_list_says_how_much_more_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    say_some(["a", "b"], 2)
    assert capsys.readouterr().out == "    a\n    b\n"
    say_some("abc", 1, indent=2, rest="--json names all")
    assert capsys.readouterr().out == "  a\n  ... 2 more; --json names all\n"


def test_the_commonest_reasons_of_each_outcome_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    say_reasons(
        [
            ("1", "bad_reply", "no JSON"),
            ("2", "bad_reply", None),
            ("3", "bad_reply", None),
            ("4", "bad_reply", f"{HOSTILE} {'long ' * 200}"),
            *((str(number), "git_error", f"reason {number}") for number in range(5, 10)),
        ],
        rest="`prchain tasks list` names them",
    )
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[:2] == ["2 and 1 more: bad_reply: no reason given", "1: bad_reply: no JSON"]
    assert lines[2].startswith("4: bad_reply: \\x1b[2Ja b\\u202ec long") and lines[2].endswith(" ...")
    assert lines[3:] == [
        *(f"{number}: git_error: reason {number}" for number in (5, 6, 7)),
        "2 more: git_error: other reasons; `prchain tasks list` names them",
    ]


def test_numbers_have_one_form() -> None:
    assert [counted(1, "chain"), counted(1204, "chain"), counted(0, "trajectory"), counted(2, "day")] == [
        "1 chain",
        "1,204 chains",
        "0 trajectories",
        "2 days",
    ]
    assert tally({"accepted": 3, "rejected": 0, "git_error": 1200}) == "3 accepted, 1,200 git_error"
    assert tally({}) == ""
    assert summed("task", ["ready", "bad_reply", "ready"]) == "3 tasks, 1 bad_reply, 2 ready"
    assert summed("trajectory", []) == "0 trajectories"
    assert [dollars(None), dollars(0.031), dollars(1234.5)] == ["price unknown", "0.0310 USD", "1,234.5000 USD"]


def test_what_is_cut_says_so() -> None:
    assert [listed("ab", 2), listed("abcd", 2), listed("", 2)] == ["a, b", "a, b and 2 more", ""]
    assert shortened(" a\n b ", 3) == "a b"
    assert shortened("a text of some words", 12) == "a text ..."
    assert shortened("a text of some words", 13) == "a text of ..."
    assert shortened("see /a/path/that/is/long", 16) == "see /a/path/ ..."


def test_an_error_that_quotes_mined_text_cannot_steer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "\x1b[2J"]) == 2
    assert run(["\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_nothing_is_printed_past_this_module() -> None:
    own = {
        "prchain/core/console/terminal.py",
        "prchain/api.py",  # an example in its docstring
        "prchain/cli.py",  # words of its own
        "prchain/core/console/logs.py",  # cleans each line by itself, for files too
        "prchain/core/console/progress.py",  # as above, for bars too
        "sql/cli.py",  # writes rows through sql/output.py, see tests/sql
        "sql/migrate.py",  # words of its own, for developers
        "prchain/exports/cli.py",  # writes JSON in ASCII
        "trajectories/export/write.py",  # as above
        "prchain/demo/cli.py",  # sends what others print to standard error
        "prchain/comparisons/cli.py",  # as above
        "trajectories/export/tasks/harbor/inside/environment.py",  # in a container
        "trajectories/export/tasks/harbor/inside/fingerprint.py",  # in a container
        "trajectories/export/tasks/harbor/inside/grade.py",  # in a container
        "trajectories/export/tasks/harbor/inside/step.py",  # in a container
        "environments/images/inside/forget_tree.py",  # in a container
        "environments/images/inside/lacking.py",  # in a container
        "environments/images/inside/node_tree.py",  # in a container
        "environments/images/inside/npm_package.py",  # in a container
        "environments/images/inside/unmet.py",  # in a container
        "environments/images/inside/wanted.py",  # in a container
        "environments/suites/reporters/parent_reporter.py",  # in a container
    }
    prints = re.compile(
        r"\bclick\.(?:echo|secho|style|prompt|confirm)\w*\(|\bjson\.dumps\([^\n]*indent=2\)|(?<![\w.])print\(.*\)$"
        r"|\bsys\.std(?:out|err)\.(?:write|buffer)|\bsys\.std(?:out|err)[,)]",
        re.MULTILINE,
    )
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if prints.search(path.read_text(encoding="utf-8"))
    }
    assert found <= own


@pytest.mark.parametrize(("terminal", "output"), [(True, "next: prchain chains build\n"), (False, "")])
def test_the_next_command_is_named_to_people_alone(
    terminal: bool, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    say_next("chains build")
    assert capsys.readouterr().out == output
