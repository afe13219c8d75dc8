"""What the kernel says of the files below a sandbox's folder, and the content of some of them: one command each.

A file's facts are device, inode, time of the last change (ctime), mode and size. A program that cannot set the
machine's clock cannot change a file and keep them. Modification times can be set back, so they tell nothing of one
sandbox; a copy of a sandbox has no other times of its files than these.

The kernel's clock for files ticks, so that two changes within a tick look alike. Facts that are younger than that are
`fresh`: the file may change once more, after it was read, without a trace.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

from environments.checkouts.tarball import MemberKind, members
from prchain.core.errors import ExtractionFailed

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

_TICK = 0.05
"""Seconds that the kernel's clock for files lags behind the time of day at most: it ticks every 1 to 10 ms."""

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
_WILD = re.compile(r"([*?\[\\])")


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
        return int(self._field(4))

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self._field(5))

    @property
    def modified(self) -> float:
        """Seconds since the epoch."""
        return float(self._field(6))

    def is_like(self, other: ListedFile) -> bool:
        """Whether both are of one kind, mode and number of names, and lead to the same target."""
        mine, others = (file.facts.split(b" ", 5) for file in (self, other))
        return self.target == other.target and mine[:2] == others[:2] and mine[4] == others[4]

    def _field(self, index: int) -> bytes:
        return self.facts.split(b" ")[index]


@dataclass(frozen=True, slots=True)
class FileListing:
    """Everything below a folder by path, except folders and what is in a ``.git``. Equal ones have equal `records`."""

    records: bytes
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
        since = float(now) - _TICK
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
        first = b"%.10f" % since
        fresh = frozenset(fact for fact in may_be_fresh if fact[fact.rfind(b" ") + 1 :] >= first)
        return cls(records, files, fresh, since)


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
