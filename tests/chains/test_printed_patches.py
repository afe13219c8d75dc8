"""What a command prints as a patch is one: into a pipe byte by byte, so that git makes the same tree of it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from chains.lineage.report import print_changed_lines
from chains.lineage.shown_lines import ChangedLines, ShownPair
from chains.reference_patches import print_reference
from prchain.cli import cli, run
from prchain.core.console.terminal import STEERING, say_content
from prchain.core.git import GitRepository
from prchain.core.git.patches import patch_fields
from sql.link_changes import LinkChanges
from tests.chains.chainworld import Shop, build, chosen, function, mined, module
from tests.miner.gitworld import EXECUTABLE, FILE, LINK, Content
from tests.prchain.test_columns import Terminal

CONTENTS: dict[str | bytes, tuple[Content, Content]] = {
    "Makefile": ("all:\n\tcc -o a a.c\n", "all:\n\tcc -O2\t-o a a.c\n\n\t\n"),
    "main.go": (
        "package main\n\nfunc main() {\n\tprintln(1)\n}\n",
        "package main\n\nfunc main() {\n\t\tprintln(2)\n}\n",
    ),
    "crlf.txt": (b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\nthree\r\n"),
    "mixed ends.txt": (b"one\r\ntwo\nthree\r\n", b"one\ntwo\r\nthree\r"),
    "lone returns.txt": (b"one\rtwo\rthree\n", b"one\r2\rthree\n"),
    "to crlf.txt": (b"one\ntwo\n", b"one\r\ntwo\r\n"),
    "latin1.c": (b"/* caf\xe9 */\nint a;\n", b"/* caf\xe9 */\nint \xfc;\n"),
    "formfeed.el": (b"a\n\x0c\nb\n", b"a\n\x0c\n\x0bc\n"),
    "zero\u200bwidth": ("a\u200bb\n\u2028c\u2029\u0085d\n", "a\u200b\ufeffb\n\u2028e\u2029\u0085d\n"),
    "no end": (b"one\ntwo", b"one\n2"),
    "gets an end": (b"one", b"one\n"),
    "loses its end": (b"one\r\n", b"one\r"),
    "steers": (b"\x1b[2Ja\n\x9b1m\n", b"\x1b]0;x\x07b\n\x7f\x08\n"),
    "bidi.py": ("x = 1  # \u202eabc\u202c\n", "x = 2  # \u2066abc\u2069\n"),
    "nul": (b"a\0b\n", b"a\0c\n\xff" * 50),
    "utf16": ("a\u00e4\n".encode("utf-16"), "a\u00f6\n".encode("utf-16")),
    "like a patch": ("-- \n+++ b/x\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\ndiff --git a/x b/x\n\\ No newline\n"),
    "blanks at the end": ("a \t \n", "a \t  \n \n"),
    "tab\there": ("1\n", "2\n"),
    'quo"te\\ and back': ("1\n", "2\n"),
    "new\nline": ("1\n", "2\n"),
    " blanks ": ("1\n", "2\n"),
    "-dash": ("1\n", "2\n"),
    "\u00fcml\u00e4ut/\u4e2d\u200b": ("1\n", "2\n"),
    "mode.sh": ((FILE, b"#!/bin/sh\n"), (EXECUTABLE, b"#!/bin/sh\n")),
    "link": ((LINK, b"a"), (LINK, b"b\xff\tc")),
    "kind": ("a\n", (LINK, b"elsewhere")),
    "gone": ("a\t\r\n", None),
    "emptied": ("a\n", ""),
    b"caf\xe9/\xff\t.c": (b"\xe9\n", b"\xe8\r\n"),
    "long": ("a" * 100_000 + "\n", "\t" + "a" * 100_000 + "\n"),
}
"""A file before and after a pull request, by its path."""

NEW: dict[str | bytes, Content] = {
    "new/empty": "",
    "new/tab": "\tx",
    b"new/\x80": b"\x80\0",
    "new/run": (EXECUTABLE, b"\t\r\n"),
}


@dataclass(frozen=True)
class Patched:
    """A mined chain of two pull requests, of which the second changes odd files."""

    shop: Shop
    chain: str
    database: str
    first: str
    second: str

    @property
    def git(self) -> GitRepository:
        return GitRepository.open(self.shop.path)

    def show(self, *arguments: str, command: str = "chains") -> Result:
        """What `show` prints of the chain."""
        words = [command, "show", self.chain, *arguments, "--db", self.database]
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Patched:
    folder = tmp_path_factory.mktemp("patched")
    shop = Shop(folder)
    shop.commit("main", {path: old for path, (old, _) in CONTENTS.items()}, "odd files")
    one, two = function("round_half_even_amount"), function("round_half_even_amount", 5)
    first = shop.squash("main", shop.propose(1, {"src/till/prices.py": module("prices", one)}), "Round amounts (#1)")
    changes: dict[str | bytes, Content] = {
        **{path: new for path, (_, new) in CONTENTS.items()},
        **NEW,
        "src/till/prices.py": module("prices", two),
    }
    words = "Mend the rounding (#2)\n\nFollow-up to #1."
    second = shop.squash("main", shop.propose(2, changes), words)
    with mined(folder, shop) as store:
        build(store, folder)
        (chain,) = chosen(store)
    return Patched(shop, chain, str(folder / "prchain.db"), shop.sha(first), shop.sha(second))


def applied(patched: Patched, base: str, patch: bytes, folder: Path) -> str:
    """The tree that git makes of a commit's by what was printed."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_DIR": str(patched.shop.path),
        "GIT_INDEX_FILE": str(folder / "index"),
    }

    def git(*arguments: str, given: bytes = b"") -> str:
        done = subprocess.run(["git", *arguments], env=environment, input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    git("read-tree", base)
    git("apply", "--cached", "--whitespace=nowarn", "-", given=patch)
    return git("write-tree")


def tree(patched: Patched, commit: str) -> str:
    return patched.git.run("rev-parse", f"{commit}^{{tree}}").strip()


def test_issue_38_the_patch_of_a_stage_makes_its_tree(patched: Patched, tmp_path: Path) -> None:
    for stage, (old, new) in enumerate(((f"{patched.first}^", patched.first), (patched.first, patched.second)), 1):
        printed = patched.show("--reference", "--stage", str(stage)).stdout_bytes
        assert printed == patched.git.patch_text(patched.git.run("rev-parse", old).strip(), new)
        assert applied(patched, old, printed, tmp_path) == tree(patched, new)


@pytest.mark.parametrize("arguments", [("--reference",), ("--reference", "--diff")])
def test_a_page_with_all_patches_applies_too(arguments: tuple[str, ...], patched: Patched, tmp_path: Path) -> None:
    page = patched.show(*arguments).stdout_bytes
    assert page.count(b"\nreference of stage ") == 2
    assert applied(patched, f"{patched.first}^", page, tmp_path) == tree(patched, patched.second)


def test_a_file_gets_the_patch_as_it_is_whatever_the_locale(patched: Patched, tmp_path: Path) -> None:
    words = ["chains", "show", patched.chain, "--reference", "--stage", "2", "--db", patched.database]
    with (tmp_path / "2.patch").open("w", encoding="ascii") as file, redirect_stdout(file):
        assert run(words) == 0
    assert (tmp_path / "2.patch").read_bytes() == patched.git.patch_text(patched.first, patched.second)


def test_lines_and_patches_on_a_page_are_printed_as_they_are(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    old, new = b"\treturn sum_of_all(amounts, 'caf\xe9')\x0c\r", b"\treturn exact_sum_of(amounts)\x0c\r"
    changed = ChangedLines("a.py", 1, "def total():", ((old, True), (b"\tx", False)), (new,))
    print_changed_lines(ShownPair(2, 1, LinkChanges(2, 1, 0, (), ()), (changed,)))
    assert capsysbinary.readouterr().out == (
        b"\n#2 changes 1 line of code (2 in all) of #1:\n  a.py:1  def total():\n    - %b\n    ~ \tx\n    + %b\n"
        % (old, new)
    )
    print_reference(1, 7, b"+\tcaf\xe9\r\n")
    assert capsysbinary.readouterr().out == b"\nreference of stage 1, #7:\n+\tcaf\xe9\r\n"


def test_json_has_the_exact_bytes_of_a_patch_that_is_no_text(patched: Patched) -> None:
    first, second = json.loads(patched.show("--reference", "--json").stdout)["stages"]
    assert first["reference"].startswith("diff --git a/") and first["reference_base64"] is None
    whole = patched.git.patch_text(patched.first, patched.second)
    assert base64.b64decode(second["reference_base64"]) == whole
    assert second["reference"] == whole.decode("utf-8", "replace")
    alone = json.loads(patched.show("--reference", "--stage", "2", "--json").stdout)
    assert (alone["position"], alone["reference_base64"]) == (2, second["reference_base64"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--stage", "1"), "give --reference"),
        (("--stage", "1", "--reference", "--diff"), "leave --diff out"),
        (("--stage", "3", "--reference"), "has no stage 3"),
    ],
)
def test_a_stage_that_cannot_be_shown_alone_is_a_mistake(
    arguments: tuple[str, ...], said: str, patched: Patched
) -> None:
    words = ["chains", "show", patched.chain, *arguments, "--db", patched.database]
    result = CliRunner().invoke(cli, words)
    assert said in str(result.exception)


TEXTS = {
    "tab": (b"+\tx\n", "+       x\n"),
    "carriage return": (b"+x\r\n", "+x\\r\n"),
    "form feed": (b"+\x0c\n", "+\\x0c\n"),
    "zero width": ("+a\u200bb\n".encode(), "+a\\u200bb\n"),
    "escape": (b"+\x1b[2J\x07\n", "+\\x1b[2J\\x07\n"),
    "other breaks": ("+\u2028\u0085\x1c\n".encode(), "+\\u2028\\x85\\x1c\n"),
    "no UTF-8": (b"+caf\xe9\n", "+caf\\xe9\n"),
    "no end": (b"+x\n\\ No newline at end of file\n", "+x\n\\ No newline at end of file\n"),
    "blank lines": (b" \n\n+\n", " \n\n+\n"),
    "other scripts": (
        "+\u05e9\u4f60 \U0001f469\u200d\U0001f4bb\n".encode(),
        "+\u05e9\u4f60 \U0001f469\u200d\U0001f4bb\n",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_terminal_gets_escapes_and_a_pipe_gets_bytes(name: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    content, shown = TEXTS[name]
    say_content(content)
    assert capsysbinary.readouterr().out == content
    terminal = Terminal()
    with redirect_stdout(terminal):
        say_content(content)
    assert terminal.getvalue() == shown
    assert not STEERING.search(shown.replace("\n", ""))


def test_every_byte_goes_into_a_pipe_and_none_that_steers_to_a_terminal(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    content = bytes(range(256)) * 2
    say_content(content)
    assert capsysbinary.readouterr().out == content
    terminal = Terminal()
    with redirect_stdout(terminal):
        say_content(content)
    assert not STEERING.search(terminal.getvalue().replace("\n", ""))


@pytest.mark.parametrize("patch", [b"", b"+\t\r\n", "+\u200b".encode(), b"+\xff\0", "+\ufffd".encode()])
def test_a_patch_as_json_is_exact_in_one_of_its_fields(patch: bytes) -> None:
    fields: Mapping[str, str | None] = patch_fields("patch", patch)
    text, exact = fields["patch"], fields["patch_base64"]
    read: Callable[[], bytes] = lambda: base64.b64decode(exact) if exact else str(text).encode()  # noqa: E731
    assert read() == patch
