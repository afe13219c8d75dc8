"""What a container holds outside of the repository's folder, its environment: as a list, packed, and switched to.

    python3 -I -S environment.py list FOLDER LIST      the entries, without FOLDER: a line of JSON each
    python3 -I -S environment.py pack PLAN ARCHIVE     what `Plan` names, as it is here
    python3 -I -S environment.py switch ARCHIVE        makes it here as it was where it was packed; 1 where it cannot

Runs as root, as a script, on Python 3.11 and newer. Who worked in a container can have put links and folders anywhere
in its way, and may still run: no link is followed, and what stands in the way goes.
"""

import gzip
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import IO

FOLDER, FILE, LINK = "folder", "file", "link"
GONE, ANEW, TIME = "gone", "anew", "time"
"""Kinds of an archive's entries beside these: what is not there; a folder that begins empty; a file of which nothing
but the time is told."""

OURS = "/opt/prchain"
"""Holds the archives: what lies there is compared, and the folder itself stays."""

_NOT_THE_IMAGES = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/logs", "/tests", "/solution")
_HOMES = ("/home", "/root")
"""Our recipes put nothing there, and Harbor's agents have their programs there."""
_ENGINES = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
_CAPABILITY = "security.capability"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """A path, whose bytes are those of `os.fsencode`, with all that is kept of it."""

    path: str
    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    what: str = ""
    """The SHA-256 of a file, the target of a link."""
    capability: str = ""
    size: int = 0
    time: int = 0
    """Nanoseconds."""

    @property
    def identity(self) -> tuple[str, int, int, int, str, str]:
        """All but the time."""
        return self.kind, self.mode, self.uid, self.gid, self.what, self.capability


@dataclass(frozen=True, slots=True)
class Plan:
    """The paths to pack: whole, of folders whether they begin empty, and those of files whose time alone is told."""

    paths: tuple[str, ...]
    anew: tuple[str, ...] = ()
    times: tuple[str, ...] = ()

    def text(self) -> str:
        """As a file."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Plan":
        """The other way round."""
        return cls(**{name: tuple(it) for name, it in json.loads(text).items()})


def listed(folder: str, root: str = "") -> Iterator[SystemEntry]:
    """What the system holds whose root is at `root`, without a folder. Links are not followed."""
    skipped = {*_NOT_THE_IMAGES, *_HOMES, *_ENGINES, folder}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        with os.scandir(f"{root}{place}/") as found:
            names = sorted(it.name for it in found)
        for name in names:
            path = f"{place}/{name}"
            if path in skipped:
                continue
            entry = _entry(path, root)
            if entry is not None and entry.kind == FOLDER:
                waiting.append(path)
            if entry is not None and path != OURS:
                yield entry


def _entry(path: str, root: str) -> SystemEntry | None:
    """None for what is no file, folder or link."""
    full = root + path
    facts = os.lstat(full)
    what, size = "", 0
    if stat.S_ISDIR(facts.st_mode):
        kind = FOLDER
    elif stat.S_ISLNK(facts.st_mode):
        kind, what = LINK, os.readlink(full)
    elif stat.S_ISREG(facts.st_mode):
        kind, size = FILE, facts.st_size
        with open(full, "rb") as file:
            what = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        return None
    mode = 0 if kind == LINK else stat.S_IMODE(facts.st_mode)
    capability = ""
    with suppress(OSError):
        capability = os.getxattr(full, _CAPABILITY, follow_symlinks=False).hex()
    return SystemEntry(path, kind, mode, facts.st_uid, facts.st_gid, what, capability, size, facts.st_mtime_ns)


def pack(plan: Plan, archive: IO[bytes], root: str = "") -> None:
    """Write an archive: the same bytes for the same files. A line of JSON an entry, behind that of a file its content;
    of what is not there, its topmost part alone."""
    anew, times, gone = set(plan.anew), set(plan.times), ""
    with gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=6, mtime=0, filename="") as packed:
        for path in sorted({*plan.paths, *times}):
            if gone and path.startswith(f"{gone}/"):
                continue
            entry = _entry(path, root) if os.path.lexists(root + path) else None
            if entry is None:
                gone = path
                entry = SystemEntry(path, GONE)
            elif path in times:
                entry = SystemEntry(path, TIME, time=entry.time)
            elif entry.kind == FOLDER:
                entry = SystemEntry(path, ANEW if path in anew else FOLDER, entry.mode, entry.uid, entry.gid)
            packed.write(json.dumps(astuple(entry)).encode() + b"\n")
            if entry.kind == FILE:
                with open(root + path, "rb") as file:
                    shutil.copyfileobj(file, packed, _BLOCK)


def unpacked(archive: IO[bytes]) -> Iterator[tuple[SystemEntry, Iterator[bytes]]]:
    """The entries of an archive, with their contents; each is read before the next one."""
    with gzip.GzipFile(fileobj=archive, mode="rb") as packed:
        for line in packed:
            entry = SystemEntry(*json.loads(line))
            content = _content(packed, entry)
            yield entry, content
            for _ in content:
                pass


def _content(packed: gzip.GzipFile, entry: SystemEntry) -> Iterator[bytes]:
    left = entry.size if entry.kind == FILE else 0
    while left:
        block = packed.read(min(left, _BLOCK))
        if not block:
            raise EOFError(f"the archive ends within {entry.path}")
        left -= len(block)
        yield block


def switch(archive: IO[bytes], root: str = "/") -> list[str]:
    """Make all that an archive names as it was where it was packed. What could not be made so, and why."""
    failed = []
    for entry, content in unpacked(archive):
        try:
            _make(entry, content, root)
        except (OSError, RecursionError) as error:
            failed.append(f"{entry.path}: {error}")
    return failed


def _make(entry: SystemEntry, content: Iterable[bytes], root: str) -> None:
    above, name = os.path.split(entry.path)
    if entry.kind in (GONE, TIME):
        with suppress(FileNotFoundError, NotADirectoryError), _opened(root, above) as place:
            if entry.kind == GONE:
                _remove(place, name)
            elif stat.S_ISREG(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
                os.utime(name, ns=(entry.time, entry.time), dir_fd=place, follow_symlinks=False)
        return
    with _opened(root, above) as place:
        if entry.kind in (FOLDER, ANEW):
            if entry.kind == ANEW or not _is_folder(place, name):
                _remove(place, name)
                os.mkdir(name, 0o700, dir_fd=place)
            with _opened_in(place, name) as made:
                os.fchown(made, entry.uid, entry.gid)
                os.fchmod(made, entry.mode)
        elif entry.kind == LINK:
            _remove(place, name)
            os.symlink(entry.what, name, dir_fd=place)
            os.chown(name, entry.uid, entry.gid, dir_fd=place, follow_symlinks=False)
        else:
            _remove(place, name)
            _write(place, name, entry, content)


def _write(place: int, name: str, entry: SystemEntry, content: Iterable[bytes]) -> None:
    with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place), "wb") as file:
        for block in content:
            file.write(block)
        file.flush()
        # Another owner takes the rights of a program away.
        os.fchown(file.fileno(), entry.uid, entry.gid)
        os.fchmod(file.fileno(), entry.mode)
        if entry.capability:
            os.setxattr(file.fileno(), _CAPABILITY, bytes.fromhex(entry.capability))
        os.utime(file.fileno(), ns=(entry.time, entry.time))


def _is_folder(place: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _remove(place: int, name: str) -> None:
    if _is_folder(place, name):
        shutil.rmtree(name, dir_fd=place)
    else:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place)


@contextmanager
def _opened(root: str, path: str) -> Iterator[int]:
    """A folder, to which no link leads."""
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in filter(None, path.split("/")):
            above, place = place, os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(above)
        yield place
    finally:
        os.close(place)


@contextmanager
def _opened_in(place: int, name: str) -> Iterator[int]:
    found = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
    try:
        yield found
    finally:
        os.close(found)


def main(command: str, *names: str) -> int:
    """Do what the arguments say."""
    if command == "list":
        with open(names[1], "x", encoding="ascii") as file:
            file.writelines(json.dumps(astuple(entry)) + "\n" for entry in listed(names[0]))
    elif command == "pack":
        with open(names[1], "xb", opener=_private) as archive:
            pack(Plan.of(Path(names[0]).read_text(encoding="ascii")), archive)
    else:
        with open(names[0], "rb") as archive:
            failed = switch(archive)
        sys.stdout.write("".join(f"{line}\n" for line in failed[:20]))
        return 1 if failed else 0
    return 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
