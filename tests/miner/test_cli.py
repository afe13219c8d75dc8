"""The commands as a user runs them: exit codes, one clear line for what is wrong, and nothing half-written."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from miner.cli import mine, show, status
from prchain import cli
from prchain.core.errors import RepositoryListError, UsageError
from sql.store import Store
from sql.tables import MineRun
from tests.databases import open_new
from tests.emulator import Emulator, generate_world
from tests.miner.small_history import LANDED, UNLANDED, git, make_history

ROOT = Path(__file__).parents[2]
TOKEN = "plain-looking-token-0123456789"
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_history(tmp_path_factory.mktemp("mirror") / "n.git")


@pytest.fixture(scope="module")
def mined(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database into which the history was mined."""
    folder = tmp_path_factory.mktemp("mined")
    (folder / "repos.txt").write_text(f"o/n = {history}\n")
    assert cli.run(["mine", str(folder / "repos.txt"), "--source", "git", "--db", str(folder / "p.db")]) == 0
    return folder / "p.db"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def write_list(*lines: str) -> str:
    Path("repos.txt").write_text("".join(f"{line}\n" for line in lines))
    return "repos.txt"


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PRCHAIN_", "GITHUB_"))}
    return subprocess.run(
        [sys.executable, "-m", "prchain.cli", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **(env or {})},
    )


def one_line(err: str) -> str:
    """The one line that a command said, without its beginning."""
    assert err.startswith("prchain: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.removeprefix("prchain: error: ").strip()


# What the user wrote is wrong: exit code 2, one line, no database.


@pytest.mark.parametrize(
    ("lines", "arguments", "said"),
    [
        (None, [], "repos.txt cannot be read: No such file or directory"),
        ([], [], "repos.txt lists no repository; write one owner/name a line"),
        (["o/n", "what is this"], [], "repos.txt:2: 'what is this' is not owner/name, a clone URL, or owner/name ="),
        (["o/n ="], [], "repos.txt:1: 'o/n =' names no path or URL after the '='"),
        (["o/n", "O/N = mirror"], [], "repos.txt:2: O/N is listed twice, with different sources"),
        (["o/n"], ["--since", "yesterday"], "--since 'yesterday' is not a date; write YYYY-MM-DD"),
        (["o/n"], ["--since", "2024-02-30"], "--since '2024-02-30' is not a date; write YYYY-MM-DD"),
        (["o/n"], ["--since", "2024-01-01\n"], "--since '2024-01-01\\n' is not a date; write YYYY-MM-DD"),
        (["o/n"], ["--since", ""], "--since '' is not a date; write YYYY-MM-DD"),
        (["o/n"], ["--source", "github"], "--source github needs a token; set GITHUB_TOKEN, or use --source git"),
    ],
)
def test_mine_says_in_one_line_what_is_wrong_with_its_input(
    lines: Sequence[str] | None, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if lines is not None:
        write_list(*lines)
    assert cli.run(["mine", "repos.txt", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err).startswith(said)
    assert not Path("data").exists()


@pytest.mark.parametrize("content", [b"\xff\xfeo\x00/\x00n\x00", b"o/\xe9"], ids=["utf-16", "latin-1"])
def test_a_list_in_another_encoding_is_refused(content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("repos.txt").write_bytes(content)
    assert cli.run(["mine", "repos.txt"]) == 2
    assert one_line(capsys.readouterr().err) == "repos.txt is not UTF-8 text"


def test_a_folder_is_no_list(capsys: pytest.CaptureFixture[str]) -> None:
    Path("repos.txt").mkdir()
    assert cli.run(["mine", "repos.txt"]) == 2
    assert one_line(capsys.readouterr().err) == "repos.txt cannot be read: Is a directory"


@pytest.mark.parametrize(
    "arguments",
    [
        ["mine"],
        ["mine", "repos.txt", "--nope"],
        ["mine", "repos.txt", "--limit", "0"],
        ["mine", "repos.txt", "--limit", "many"],
        ["mine", "repos.txt", "--workers", "0"],
        ["mine", "repos.txt", "--workers", "65"],
        ["mine", "repos.txt", "--source", "svn"],
        ["show"],
        ["status", "o/n", "p/q"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_exit_with_2_and_touch_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_list("o/n")
    assert cli.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith(("Error: ", "prchain: error: "))
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["status", "o/other"], 2, "o/other has not been mined into this database; `prchain status` lists what has"),
        (["show", "o/other#1"], 2, "o/other has not been mined into this database; `prchain status` lists what has"),
        (["show", "o/n#99"], 2, "o/n has no pull request #99; it may be an issue"),
        (["show", "o/n"], 2, "'o/n' is not OWNER/NAME#N; quote it, a shell may take # for a comment"),
        (["show", "o/n#x"], 2, "'o/n#x' is not OWNER/NAME#N; quote it, a shell may take # for a comment"),
        (["show", "o/n#9999999999"], 2, "'o/n#9999999999' is not OWNER/NAME#N; quote it, a shell may"),
        (["show", "o/n/m#1"], 2, "'o/n/m#1' is not OWNER/NAME#N; quote it, a shell may"),
    ],
)
def test_reading_commands_say_in_one_line_what_they_cannot_find(
    arguments: list[str], code: int, said: str, mined: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*arguments, "--db", str(mined)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err).startswith(said)


@pytest.mark.parametrize("arguments", [["status"], ["show", "o/n#1"]])
def test_reading_commands_make_no_database(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 1
    assert (
        one_line(capsys.readouterr().err)
        == "there is no database at data/prchain.db; `prchain mine LIST` makes one, --db names another"
    )
    assert list(Path().iterdir()) == []


def test_click_raises_the_named_errors_to_whoever_calls_a_command() -> None:
    runner = CliRunner()
    assert isinstance(runner.invoke(mine, ["nope.txt"]).exception, RepositoryListError)
    assert isinstance(runner.invoke(show, ["nope"]).exception, UsageError)
    for git_alone in (["--source", "git"], ["--from-archive"]):
        words = [*git_alone, "--recheck-days", "3"]
        assert "leave out" in str(runner.invoke(mine, ["repos.txt", *words]).exception)
    assert runner.invoke(status, ["--nope"]).exit_code == 2


# The database.


def _newer(path: Path) -> None:
    open_new(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE prchain_version SET version_num = '9999'")
    connection.close()


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (id INTEGER)")
    connection.close()


def content(path: Path) -> Any:
    """What a database holds; the bytes of a file that is none."""
    if path.is_dir():
        return list(path.iterdir())
    if not path.read_bytes().startswith(b"SQLite format 3"):
        return path.read_bytes()
    with sqlite3.connect(path) as connection:
        rows = list(connection.iterdump())
    connection.close()
    return rows


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b"not a database " * 1000), "p.db is not a database or is damaged"),
        (_newer, "p.db was written by a newer prchain"),
        (_foreign, "p.db is a database of another program"),
        (lambda path: path.mkdir(), "the database p.db cannot be used"),
    ],
    ids=["corrupt", "newer", "foreign", "folder"],
)
@pytest.mark.parametrize("command", [["mine", "repos.txt"], ["status"], ["show", "o/n#1"]], ids=lambda c: c[0])
def test_a_database_that_cannot_be_used_is_named_and_left_as_it_is(
    command: list[str], make: Any, said: str, history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(f"o/n = {history}")
    make(Path("p.db"))
    before = content(Path("p.db"))
    assert cli.run([*command, "--db", "p.db"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err).startswith(said)
    assert content(Path("p.db")) == before


def test_a_folder_that_cannot_be_made_for_the_database_is_named(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(f"o/n = {history}")
    Path("taken").write_text("a file")
    assert cli.run(["mine", "repos.txt", "--db", "taken/p.db"]) == 1
    assert one_line(capsys.readouterr().err).startswith("the database taken/p.db cannot be used: ")
    assert Path("taken").read_text() == "a file"


# The repositories: what one fails with is reported, the others are mined.


def _shallow(path: Path, history: Path) -> None:
    git("clone", "--quiet", "--bare", "--depth", "1", f"file://{history}", str(path))


def _without_pull_refs(path: Path, history: Path) -> None:
    git("clone", "--quiet", "--bare", str(history), str(path))


def _plain_folder(path: Path, _history: Path) -> None:
    path.mkdir()


def _file(path: Path, _history: Path) -> None:
    path.write_text("x")


def _empty(path: Path, _history: Path) -> None:
    git("init", "--quiet", "--bare", str(path))


def _nothing(path: Path, _history: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "outcome", "said"),
    [
        (_shallow, "shallow_repository", "is a shallow clone; run `git fetch --unshallow` there first"),
        (_without_pull_refs, "no_pull_refs", "has no refs/pull/*/head; fetch them there: git fetch origin"),
        (_plain_folder, "not_a_repository", "is not a git repository"),
        (_file, "not_a_repository", "give the path of a git repository"),
        (_nothing, "not_a_repository", "give the path of a git repository"),
        (_empty, "incomplete_repository", "has no branches"),
    ],
)
def test_a_repository_that_fails_is_reported_and_the_others_are_mined(
    make: Any, outcome: str, said: str, history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "bad.git", history)
    write_list(f"o/n = {history}", "o/bad = bad.git")
    assert cli.run(["mine", "repos.txt", "--source", "git", "--db", "p.db"]) == 1
    out, err = capsys.readouterr()
    assert out == "o/n: mined: 4 pull requests, 3 landed\n"
    lines = [line for line in err.splitlines() if line.startswith(f"o/bad: {outcome}: ")]
    assert len(lines) == 1
    assert said in lines[0]
    assert err.endswith("1 repository not done; mend what is said above, then run the same command again\n")
    assert "Traceback" not in err
    with closing(Store.open("p.db")) as store, store.reading() as tx:
        assert sorted(map(tuple, tx.rows(MineRun, "spec", "outcome"))) == [
            ("o/bad = bad.git", outcome),
            (f"o/n = {history}", "mined"),
        ]
    capsys.readouterr()
    assert cli.run(["status", "o/n", "--db", "p.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["outcomes"] == {"landed": len(LANDED), "unlanded": len(UNLANDED)}


def test_a_second_run_finds_nothing_new_and_succeeds(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_list(f"o/n = {history}")
    command = ["mine", "repos.txt", "--source", "git", "--db", "p.db"]
    assert cli.run(command) == 0
    capsys.readouterr()
    assert cli.run(command) == 0
    assert capsys.readouterr().out == "o/n: unchanged: 4 pull requests, 3 landed\n"


def test_without_network_one_line_says_so_and_no_credentials_are_shown(
    closed_port: int, history: Path, tmp_path: Path
) -> None:
    url = f"https://somebody:{TOKEN}@127.0.0.1:{closed_port}/o/far.git"
    write_list(f"o/n = {history}", url)
    result = run("mine", "repos.txt", "--source", "git", "--db", "p.db", env={"GITHUB_TOKEN": TOKEN})
    assert result.returncode == 1
    assert result.stdout == "o/n: mined: 4 pull requests, 3 landed\n"
    [line] = [line for line in result.stderr.splitlines() if line.startswith("o/far: clone_failed: ")]
    assert f"https://127.0.0.1:{closed_port}/o/far.git cannot be reached; is there a network? " in line
    assert "Traceback" not in result.stderr
    status = run("status", "--db", "p.db", env={"GITHUB_TOKEN": TOKEN})
    assert status.returncode == 0
    assert TOKEN not in result.stdout + result.stderr + status.stdout + status.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "repos.txt"]
    assert tmp_path / "p.db" in written
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


def test_a_token_never_leaves_the_environment_when_the_api_cannot_be_reached(
    closed_port: int, history: Path, tmp_path: Path
) -> None:
    write_list(f"o/n = {history}")
    api = {"GITHUB_API_URL": f"http://127.0.0.1:{closed_port}", "PRCHAIN_MAX_WAIT_SECONDS": "0"}
    result = run("mine", "repos.txt", "--db", "p.db", env={"GITHUB_TOKEN": TOKEN, **api})
    assert result.returncode == 1
    assert result.stdout == "o/n: not finished: 4 pull requests, 3 landed, 1 request, 0 points\n"
    assert "1 repository not done" in result.stderr
    assert "Traceback" not in result.stderr
    assert TOKEN not in result.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert tmp_path / "p.db" in written
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


def test_every_repository_of_a_list_is_told_that_the_token_was_refused(
    history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(f"o/n = {history}", f"o/m = {history}")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrong")
    with Emulator(generate_world(1, 5)) as github:
        monkeypatch.setenv("GITHUB_API_URL", github.api_url)
        assert cli.run(["mine", "repos.txt", "--workers", "1", "--db", "p.db"]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if ": bad_token: " in line]
    assert [line.partition(": ")[0] for line in lines] == ["o/n", "o/m"]
    assert all("GitHub refused the token (401)" in line for line in lines)
    with closing(Store.open("p.db", create=False)) as store, store.reading() as tx:
        reasons = {reason for (reason,) in tx.rows(MineRun, "reason")}
    assert len(reasons) == 1 and "refused the token" in reasons.pop()


def test_a_repository_without_pull_requests_is_reported_too(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_list(f"o/n = {history}")
    assert cli.run(["mine", "repos.txt", "--from-archive", "--db", "p.db"]) in {0, 1}
    out, err = capsys.readouterr()
    assert any(line.startswith("o/n: ") and "citations" not in line for line in (out + err).splitlines())


# What is printed.


def test_json_stands_alone_on_standard_output(history: Path) -> None:
    write_list(f"o/n = {history}", "o/bad = nowhere")
    result = run("mine", "repos.txt", "--source", "git", "--db", "p.db", "--json")
    assert result.returncode == 1
    rows = json.loads(result.stdout)
    assert [(row["repository"], row["outcome"], row["landed"]) for row in rows] == [
        ("o/n", "mined", 3),
        ("o/bad", "not_a_repository", 0),
    ]
    assert rows[0]["error"] is None
    assert "there is no " in rows[1]["error"]


@pytest.mark.parametrize("command", [["status"], ["show", "o/n#3"], ["show", "O/N#2"]], ids=" ".join)
def test_reading_commands_print_json(command: list[str], mined: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*command, "--db", str(mined), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    page = json.loads(out)
    assert (page[0] if isinstance(page, list) else page)["repository"] == "o/n"


def test_status_of_an_empty_database_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    open_new(Path("p.db")).close()
    assert cli.run(["status", "--db", "p.db"]) == 0
    assert capsys.readouterr().out == "nothing mined yet; run `prchain mine repos.txt`\n"
    assert cli.run(["status", "--db", "p.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_status_prints_the_funnel(mined: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["status", "O/N", "--db", str(mined)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "o/n"
    assert "pull requests 4" in lines
    assert "landed 3" in lines
    assert "squash on the default branch 2" in lines
    assert "merge on the default branch 1" in lines
    assert "unlanded 1" in lines
    assert "counted 3" in lines
    assert "not_a_pull_request 1" in lines


def test_show_prints_the_page_of_a_pull_request(mined: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", "o/n#2", "--db", str(mined)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("o/n#2  Correct the parser (#2)\n")
    assert "  cites     2 counted of 2\n" in out
    assert "#1 follow_up [landing, hash] 0.90" in out
    assert "#4 depends_on [commit, hash] 0.90" in out
    assert "  M a.py\n" in out


def test_hostile_text_can_neither_steer_the_terminal_nor_forge_lines(mined: Path) -> None:
    result = run("show", "o/n#3", "--db", str(mined))
    assert result.returncode == 0
    assert STEERING.findall(result.stdout) == []
    assert "Paint [red]everything[/red]" in result.stdout
    assert not any(line.startswith("forged") for line in result.stdout.splitlines())
    assert "    A docs/\\x1b[2J forged.md\n" in result.stdout


@pytest.mark.parametrize(
    "command",
    [["show", "o/n#3"], ["status"], ["sql", "--query", "SELECT subject FROM landed_pull_requests"]],
    ids=" ".join,
)
def test_text_that_the_output_cannot_encode_is_no_defect(command: list[str], mined: Path) -> None:
    result = run(*command, "--db", str(mined), env={"PYTHONIOENCODING": "ascii"})
    assert (result.returncode, result.stderr) == (0, "")


def test_what_a_remote_says_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from miner import mine as mine_module
    from prchain.core.errors import CloneFailed

    def fail(*_: Any, **__: Any) -> None:
        raise CloneFailed("remote: \x1b[2J\u202ebad\r\nforged: all is well")

    monkeypatch.setattr(mine_module, "update_mirror", fail)
    write_list("o/n")
    assert cli.run(["mine", "repos.txt", "--source", "git", "--db", "p.db"]) == 1
    out, err = capsys.readouterr()
    assert cli.run(["status", "--db", "p.db"]) == 0
    out += capsys.readouterr().out
    assert STEERING.findall(out + err) == []
    assert not any(line.startswith("forged") for line in (out + err).splitlines())


def test_a_process_of_its_own_ends_with_the_same_codes(mined: Path) -> None:
    assert run("status", "--db", str(mined)).returncode == 0
    wrong = run("show", "nonsense", "--db", str(mined))
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert one_line(wrong.stderr).startswith("'nonsense' is not OWNER/NAME#N")
