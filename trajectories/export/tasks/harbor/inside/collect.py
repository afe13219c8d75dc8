"""Packs what an agent changed in the repository's folder, as one archive.

    python3 -I -S collect.py FOLDER LISTING ARCHIVE

Runs as a script in the agent's container, on Python 3.6 and newer, before that container goes. LISTING is what the
image's tree holds: ``MODE BLOB PATH`` with a NUL behind each. Nothing here can be trusted more than the agent, who may
own the container: the digest that the archive ends with guards its transfer alone.
"""

import hashlib
import io
import os
import stat
import sys
import tarfile
from collections.abc import Iterator

_LINK = "120000"


def listed(path: str) -> dict[bytes, tuple[str, str]]:
    """Path to mode and blob."""
    with open(path, "rb") as file:
        lines = [line for line in file.read().split(b"\0") if line]
    found = {}
    for line in lines:
        mode, blob, name = line.split(b" ", 2)
        found[name] = (mode.decode(), blob.decode())
    return found


def paths_below(folder: bytes) -> Iterator[bytes]:
    """What lies below a folder and is none, without the repository itself."""
    for place, folders, files in os.walk(folder):
        if place == folder and b".git" in folders:
            folders.remove(b".git")
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in files + links:
            yield os.path.relpath(os.path.join(place, name), folder)


def pack(folder: bytes, listing: dict[bytes, tuple[str, str]], target: str) -> None:
    """Write the archive."""
    whole = hashlib.sha256()
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:

        def add(path: bytes, mode: int, content: bytes, link: bool = False) -> None:
            member = tarfile.TarInfo(os.fsdecode(path))
            member.mode = mode
            if link:
                member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(content)
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            whole.update(b"%d %d " % (len(path), len(content)) + path + content)

        seen = set()
        for path in paths_below(folder):
            full = os.path.join(folder, path)
            facts = os.lstat(full)
            seen.add(path)
            if stat.S_ISLNK(facts.st_mode):
                content, mode = os.readlink(full), _LINK
            elif stat.S_ISREG(facts.st_mode):
                with open(full, "rb") as file:
                    content = file.read()
                mode = "100755" if facts.st_mode & 0o100 else "100644"
            else:
                continue
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            if listing.get(path) != (mode, blob):
                add(b"changed/" + path, 0o755 if mode == "100755" else 0o644, content, mode == _LINK)
        gone = sorted(path for path, entry in listing.items() if path not in seen and entry[0] != "160000")
        add(b"gone", 0o644, b"\0".join(gone))
        add(b"digest", 0o644, whole.hexdigest().encode())


if __name__ == "__main__":
    place = sys.argv[3]
    os.makedirs(os.path.dirname(place), exist_ok=True)
    half = place + ".part"
    pack(os.fsencode(sys.argv[1]), listed(sys.argv[2]), half)
    os.replace(half, place)
