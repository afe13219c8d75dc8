"""What the kernel says of the files below a sandbox's folder, and the content of some of them: one command each.

A file's facts are device, inode, time of the last change (ctime), mode and size. A program that cannot set the
machine's clock cannot change a file and keep them. Modification times can be set back, so they tell nothing of one
sandbox; a copy of a sandbox has no other times of its files than these.

The kernel's clock for files ticks, so that two changes within a tick look alike. Facts that are younger than that are
`fresh`: the file may change once more, after it was read, without a trace.
"""

from __future__ import annotations

import io
import logging
import os
import re
import shlex
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from environments.checkouts.extraction import folders_above
from environments.checkouts.tarball import MemberKind, members
from environments.sandboxes.sandbox import HasUpperLayer
from environments.sandboxes.upper_layers import TICK, TooMuchWritten, UpperLayer, Written, open_written, read_upper
from prchain.core.errors import ExtractionFailed

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

log = logging.getLogger(__name__)

_MOST = 256 << 20
"""Bytes of a listing, and of what is read by one command."""

_PATIENCE = 300.0
_TRIES = 2

# The agent may have put programs of its own into a folder of PATH.
_CLEAN = "export LC_ALL=C PATH=/usr/bin:/bin TAR_OPTIONS=\n"
_LIST = (
    '[[ ! -L {0} ]] && printf "%s\\0" "${{EPOCHREALTIME:-$(date +%s.%6N)}}" && '
    "find . \\( -name .git{1} \\) -prune -o ! -type d -printf '%y %m %D %i %n %s %T@ %C@\\0%P\\0%l\\0' 2>/dev/null && "
    'printf "end\\0"'
)
_READ = "tar -c --null --no-unquote --no-recursion --hard-dereference -T - -f - 2>/dev/null"
_FACTS = re.compile(rb"[A-Za-z] [0-7]{1,4} \d+ \d+ \d+ \d+ -?\d+\.\d+ \d+\.\d+\Z")
_LEADS_OUT = re.compile(rb"(?:\A|/)\.{0,2}(?:/|\Z)")
_KINDS = (
    (stat.S_ISREG, b"f"),
    (stat.S_ISLNK, b"l"),
    (stat.S_ISFIFO, b"p"),
    (stat.S_ISSOCK, b"s"),
    (stat.S_ISCHR, b"c"),
    (stat.S_ISBLK, b"b"),
)
_WILD = re.compile(r"([*?\[\\])")


class Likeness(NamedTuple):
    """Whether two files are of one kind, mode and number of names, and lead to the same target; and whether they have
    one size and were modified in the same second, as fine as the times are that a copy of a sandbox has: an engine's
    layers keep whole seconds."""

    is_like: bool
    is_same: bool


class ListedFile(NamedTuple):
    """A file, link or other thing that is no folder. `facts` change whenever it does, and no other file has them."""

    path: bytes
    facts: bytes
    target: bytes = b""

    @property
    def kind(self) -> bytes:
        """A letter: f is a file, l a symbolic link (find(1), -printf %y)."""
        return self.facts[:1]

    @property
    def is_executable(self) -> bool:
        """Whether its owner may run it."""
        return bool(int(self._field(1), 8) & 0o100)

    @property
    def links(self) -> int:
        """How many names the file has."""
        return int(self.facts.split(b" ", 5)[4])

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self._field(5))

    @property
    def modified(self) -> float:
        """Seconds since the epoch."""
        return float(self._field(6))

    def compared(self, other: ListedFile) -> Likeness:
        """What this file, which may be a copy, has in common with another one."""
        mine, others = self.facts.split(b" "), other.facts.split(b" ")
        is_like = self.target == other.target and mine[:2] == others[:2] and mine[4] == others[4]
        seconds = (fields[6].partition(b".")[0] for fields in (mine, others))
        return Likeness(is_like, mine[5] == others[5] and next(seconds) == next(seconds))

    def _field(self, index: int) -> bytes:
        return self.facts.split(b" ")[index]


@dataclass(frozen=True, slots=True)
class FileListing:
    """Everything below a folder by path, except folders and what is in a ``.git``."""

    records: bytes
    """Equal ones of two listings say that they are; empty where the files were not listed by one command."""
    files: Mapping[bytes, ListedFile]
    fresh: frozenset[bytes]
    since: float
    """Facts from then on are fresh."""

    @classmethod
    def parse(cls, output: bytes, before: FileListing | None = None) -> FileListing:
        """Raises `ValueError` for what is no listing, or one that was cut off.

        What an earlier listing of the folder, `before`, holds is looked at no more: the same files are the same objects
        in both. It is returned itself where nothing has changed since and nothing in it is fresh.
        """
        now, _, records = output.partition(b"\0")
        since = float(now) - TICK
        if before is not None and before.since > since:
            before = None  # a clock that was set back: facts may be fresh once more
        if before is not None and not before.fresh and before.records == records:
            return before
        *parts, end, rest = records.split(b"\0")
        if (end, rest) != (b"end", b"") or len(parts) % 3:
            raise ValueError("the listing is cut off")
        known = before.files if before else {}
        may_be_fresh = set(before.fresh) if before else set()
        files: dict[bytes, ListedFile] = {}
        for fact, path, target in zip(parts[0::3], parts[1::3], parts[2::3], strict=True):
            listed = known.get(path)
            if listed is None or listed.facts != fact or listed.target != target:
                if not _FACTS.match(fact) or _LEADS_OUT.search(path):
                    raise ValueError("the listing is none")
                listed = ListedFile(path, fact, target)
                may_be_fresh.add(fact)
            files[path] = listed
        return cls(records, files, _young(may_be_fresh, since), since)


@dataclass(frozen=True, slots=True)
class SeenUnder:
    """What is seen in a folder of the layers under a sandbox's own, of which `UpperLayer.under` tells the names."""

    names: tuple[str, ...]
    below: tuple[str, ...]
    left_out: Collection[bytes]
    files: Mapping[bytes, ListedFile]


class FolderLister:
    """Lists a folder of a sandbox again and again; see `list_files`.

    Where what the sandbox wrote lies in an upper layer that can be read (`HasUpperLayer`), that layer alone is read
    after the first time. What was seen of the layers under it stays: it cannot change, and what hides it is written.
    A lister that is given what another one has `seen` of the same layers, or of all but the first, begins there.
    """

    def __init__(self, sandbox: Sandbox, workdir: str, seen: SeenUnder | None = None) -> None:
        self._sandbox = sandbox
        self._workdir = workdir
        self._given = seen
        self._layer: UpperLayer | None = None
        self._leave_out: Collection[bytes] = ()
        self._under: dict[bytes, ListedFile] | None = None
        """What is seen of the layers under the upper one; None where that is not known."""
        self._folders: set[bytes] = set()
        """The folders that these files are in."""
        self._is_of_no_use = False
        self._last: FileListing | None = None
        self._made_of: tuple[object, ...] = ()
        """What was written when the last listing was made."""

    def list(self, leave_out: Collection[bytes] = (), before: FileListing | None = None) -> FileListing | None:
        """As `list_files`; raises as that does."""
        layer = self._sandbox.upper_layer(self._workdir) if isinstance(self._sandbox, HasUpperLayer) else None
        if layer != self._layer:
            self._given = self.seen or self._given
            self._layer, self._under, self._is_of_no_use = layer, None, False
        elif layer is None and self._last is None and not self._is_of_no_use:
            self._give_up("what it wrote cannot be seen from here")
        if leave_out != self._leave_out:
            self._leave_out, self._under = leave_out, None
        if layer is not None and not self._is_of_no_use:
            try:
                if self._under is None and (given := self._given_under(layer)) is not None:
                    self._see(given)
                return self._on_layers(layer, before)
            except TooMuchWritten:
                self._give_up("too much is written")
        return self._list(before)

    def read(self, files: Collection[ListedFile]) -> Iterator[tuple[bytes, IO[bytes], int]]:
        """As `read_files`, of plain files of the last listing; what is written is read where it lies."""
        unread = []
        for listed in files:
            content = self._written(listed)
            if content is None:
                unread.append(listed.path)
            else:
                yield listed.path, io.BytesIO(content), listed.size
        yield from read_files(self._sandbox, self._workdir, unread)

    def _written(self, listed: ListedFile) -> bytes | None:
        """The content of a file of the upper layer that is as it was listed; None of any other."""
        if self._layer is None or self._under is None:
            return None
        try:
            with open_written(self._layer, listed.path) as file:
                content = file.read(listed.size)
                status = os.fstat(file.fileno())
        except OSError:
            return None
        return content if _facts_of(status) == listed.facts and len(content) == listed.size else None

    @property
    def seen(self) -> SeenUnder | None:
        """What another lister may be given; None where that is not known."""
        if self._under is None or self._layer is None or not self._layer.under:
            return None
        return SeenUnder(self._layer.under, self._layer.below, self._leave_out, self._under)

    def _given_under(self, layer: UpperLayer) -> dict[bytes, ListedFile] | None:
        """What was given, where it is of the layers under this one, or of all of them but the first; that one is
        read."""
        seen = self._given
        if seen is None or seen.below != layer.below or seen.left_out != self._leave_out:
            return None
        if seen.names == layer.under:
            return dict(seen.files)
        if seen.names != layer.under[1:]:
            return None
        try:
            first = read_upper(replace(layer, root=Path(layer.under[0])), self._leave_out)
        except TooMuchWritten:
            return None
        if first is None or any(status.st_nlink != 1 for status, _ in first.files.values()):
            return None
        written = {path: ListedFile(path, _facts_of(it), target) for path, (it, target) in first.files.items()}
        folders = {above for path in seen.files for above in folders_above(path)}
        return {**_seen_under(seen.files, folders, first), **written}

    def _see(self, under: dict[bytes, ListedFile]) -> None:
        self._under = under
        self._folders = {above for path in under for above in folders_above(path)}

    def _give_up(self, why: str) -> None:
        self._is_of_no_use, self._under = True, None
        log.info("a sandbox lists all its files at each step: %s", why)

    def _list(self, before: FileListing | None) -> FileListing | None:
        return list_files(self._sandbox, self._workdir, self._leave_out, before)

    def _on_layers(self, layer: UpperLayer, before: FileListing | None) -> FileListing | None:
        if self._under is not None:
            since = time.time() - TICK
            written = read_upper(layer, self._leave_out)
            if written is not None and since + TICK >= layer.since:
                return self._joined(written, since, before)
            return self._list(before)
        first = read_upper(layer, self._leave_out)
        listing = self._list(before)
        since = time.time() - TICK
        second = read_upper(layer, self._leave_out)
        if listing is None or first is None or second is None:
            return listing
        under = {
            path: listed
            for path, listed in listing.files.items()
            if path not in first.files and path not in second.files
        }
        if _young((listed.facts for listed in under.values()), layer.since):
            return listing  # something was written, seen and removed meanwhile
        if any(listed.links != 1 for listed in under.values()):
            # A kernel may keep names of one file together, and copy the one that is written.
            self._give_up("files have several names")
            return listing
        self._see(under)
        return self._joined(second, since, listing) if since + TICK >= layer.since else listing

    def _joined(self, written: Written, since: float, before: FileListing | None) -> FileListing:
        """The listing of what is written and what is seen under it."""
        if before is not None and before.since > since:
            before = None  # a clock that was set back: facts may be fresh once more
        facts_of = {path: (_facts_of(status), target) for path, (status, target) in written.files.items()}
        made_of = facts_of, written.folders, written.gone, written.emptied
        if before is not None and before is self._last and not before.fresh and made_of == self._made_of:
            return before
        known = before.files if before else {}
        may_be_fresh = set(before.fresh) if before else set()
        files = _seen_under(self._under or {}, self._folders, written)
        for path, (facts, target) in facts_of.items():
            listed = known.get(path)
            if listed is None or listed.facts != facts or listed.target != target:
                listed = ListedFile(path, facts, target)
                may_be_fresh.add(facts)
            files[path] = listed
        listing = FileListing(b"", files, _young(may_be_fresh, since), since)
        self._last, self._made_of = listing, made_of
        return listing


def _seen_under(
    under: Mapping[bytes, ListedFile], folders: Collection[bytes], written: Written
) -> dict[bytes, ListedFile]:
    """Those files of lower layers, which are in these `folders`, that what is written does not hide."""
    seen = dict(under)
    for path in (*written.files, *written.gone, *written.folders):
        seen.pop(path, None)
    hiding = (written.files.keys() | written.gone | written.emptied) & {*folders}
    if hiding:
        for path in [path for path in seen if not hiding.isdisjoint(folders_above(path))]:
            del seen[path]
    return seen


def _young(facts: Iterable[bytes], since: float) -> frozenset[bytes]:
    """The facts of files that have changed since then."""
    first = b"%.10f" % since
    return frozenset(fact for fact in facts if fact[fact.rfind(b" ") + 1 :] >= first)


def _facts_of(status: os.stat_result) -> bytes:
    """As `find` prints them."""
    kind = next((sign for is_it, sign in _KINDS if is_it(status.st_mode)), b"U")
    modified, changed = (divmod(at, 1_000_000_000) for at in (status.st_mtime_ns, status.st_ctime_ns))
    mode, numbers = stat.S_IMODE(status.st_mode), (status.st_dev, status.st_ino, status.st_nlink, status.st_size)
    return b"%s %o %d %d %d %d %d.%09d0 %d.%09d0" % (kind, mode, *numbers, *modified, *changed)


def list_files(
    sandbox: Sandbox, workdir: str, leave_out: Collection[bytes] = (), before: FileListing | None = None
) -> FileListing | None:
    """List what is below `workdir`, without the folders to be left out (paths below it); `before` as in
    `FileListing.parse`.

    None where that is not possible: the folder is gone or a link, part of it may not be read, files vanish while they
    are listed, or the image's `find` is not GNU's.
    """
    names = (shlex.quote("./" + _WILD.sub(r"\\\1", os.fsdecode(path))) for path in leave_out)
    paths = " -o ".join(f"-path {name}" for name in names)
    command = _CLEAN + _LIST.format(shlex.quote(workdir), f" -o -type d \\( {paths} \\)" if paths else "")
    for _ in range(_TRIES):
        result = sandbox.exec(command, cwd=workdir, timeout=_PATIENCE, output_limit=_MOST)
        if result.exit_code == 0 and not result.omitted:
            try:
                return FileListing.parse(result.output, before)
            except ValueError:
                continue
    return None


def read_files(sandbox: Sandbox, workdir: str, paths: Sequence[bytes]) -> Iterator[tuple[bytes, IO[bytes], int]]:
    """Path, content and size of files below `workdir`; read each content before the next item.

    Raises `ExtractionFailed` where one of them is no file any more, may not be read, or changes meanwhile.
    """
    if not paths:
        return
    names = b"".join(b"./%s\0" % path for path in paths)
    result = sandbox.exec(_CLEAN + _READ, cwd=workdir, timeout=_PATIENCE, output_limit=_MOST, stdin=names)
    if result.exit_code != 0 or result.omitted:
        raise ExtractionFailed("some files cannot be read, or change while they are")
    missing = set(paths)
    for member in members([result.output], most_bytes=_MOST, most_members=len(paths)):
        path = member.path.removeprefix(b"./")
        if member.kind is not MemberKind.FILE or member.content is None or path not in missing:
            raise ExtractionFailed("the sandbox gave other files than it was asked for")
        missing.remove(path)
        yield path, member.content, member.size
    if missing:
        raise ExtractionFailed("the sandbox gave fewer files than it was asked for")
