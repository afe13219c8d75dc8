"""A bare git repository with a handful of pull requests, made by one fast-import; for tests of rows and commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HOSTILE_TITLE = "Paint [red]everything[/red] \x1b[31mred\x1b[0m \u202egnp.exe\u2066 \x07"
HOSTILE_PATH = '"docs/\\033[2J\\nforged.md"'
"""As fast-import quotes it: an escape sequence and a line break."""

LANDED, UNLANDED = (1, 2, 3), (4,)

_ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}


def git(*arguments: str, stdin: str = "", at: Path | None = None) -> str:
    process = subprocess.run(
        ["git", *arguments], cwd=at, env=_ENVIRONMENT, input=stdin.encode(), capture_output=True, check=True
    )
    return process.stdout.decode()


def _commit(mark: int, ref: str, message: str, files: dict[str, str], parents: tuple[int, ...] = ()) -> str:
    who = f"A Name <a@example.org> {1_700_000_000 + mark * 3600} +0000"
    lines = [f"reset {ref}"] if not parents else []
    lines += [f"commit {ref}", f"mark :{mark}", f"author {who}", f"committer {who}"]
    lines += [f"data {len(message.encode())}", message]
    lines += [f"{'merge' if place else 'from'} :{parent}" for place, parent in enumerate(parents)]
    for path, content in files.items():
        lines += [f"M 100644 inline {path}", f"data {len(content.encode())}", content]
    return "\n".join(lines) + "\n"


def make_history(path: Path) -> Path:
    """Two squashes, of which the second follows the first up, a merge with hostile texts, and one that never landed."""
    git("init", "--quiet", "--bare", str(path))
    git("symbolic-ref", "HEAD", "refs/heads/main", at=path)
    follow_up = "Correct the parser\n\nFollow-up to #1."
    script = [
        _commit(1, "refs/heads/main", "Begin", {"a.py": "one\n"}),
        _commit(2, "refs/pull/1/head", "Write a parser", {"a.py": "one\ntwo\n"}, (1,)),
        _commit(3, "refs/heads/main", "Write a parser (#1)", {"a.py": "one\ntwo\n"}, (1,)),
        _commit(4, "refs/pull/2/head", follow_up, {"a.py": "one\ntwo!\n"}, (3,)),
        _commit(5, "refs/heads/main", "Correct the parser (#2)\n\nFollow-up to #1.", {"a.py": "one\ntwo!\n"}, (3,)),
        _commit(6, "refs/pull/3/head", HOSTILE_TITLE, {HOSTILE_PATH: "x\n"}, (5,)),
        _commit(
            7,
            "refs/heads/main",
            f"Merge pull request #3 from o/paint\n\n{HOSTILE_TITLE}",
            {HOSTILE_PATH: "x\n"},
            (5, 6),
        ),
        _commit(8, "refs/pull/4/head", "Try a lexer\n\nDepends on #2, see #99.", {"b.py": "x\n"}, (1,)),
    ]
    git("fast-import", "--quiet", stdin="".join(script), at=path)
    return path
