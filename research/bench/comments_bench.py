"""The time and memory of reading one pull request with very many comments from an emulated GitHub."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from research.bench.measures import Measure
from sql.store import Store
from sql.tables import PullRequestText
from tests.emulator import Emulator, World, generate_world
from tests.emulator.model import IssueComment

COMMENTS = 100_000
MEMORY_GOAL = 500
"""MiB at the peak; a page of comments takes a thousandth of that."""


def run(*, comments: int = COMMENTS) -> list[Measure]:
    """Mine a small world in which one pull request has so many comments, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        peak, database, listed, git = (Path(folder) / name for name in ("peak", "bench.db", "repos.txt", "git"))
        world = generate_world(1, 20, git_dir=git)
        number = _talk(world, comments)
        listed.write_text(f"{world.home.name_with_owner} = {git}\n", encoding="utf-8")
        command = [sys.executable, "-m", "research.bench.child", str(peak), "mine", str(listed), "--source", "github"]
        with Emulator(world) as emulator:
            environment = {"GITHUB_API_URL": emulator.api_url, "GITHUB_TOKEN": next(iter(emulator.tokens))}
            started = time.perf_counter()
            subprocess.run(
                [*command, "--db", str(database)], env={**os.environ, **environment}, capture_output=True, check=True
            )
            seconds = time.perf_counter() - started
        with closing(Store.open(str(database), create=False)) as store, store.reading() as tx:
            stored = len(list(tx.rows(PullRequestText, "key", number=number, field="comment")))
        points = sum(exchange.points for exchange in emulator.log)
        requests = len(emulator.log)
        memory = int(peak.read_text(encoding="ascii")) / 2**20
    name = f"one pull request with {comments:,} comments, emulated"
    return [
        Measure(name, "comments stored", stored, "", comments, at_least=True),
        Measure(name, "peak memory", memory, "MiB", MEMORY_GOAL),
        Measure(name, "seconds", seconds, "s", note="the emulator's and ours, not GitHub's"),
        Measure(name, "requests", requests, note=f"{points:,} points"),
    ]


def _talk(world: World, comments: int) -> int:
    """Give the pull request that was updated last so many comments more; returns its number."""
    pull = max(world.home.pulls, key=lambda pull: pull.number)
    author = pull.author
    for at in range(comments):
        when = pull.updated_at
        words = f"Remark {at}: this holds for the other reader as well, see the tests."
        comment = world.add("IC", IssueComment, when, author, "MEMBER", words, when, pull)
        pull.comments.append(comment)
        pull.repository.issue_comments.append(comment)
    return pull.number
