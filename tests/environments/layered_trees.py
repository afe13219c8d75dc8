"""What an agent may do in a sandbox that stands on an overlay: after each of it the tree is that of an extraction."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from environments.checkouts.checkout import extract_tree
from environments.checkouts.tracking import Tracker
from environments.sandboxes.sandbox import ExecResult, Sandbox
from prchain.core.errors import ExtractionFailed, SandboxFileError
from prchain.core.git.trees import EXECUTABLE, LINK, TreeStore
from tests.prchain.treeworld import Content, plant

START: dict[str | bytes, Content] = {
    ".gitignore": "*.log\njunk/\n",
    "a": "one\n",
    "d/b": "two\n",
    "d/e/run": (EXECUTABLE, "#!/bin/sh\n"),
    "d/e/more": "more\n",
    "d/tracked.log": "tracked\n",
    "link": (LINK, "a"),
    "many/x": "x\n",
    "many/y": "y\n",
    b"odd\xff\n-x": "odd\n",
}

AGENTS = (
    "true",
    "touch -r a /tmp/time; printf 'ONE\\n' > a; touch -r /tmp/time a",
    "rm a; ln -s /etc/passwd a",
    "rm a; mkdir a; echo x > a/x",
    "rm -r d/e; echo file > d/e",
    "rm d/e; mkdir d/e; echo new > d/e/new",
    "rm -rf d; mkdir d; echo two > d/b",
    "mv many lots; echo z > lots/z",
    "mv lots many",
    "rm -r many; ln -s d many; echo through > many/through",
    "mkdir -p n/deep; echo 1 > n/deep/y; mv n q; mkdir n; mv q/deep n/shallow; rmdir q",
    "ln d/b hard; echo via >> hard",
    "rm hard; echo x > $'odd\\377\\n-x'; echo y > $'new\\n\\376'",
    "mkdir .GIT; touch .GIT/x; mkdir -p k/.git; touch k/.git/x k/y",
    "mkdir shut; echo hidden > shut/file; chmod 0 shut",
    "chmod 700 shut; chmod +x shut/file; echo no > x.log; mkdir junk; touch junk/j",
    "mkfifo pipe; mkdir c; printf 'Signature: 8a477f597d28d172789f06886806bc55' > c/CACHEDIR.TAG; touch c/cached",
    "echo begun > late; exec 3>>late; { sleep 0.2; echo late; } >&3 & sleep 0.4",
    "printf 'TWO\\n' | dd of=d/b conv=notrunc 2>/dev/null; truncate -s 1 d/b",
    "rm -rf ./* .gitignore",
    "for i in $(seq 60); do mkdir -p l/$i; echo $i > l/$i/f; done",
    "git checkout -q -f -- . 2>/dev/null; git reset -q --hard",
    "{ for i in $(seq 100); do echo $i > tick; mv tick tock; rm -f tock; done; } >/dev/null & sleep 0.05",
    "rm -f tick tock",
)


def listings_of_agents(sandbox: Sandbox, store: TreeStore, monkeypatch: pytest.MonkeyPatch) -> int:
    """Do all of it in a sandbox that holds `START` and that nobody has used; returns how often all files were
    listed after the first tree."""
    start = plant(store, START)
    tracker = Tracker(sandbox, store, start_tree=start, ignore_rules_from=start)
    assert tracker.take() == start
    commands: list[str] = []
    run = sandbox.exec

    def noted(command: str, **named: Any) -> ExecResult:
        commands.append(command)
        return run(command, **named)

    monkeypatch.setattr(sandbox, "exec", noted)
    for command in AGENTS:
        assert sandbox.exec(command, timeout=20).exit_code == 0, command
        while sandbox.leftovers():
            with suppress(SandboxFileError, ExtractionFailed):
                tracker.take()  # any tree, while files come and go
        check_tree(sandbox, store, tracker, start, command)
    return sum("find . " in command for command in commands)


def check_tree(sandbox: Sandbox, store: TreeStore, tracker: Tracker, start: str, command: str) -> None:
    """Compare the tracker's next tree with an extraction."""
    tree = tracker.take()
    assert tree == extract_tree(sandbox, store, start_tree=start, ignore_rules_from=start).tree, command
    assert tracker.take() == tree
