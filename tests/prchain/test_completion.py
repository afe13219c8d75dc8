"""Completion by the shells, as click's scripts for them ask for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prchain.cli import COMMANDS, COMPLETE

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

SHELLS = {
    "bash": 'COMP_WORDS=({typed}); COMP_CWORD={last}; _prchain_completion prchain; printf "%s\\n" "${{COMPREPLY[@]}}"',
    # Outside of a line that is edited zsh lets nobody complete: what would be offered is printed.
    "zsh": "_describe() {{ print -rl -- ${{${{(P)3}}%%:*}}; }}; compadd() {{ shift $#; }}; "
    "words=({typed}); CURRENT={last}; (( CURRENT += 1 )); _prchain_completion",
    "fish": "complete --do-complete '{typed}'",
}
"""Shell to what it is told once the script is read, to print the completions of what was typed."""

INSTALLED = [shell for shell in SHELLS if shutil.which(shell)]


def complete(instruction: str, words: str = "", last: str = "") -> str:
    """What the shell that says `instruction` is answered."""
    variables = {COMPLETE: instruction, "COMP_WORDS": words, "COMP_CWORD": last}
    process = subprocess.run(
        [sys.executable, "-m", "prchain"], env=ENVIRONMENT | variables, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_is_given_a_script_and_completions(shell: str) -> None:
    script = complete(f"{shell}_source")
    assert f"{COMPLETE}={shell}_complete" in script
    assert "_prchain_completion" in script
    assert shell != "fish" or "split -m1" in script, "what it is told of an item may have commas"
    last = "ch" if shell == "fish" else "1"
    offered = re.split(r"[\n,\t]", complete(f"{shell}_complete", "prchain ch", last))
    assert [word for word in offered if word in COMMANDS] == ["chains"]


def test_commands_sub_commands_options_and_values_are_completed() -> None:
    for words, found in {
        "prchain ": {*COMMANDS},
        "prchain --v": {"--version"},
        "prchain chains b": {"build"},
        "prchain sql fun": {"funnel"},
        "prchain chains list --strat": {"--strategy"},
        "prchain chains list --strategy t": {"temporal"},
    }.items():
        last = str(len(words.split(" ")) - 1)
        offered = {line.partition(",")[2] for line in complete("bash_complete", words, last).split()}
        assert found <= offered, words


def test_the_names_of_commands_are_completed_without_loading_any(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom prchain.cli import main\nsys.argv = ['prchain']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    variables = {COMPLETE: "bash_complete", "COMP_WORDS": "prchain ch", "COMP_CWORD": "1"}
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    output, _, loaded = process.stdout.partition("LOADED ")
    assert output.split() == ["plain,chains"]
    assert not {"sqlalchemy", "pydantic", "rich", "sql", "miner", "chains"} & set(loaded.split())


@pytest.mark.parametrize("shell", INSTALLED)
def test_the_shell_itself_completes_after_what_the_docs_tell_to_type(shell: str, tmp_path: Path) -> None:
    (line,) = re.findall(rf"^    (.*{shell}_source.*)$", (ROOT / "docs/shell.md").read_text(encoding="utf-8"), re.M)
    called = tmp_path / "prchain"
    called.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m prchain "$@"\n', encoding="utf-8")
    called.chmod(0o755)
    # What zsh has loaded where completion is on.
    before = "compdef() { :; }; " if shell == "zsh" else ""
    then = SHELLS[shell].format(typed="prchain chains b", last=2)
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    process = subprocess.run(
        [shell, "-c", f"{before}{line}\n{then}"], env=environment, capture_output=True, text=True, check=False
    )
    assert process.stderr == ""
    assert [word.partition("\t")[0] for word in process.stdout.splitlines()] == ["build"]


def test_a_shell_that_click_does_not_know_is_a_failure_without_a_traceback() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "prchain"],
        env=ENVIRONMENT | {COMPLETE: "tcsh_source"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (1, "", "")
