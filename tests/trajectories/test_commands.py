"""What an agent's bash command shows and writes, read from its text."""

from __future__ import annotations

import posixpath
import shlex
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth import assert_linear
from trajectories.agents.shell.commands import ShownLines, UnclearProgram, WrittenFile, read_command
from trajectories.agents.shell.printing import END, Lines, merged, narrowed
from trajectories.agents.shell.words import simple_commands

A, B = "/testbed/a", "/testbed/b"


def shown(command: str, cwd: str | None = "/testbed", after: str | None = None) -> list[tuple[str, Lines]]:
    return [(act.path, act.lines) for act in read_command(command, cwd, after).acts if isinstance(act, ShownLines)]


def files_written(command: str) -> list[str]:
    return [act.path for act in read_command(command, "/testbed").acts if isinstance(act, WrittenFile)]


def is_unclear(command: str) -> bool:
    return any(isinstance(act, UnclearProgram) for act in read_command(command, "/testbed").acts)


def span(first: int, last: int = END) -> Lines:
    return ((first, last),)


@pytest.mark.parametrize(
    ("command", "views"),
    [
        ("cat a", [(A, span(1))]),
        ("cat -n ./src/../a", [(A, span(1))]),
        ("/bin/cat a b", [(A, span(1)), (B, span(1))]),
        ("cat < a", [(A, span(1))]),
        ("sed -n '3,9p' a", [(A, span(3, 9))]),
        ("sed -n 3p a", [(A, span(3, 3))]),
        ("sed -ne '3,+2p;9,7p' a", [(A, ((3, 5), (9, 9)))]),
        ("sed -n '10,$p' a", [(A, span(10))]),
        ("sed -n '1,100p;20q' a", [(A, span(1, 20))]),
        ("sed --quiet -e 7p -e 1,2p a", [(A, ((1, 2), (7, 7)))]),
        ("head a", [(A, span(1, 10))]),
        ("head -n 20 a b", [(A, span(1, 20)), (B, span(1, 20))]),
        ("head -20 a; head -n5 b && head --lines=3 a", [(A, span(1, 20)), (B, span(1, 5)), (A, span(1, 3))]),
        ("nl -ba a | sed -n '20,40p'", [(A, span(20, 40))]),
        ("nl -b a a", [(A, span(1))]),
        ("cat -n a | sed -n '10,$p' | head -3", [(A, span(10, 12))]),
        ("cat a 2>/dev/null", [(A, span(1))]),
        ("cat /dev/shm/box/a", [("/dev/shm/box/a", span(1))]),
        ("cat a 2>&1 | head -5", [(A, span(1, 5))]),
        ("LC_ALL=C cat a", [(A, span(1))]),
        ("if [ -f a ]; then cat a; fi", [(A, span(1))]),
        ("cat a\\\n  b", [(A, span(1)), (B, span(1))]),
        ("# Let's look\ncat a  # it's short\n", [(A, span(1))]),
        ("cat > b <<'EOF'\ncat a\nEOF\ncat b", [(B, span(1))]),
        ("cat a || cat b; cat b", [(A, span(1)), (B, span(1))]),
        ("(cd src && cat a); cat a", [("/testbed/src/a", span(1)), (A, span(1))]),
        ("X=$(cat a); cat b", [(B, span(1))]),
    ],
)
def test_a_command_that_prints_lines_of_files_shows_them(command: str, views: list[tuple[str, Lines]]) -> None:
    assert shown(command) == views


@pytest.mark.parametrize(
    "command",
    [
        "cat a > b",
        "cat a &>> b",
        "cat a | grep x",
        "cat a | tail -5",
        "(cat a; cat b) | grep x",
        "(cat a) > b",
        "cat <<EOF\na\nEOF",
        "cat -",
        "cat $FILE *.py {a,b} `a` ~/a",
        "cat /dev/null",
        "sed 3,9p a",
        "sed -n '/def f/,/^$/p' a",
        "sed -n 0p a",
        "sed -n 1,5p a b",
        "sed -i -n 3,9p a",
        "head -c 100 a",
        "head -n -5 a",
        "head -0 a",
        "echo cat a",
        "less a",
        "grep -n x a",
        "",
        "cat 'a",
        'cat "$(cat a)"',
        f"cat a; echo {'x' * 20_000}",
    ],
)
def test_a_command_that_does_something_else_shows_nothing(command: str) -> None:
    assert shown(command) == []


def test_paths_are_those_of_the_folder_that_the_command_is_in() -> None:
    assert shown("cat a", "/testbed/src") == [("/testbed/src/a", span(1))]
    assert shown("cd src && cat a && cat /testbed/a") == [("/testbed/src/a", span(1)), (A, span(1))]
    assert shown("cd /testbed//src/.. ; cat //testbed/./a") == [(A, span(1))]
    assert shown("cd $HOME && cat a", after="/root") == [("/root/a", span(1))]
    assert shown("cd - && cat a && cat /testbed/a") == [(A, span(1))], "nobody knows where the first one is"


def test_where_a_pipeline_prints_all_is_told() -> None:
    assert read_command("cd src && export X=1 && sed -i s/x/y/ b && cat a", "/").alone
    assert not read_command("cat a; python b.py", "/").alone


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("echo x > a; echo y >> b", [A, B]),
        ("cat > a <<EOF\nrm b\nEOF", [A]),
        ("ls | tee a", [A]),
        ("rm -f a b", [A, B]),
        ("mv a src", [A, "/testbed/src", "/testbed/src/a"]),
        ("cp a src/", ["/testbed/src", "/testbed/src/a"]),
        ("cat a > /dev/null 2>&1", []),
        ("grep '>' a; find . \\( -name x \\)", []),
    ],
)
def test_files_that_a_command_writes_are_named(command: str, paths: list[str]) -> None:
    assert files_written(command) == paths
    assert not is_unclear(command)


def test_a_sed_in_place_writes_its_files() -> None:
    assert A in files_written("sed -i 's/x/y/' a") and A in files_written("sed -Ei.bak -e 's/x/y/' a")


@pytest.mark.parametrize(
    "command",
    ["python fix.py", "git checkout a", "sed -i s/x/y/ *.py", "find . -name x -exec rm {} \\;", "echo 'a", "make > b"],
)
def test_a_program_that_may_write_anything_is_unclear(command: str) -> None:
    assert is_unclear(command)


@pytest.mark.parametrize(
    "command", ["ls -la", "git diff HEAD", "git --no-pager log", "find . -name x", "grep -rn x src"]
)
def test_a_program_that_only_looks_is_clear(command: str) -> None:
    assert read_command(command, "/testbed").acts == ()


_SHELL = st.lists(
    st.sampled_from([*"ab/.-;&|<>()\n'\"\\$`#*{}1 ,pé", "cat ", "sed -n ", "head ", "cd ", "<<E\n"]), max_size=40
).map("".join)


@given(st.one_of(st.text(), _SHELL), st.sampled_from([None, "/testbed"]))
def test_no_text_of_a_command_raises_and_paths_are_absolute(command: str, cwd: str | None) -> None:
    for act in read_command(command, cwd).acts:
        if not isinstance(act, UnclearProgram):
            assert act.path.startswith("/") and act.path == posixpath.normpath(act.path)
        if isinstance(act, ShownLines):
            assert act.lines and all(1 <= first <= last <= END for first, last in act.lines)


@given(st.text(st.characters(exclude_characters="/\0\n$`*?{#~\ue000", exclude_categories=["Cs"]), min_size=1))
def test_a_quoted_name_is_found_whatever_it_holds(name: str) -> None:
    if not name.startswith("-") and name not in {".", ".."} and name.strip(";&|<>()"):
        assert shown(f"cat {shlex.quote(name)}") == [(f"/testbed/{name}", span(1))]


_RANGES = st.lists(st.integers(1, 40), min_size=2, max_size=6, unique=True).map(sorted)


@st.composite
def _pipelines(draw: st.DrawFn) -> str:
    def script() -> str:
        numbers = draw(_RANGES)
        pairs = zip(numbers[::2], numbers[1::2], strict=False)
        return shlex.quote(";".join(f"{first},{last}p" for first, last in pairs))

    count = st.integers(1, 40)
    source = draw(st.sampled_from(["cat a", f"head -n {draw(count)} a", f"sed -n {script()} a", "cat < a"]))
    more = [f"head -{draw(count)}", f"sed -n {script()}", "cat", f"sed -n '{draw(count)},$p'", f"sed -n {draw(count)}p"]
    return " | ".join([source, *draw(st.lists(st.sampled_from(more), max_size=3))])


@pytest.fixture(scope="module")
def numbered_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbered")
    (folder / "a").write_text("".join(f"{number}\n" for number in range(1, 31)))
    return folder


@settings(max_examples=40)
@given(command=_pipelines())
def test_a_pipeline_shows_what_bash_prints(numbered_lines: Path, command: str) -> None:
    process = subprocess.run(["bash", "-c", command], cwd=numbered_lines, capture_output=True, check=True)
    printed = [int(line) for line in process.stdout.split()]
    told = chain.from_iterable(range(first, min(last, 30) + 1) for _, part in shown(command) for first, last in part)
    assert list(told) == printed


def test_ranges_that_touch_are_one() -> None:
    assert merged([(5, 9), (1, 2), (3, 4), (20, 30), (25, END)]) == ((1, 9), (20, END))
    assert narrowed(((1, 10), (20, END)), ((9, 12),)) == ((9, 10), (20, 21))


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "part",
    ["cat a;", "<<E ", "'\"", "\n", "(", "(cat a > b;", "cat a | sed -n '1,2p;4,5p' | ", "# '\n", "cat <<a\na\n"],
)
def test_reading_takes_time_that_grows_with_the_command(part: str) -> None:
    assert_linear(lambda size: part * size, lambda command: read_command(command, "/testbed"), 4_000)


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("cd a && pytest -q 2>&1 | tail -5", [("cd a", "&&"), ("pytest -q", "|"), ("tail -5", "\n")]),
        ("A=1 if true; then x > y 2> z; fi", [("true", ";"), ("x", ";")]),
        ("cat > a.py <<'E'\nimport b; c\nE\npython a.py # run", [("cat", "\n"), ("python a.py", "\n")]),
        ("echo $(git rev-parse HEAD) 'a; b'", [("echo $", "("), ("git rev-parse HEAD", ")"), ("a; b", "\n")]),
        ("sleep 9 &", [("sleep 9", "&")]),
        ("", []),
    ],
)
def test_simple_commands_stand_without_redirections(command: str, parts: list[tuple[str, str]]) -> None:
    found = simple_commands(command)
    assert found is not None
    assert [(" ".join(part.words), part.then) for part in found] == parts


@pytest.mark.parametrize("command", ["echo 'a", "x" * 20_000])
def test_of_what_no_shell_reads_there_are_no_simple_commands(command: str) -> None:
    assert simple_commands(command) is None
