"""What an image's programs are, in one word, so that a verifier in the agent's own container sees a changed one.

    python3 -I -S fingerprint.py FOLDER...     prints the fingerprint of these folders as JSON

For Python 3.6 and newer; the exporter runs it in the image, and the grader before it runs anything.
"""

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable


def fingerprint(folders: Iterable[str]) -> dict[str, str]:
    """``files``: of all files in and below the folders but compiled modules; ``compiled``: of these. Modes count,
    times and owners do not; links are not followed, and what cannot be read counts as gone."""
    lines: dict[str, list[str]] = {"files": [], "compiled": []}
    for folder in sorted(set(folders)):
        for place, folders_here, files in os.walk(folder):
            links = [name for name in folders_here if os.path.islink(os.path.join(place, name))]
            for name in files + links:
                path = os.path.join(place, name)
                kind = "compiled" if name.endswith(".pyc") else "files"
                try:
                    lines[kind].append(_line(path))
                except OSError:
                    continue
    return {kind: hashlib.sha256("".join(sorted(found)).encode()).hexdigest() for kind, found in lines.items()}


def _line(path: str) -> str:
    facts = os.lstat(path)
    what = hashlib.sha256()
    if stat.S_ISLNK(facts.st_mode):
        what.update(os.fsencode(os.readlink(path)))
    elif stat.S_ISREG(facts.st_mode):
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                what.update(block)
    return f"{facts.st_mode:o} {what.hexdigest()} {os.fsencode(path).hex()}\n"


def forget_compiled(folders: Iterable[str]) -> None:
    """Remove compiled modules: their sources are compiled anew."""
    for folder in folders:
        for place, _, files in os.walk(folder):
            for name in files:
                if name.endswith(".pyc"):
                    try:
                        os.unlink(os.path.join(place, name))
                    except OSError:
                        continue


if __name__ == "__main__":
    print(json.dumps(fingerprint(sys.argv[1:])))
