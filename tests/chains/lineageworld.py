"""Histories for the tests of lineage: generated ones, and a slow and obvious way to find the owners of lines."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.miner.gitworld import FILE, Content, World, git

_WORDS = [f"value_{number} = work({number})" for number in range(40)]
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

Owned = list[int]


def generated(path: Path, seed: int, commits: int = 30) -> World:
    """A history with edits, moves, renames, reverts, merges of criss-cross branches, CRLF, missing newlines at the end,
    files that come back, binary files and links."""
    chance = random.Random(seed)
    world = World(path)
    for start in range(3):
        world.commit("main", {f"f{start + number}.py": _text(chance) for number in range(2)}, "start")
    for branch in ("one", "two"):
        world.branch(branch, "main")
    for _ in range(commits):
        branch = chance.choice(("main", "main", "one", "two"))
        files = {name.decode(): entry for name, entry in world.made(branch).files.items()}
        if chance.random() < 0.25:
            _merge(world, chance, branch)
        else:
            world.commit(branch, _changes(world, chance, files), "work")
    world.save()
    return world


def _text(chance: random.Random) -> bytes:
    lines = chance.sample(_WORDS, chance.randint(3, 14))
    end = chance.choice((b"\n", b"\r\n"))
    return end.join(line.encode() for line in lines) + chance.choice((end, b""))


def _changes(world: World, chance: random.Random, files: Mapping[str, tuple[str, bytes]]) -> dict[str | bytes, Content]:
    name = chance.choice(sorted(files)) if files else "new.py"
    mode, content = files.get(name, (FILE, b""))
    act = chance.choice(("edit", "edit", "edit", "rename", "delete", "add", "move", "revert", "crlf", "binary", "link"))
    if act == "rename" and files:
        return {name: None, f"r{chance.randint(0, 9)}/{name.rpartition('/')[2]}": (FILE, _edited(chance, content))}
    if act == "delete" and len(files) > 1:
        return {name: None}
    if act == "add":
        return {f"f{chance.randint(0, 9)}.py": _text(chance)}
    if act == "move" and len(files) > 1:
        other = chance.choice(sorted(set(files) - {name}))
        lines = content.splitlines(keepends=True)
        cut = chance.randint(0, len(lines))
        return {name: b"".join(lines[:cut]), other: files[other][1] + b"".join(lines[cut:])}
    if act == "revert":
        old = world.made(chance.randint(1, 3)).files
        return {path.decode(): entry for path, entry in old.items()}
    if act == "crlf":
        return {name: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")}
    if act == "binary":
        return {name: content + b"\0"} if b"\0" not in content else {name: content.replace(b"\0", b"")}
    if act == "link":
        return {f"link{chance.randint(0, 1)}": ("120000", name.encode())}
    return {name: (mode, _edited(chance, content))}


def _edited(chance: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        place = chance.randint(0, len(lines))
        act = chance.choice(("insert", "delete", "change"))
        if act != "insert" and place < len(lines):
            del lines[place]
        if act != "delete":
            lines.insert(place, chance.choice(_WORDS).encode() + b"\n")
    return b"".join(lines)


def _merge(world: World, chance: random.Random, branch: str) -> None:
    other = chance.choice([name for name in ("main", "one", "two") if name != branch])
    ours, theirs = world.refs[f"refs/heads/{branch}"], world.refs[f"refs/heads/{other}"]
    files = dict(world.made(ours).files)
    changes: dict[str | bytes, Content] = {
        path: entry
        for path, entry in world.made(theirs).files.items()
        if files.get(path) != entry and chance.random() < 0.6
    }
    parents = [ours, theirs] if chance.random() < 0.8 else [ours, theirs, world.refs["refs/heads/main"]]
    world.commit(branch, changes, f"Merge {other}", parents=parents)


def slow_owners(path: Path, tip: str, credited: Mapping[str, int]) -> dict[str, Owned | None]:
    """The owners of each line at a commit: by replaying its first-parent line from the root, with one `git diff` a file
    and lists of lines."""
    owners: dict[str, Owned | None] = {}
    before = git(path, "mktree", stdin=b"").strip()
    git(path, "hash-object", "-w", "--stdin", stdin=b"")
    for sha in git(path, "rev-list", "--first-parent", "--reverse", tip).split():
        after: dict[str, Owned | None] = dict(owners)
        changes = _changes_between(path, before, sha)
        for status, name, _, _, _ in changes:
            if status in "DR":
                after.pop(name, None)
        for status, name, renamed, old, new in changes:
            if status in "AT":  # a link that becomes a file is another file
                after[renamed] = _replay(path, [], _EMPTY, new, credited[sha])
            elif status != "D":
                after[renamed] = _replay(path, owners.get(name), old, new, credited[sha])
        owners, before = after, sha
    return owners


def _changes_between(path: Path, before: str, after: str) -> list[tuple[str, str, str, str, str]]:
    """Status, old and new path, old and new blob of each file."""
    words = git(path, "diff-tree", "-r", "-M", "-z", "--no-commit-id", f"{before}^{{tree}}", f"{after}^{{tree}}").split(
        "\0"
    )
    found = []
    while len(words) > 1:
        _, _, old, new, status = words.pop(0).split(" ")
        name = words.pop(0)
        found.append((status[0], name, words.pop(0) if status[0] == "R" else name, old, new))
    return found


_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@cache
def _patch(path: Path, old: str, new: str) -> str:
    return git(path, "diff", "-U0", old, new)


def _replay(path: Path, known: Owned | None, old: str, new: str, owner: int) -> Owned | None:
    if old == new:
        return known
    patch = _patch(path, old, new)
    if "\nBinary files " in patch or known is None:
        return None
    result: Owned = []
    at = 0
    for line in patch.split("\n"):
        if match := _HUNK.match(line):
            start, count, _, added = (int(group) if group is not None else 1 for group in match.groups())
            begin = start - 1 if count else start
            result += known[at:begin] + [owner] * added
            at = begin + count
    return result + known[at:]
