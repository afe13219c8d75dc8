"""Pieces of a patch that an agent might leave out (a file, a hunk, a statement, a line), rename, or damage.

A statement is identified by its file, function and content, so that it is found again where later work has moved it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from prchain.core.git import Hunk, path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore
from research.real_rollouts.otherwise import fresh_lines, functions
from research.state_pairs.agents import blocks_of, lines_of

FILE_PIECE, HUNK, STATEMENT, LINE, DAMAGE, NAME = "file", "hunk", "statement", "line", "damage", "name"
_KINDS = (FILE_PIECE, HUNK, STATEMENT, LINE, DAMAGE, NAME)

MARK_PREFIX = "/tmp/seen-by-tests"
"""Prefix of the files that a marked statement makes when it runs."""

_MOST_DAMAGE = 50
"""Statements of a file that are offered for damage."""

_NO_WORK = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a file. `lines` are the numbers of its lines in the whole file, and `text` their content.

    For a name, `path` is the first file that contains it, and `text` is the name.
    """

    kind: str
    path: str
    lines: range
    text: str = field(repr=False)
    rest: tuple[tuple[bytes, str, bytes | None], ...] = field(default=(), repr=False)
    """The files without it: path, mode, and content; content None where there is no file."""
    marks: frozenset[str] = frozenset()
    """The statements in it, as `statements` names them."""

    def __str__(self) -> str:
        if self.kind == NAME:
            return f"name {self.text} in {self.path}"
        span = f"{self.lines.start}-{self.lines.stop - 1}" if len(self.lines) > 1 else str(self.lines.start)
        return f"{self.kind} {self.path}" + (f":{span}" if self.kind != FILE_PIECE else "")

    def __contains__(self, other: Piece) -> bool:
        """Whether the other piece is the same, or a part of this one."""
        return (
            self.path == other.path
            and (self == other or not {self.kind, other.kind} & {DAMAGE, NAME})
            and self.lines.start <= other.lines.start
            and other.lines.stop <= self.lines.stop
        )

    def left_out(self, store: TreeStore, whole: str) -> str:
        """The tree `whole`, from which the piece was taken, without it."""
        changes = {
            path: None if content is None else TreeEntry(mode, store.write_blob(content))
            for path, mode, content in self.rest
        }
        return store.edit(whole, changes)


def pieces(store: TreeStore, start: str, whole: str, damage: Collection[str] = ()) -> list[Piece]:
    """The pieces of the patch from `start` to `whole` without which its files still parse; larger ones first.

    Python's statements are replaced by ``pass``. `damage` names older statements that may be removed, too. Deleted
    files have no pieces.
    """
    found: list[Piece] = []
    [patch] = store.patches([(store.commit(start), store.commit(whole))])
    hunks = {file.path: file.hunks for file in patch if file.status in "AM" and not file.binary}
    for change in store.diff(start, whole):
        path, new = path_text(change.path), change.new
        if new is None or new.mode not in (FILE, EXECUTABLE) or path not in hunks:
            continue
        before, after = _text(store, change.old), _text(store, new)
        texts = [line.decode("utf-8", "replace") for line in lines_of(after)]
        program = _decoded(after)
        fresh = fresh_lines(_decoded(before), program)
        named = statements(path, program)
        own = [node for node in named.values() if fresh.issuperset(_lines(node))]
        old = [node for name, node in named.items() if name in damage and fresh.isdisjoint(_lines(node))]
        without = [
            (FILE_PIECE, range(1, len(texts) + 1), before if change.old else None),
            *((HUNK, *without_hunk) for without_hunk in _without_hunks(before, after, hunks[path])),
            *((STATEMENT, *without_statement) for without_statement in _without_statements(program, own)),
            *((LINE, *without_line) for without_line in _without_lines(after, fresh)),
            *((DAMAGE, *without_statement) for without_statement in _without_statements(program, old[:_MOST_DAMAGE])),
        ]
        seen_rests: set[bytes | None] = set()
        for kind, lines, rest in without:
            if rest in seen_rests or not (rest is None or _runs(path, rest)):
                continue
            seen_rests.add(rest)
            marks = frozenset(name for name, node in named.items() if node.lineno in lines)
            text = "".join(texts[lines.start - 1 : lines.stop - 1])
            found.append(Piece(kind, path, lines, text, ((change.path, new.mode, rest),), marks))
    return sorted(found, key=lambda piece: _KINDS.index(piece.kind))


def renamed_pieces(store: TreeStore, start: str, whole: str, names: Iterable[str]) -> Iterator[Piece]:
    """For each of the names, the patch from `start` to `whole` with another name throughout its Python files."""
    texts = {
        change.path: (change.new.mode, _text(store, change.new))
        for change in store.diff(start, whole)
        if change.path.endswith(b".py") and change.new is not None and change.new.mode in (FILE, EXECUTABLE)
    }
    for name in names:
        word = re.compile(rb"\b%b\b" % re.escape(name.encode()))
        rest = tuple(
            (path, mode, word.sub(name.encode() + b"_own", text))
            for path, (mode, text) in texts.items()
            if word.search(text)
        )
        if rest and all(_runs(".py", content) for _, _, content in rest):
            yield Piece(NAME, path_text(rest[0][0]), range(1), name, rest)


def marked(store: TreeStore, tree: str, paths: Collection[str]) -> str:
    """The tree with each statement in the functions of these files marked: it makes a file when it runs."""
    changes: dict[bytes, TreeEntry | None] = {}
    for path, entry in store.entries(tree).items():
        if path_text(path) not in paths or entry.mode not in (FILE, EXECUTABLE):
            continue
        text = _decoded(_text(store, entry))
        lines = text.split("\n")
        found = [(node.lineno, node.col_offset, name) for name, node in statements(path_text(path), text).items()]
        for line, column, name in sorted(found, reverse=True):
            if not lines[line - 1].lstrip().startswith("elif"):
                lines.insert(line - 1, f"{' ' * column}open({f'{MARK_PREFIX}-{name}'!r}, 'w').close()")
        changed = _encoded("\n".join(lines))
        if _runs(path_text(path), changed):
            changes[path] = TreeEntry(entry.mode, store.write_blob(changed))
    return store.edit(tree, changes)


def statements(path: str, text: str) -> dict[str, ast.stmt]:
    """The statements in the functions of a Python file that begin a line, by their names.

    Docstrings, ``pass`` and definitions do not count.
    """
    found: dict[str, ast.stmt] = {}
    times: Counter[str] = Counter()
    for function, node in _within(text) if path.endswith(".py") else ():
        identity = f"{path}\n{function}\n{ast.dump(node)}".encode("utf-8", "replace")
        name = sha256(identity).hexdigest()[:12]
        times[name] += 1
        found[f"{name}-{times[name]}"] = node
    return found


def _within(text: str) -> Iterator[tuple[str, ast.stmt]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.split("\n")
    for function, body in functions(tree):
        for node in (node for part in body.body for node in ast.walk(part)):
            if (
                isinstance(node, ast.stmt)
                and not isinstance(node, _NO_WORK)
                and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
                and not _encoded(lines[node.lineno - 1])[: node.col_offset].strip()
            ):
                yield function, node


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _without_hunks(before: bytes, after: bytes, hunks: tuple[Hunk, ...]) -> Iterator[tuple[range, bytes]]:
    blocks = blocks_of(lines_of(before), lines_of(after), hunks)
    line = 1
    for index, (old, new) in enumerate(blocks):
        if old != new:
            kept = [part for position, block in enumerate(blocks) for part in block[0 if position == index else 1]]
            yield range(line, line + len(new)), b"".join(kept)
        line += len(new)


def _without_statements(text: str, nodes: Iterable[ast.stmt]) -> Iterator[tuple[range, bytes]]:
    lines = text.split("\n")
    for node in nodes:
        gone = _lines(node)
        rest = [*lines[: gone.start - 1], f"{' ' * node.col_offset}pass", *lines[gone.stop - 1 :]]
        yield gone, _encoded("\n".join(rest))


def _without_lines(after: bytes, fresh: set[int]) -> Iterator[tuple[range, bytes]]:
    lines = lines_of(after)
    for line in sorted(fresh):
        if line <= len(lines) and lines[line - 1].strip():
            yield range(line, line + 1), b"".join([*lines[: line - 1], *lines[line:]])


def _text(store: TreeStore, entry: TreeEntry | None) -> bytes:
    return store.blobs([entry.blob])[0] if entry else b""


def _decoded(content: bytes) -> str:
    """The text; a file that is not UTF-8 does not parse, and is left alone."""
    return content.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _runs(path: str, text: bytes) -> bool:
    if not path.endswith(".py"):
        return True
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
