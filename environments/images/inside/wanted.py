"""Prints what the project in the work folder needs, by the metadata that building it has made: its requirements, and
those of the extras whose names match one of the patterns (``wanted.py FOLDER PATTERN...``)."""

import os
import re
import sys
from typing import List, Optional

_WILD = re.compile(r"((?:>=|<=|~=|<|>)\s*\d+(?:\.\d+)*)\.\*")
_EXTRA = re.compile(r"""\(?\s*extra\s*==\s*["']([^"']+)["']\s*\)?""")


def requirements(metadata: str, patterns: List[str]) -> List[str]:
    """The requirements in a text of metadata (``METADATA``, ``PKG-INFO``), with those of fitting extras."""
    found = []
    for line in metadata.splitlines():
        if not line.strip():
            break
        if line.lower().startswith("requires-dist:"):
            requirement, _, marker = line.partition(":")[2].strip().partition(";")
            kept = _marker(marker.strip(), patterns)
            if kept is not None:
                found.append(requirement.strip() + (" ; " + kept if kept else ""))
    return [as_pep_440(line) for line in found]


def as_pep_440(requirement: str) -> str:
    """A requirement as PEP 440 writes it: ``>=0.13.*``, which setuptools took for ``>=0.13`` until 2023."""
    return _WILD.sub(r"\1", requirement)


def _marker(marker: str, patterns: List[str]) -> Optional[str]:
    """A marker without its condition on an extra; None where that extra is not wanted."""
    named = _EXTRA.search(marker)
    if named is None:
        return marker
    if not _fits(named.group(1), patterns):
        return None
    rest = _EXTRA.sub("", marker).strip()
    return re.sub(r"^and\b|\band$", "", rest).strip()


def of_egg(text: str, patterns: List[str]) -> List[str]:
    """The requirements in a ``requires.txt`` of setuptools: sections are named ``extra:marker``."""
    found = []
    wanted, marker = True, ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            wanted = not extra or _fits(extra, patterns)
        elif line and wanted:
            found.append(as_pep_440(line) + (" ; " + marker if marker else ""))
    return found


def _fits(extra: str, patterns: List[str]) -> bool:
    plain = re.sub(r"[-_.]+", "-", extra).lower()
    return any(re.match(pattern, plain) for pattern in patterns)


def main(folder: str, patterns: List[str]) -> List[str]:
    """What the project of a folder needs."""
    from forget_tree import metadata_below  # noqa: PLC0415  beside it in the build's folder

    folder = os.path.abspath(folder)
    found = []
    for path in metadata_below(folder):
        of_setuptools = os.path.join(os.path.dirname(path), "requires.txt")
        if path.endswith("PKG-INFO") and os.path.exists(of_setuptools):
            found += of_egg(_text(of_setuptools), patterns)
        else:
            found += requirements(_text(path), patterns)
    return found


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


if __name__ == "__main__":
    print("\n".join(main(sys.argv[1], sys.argv[2:])))
