"""Prints the requirements in a file (``unmet.py FILE``) that what is installed does not meet, each once. Options, paths
and addresses are left out.

For Python 3.6 and newer.
"""

import os
import re
import sys
from importlib import import_module
from typing import Any, Dict, List

_VERSION = re.compile(r"^Version: *(.+)$", re.MULTILINE | re.IGNORECASE)
_BEHIND = re.compile(r"\s#.*$|\s--hash=.*$|\s*\\$")


def unmet(lines: List[str], installed: Dict[str, str]) -> List[str]:
    """The requirements (PEP 508) that no installed version meets; `installed` are versions by names as PEP 503 writes
    them. What cannot be read is left out."""
    known = _packaging()
    found = []
    for line in lines:
        try:
            asked = known.Requirement(_BEHIND.sub("", line))
        except known.InvalidRequirement:
            continue
        if asked.url or (asked.marker is not None and not asked.marker.evaluate({"extra": ""})):
            continue
        version = installed.get(re.sub(r"[-_.]+", "-", asked.name).lower())
        if version is None or not asked.specifier.contains(version, prereleases=True):
            found.append(line)
    return list(dict.fromkeys(found))


def _packaging() -> Any:
    """The library that reads requirements; environments bring it with pip."""
    try:
        return import_module("pip._vendor.packaging.requirements")
    except ImportError:
        return import_module("packaging.requirements")


def version_of(place: str) -> str:
    """The version of an installed package, by its metadata: a folder, or a file of an older installation."""
    names = ("METADATA", "PKG-INFO")
    files = [os.path.join(place, name) for name in names] if os.path.isdir(place) else [place]
    for path in filter(os.path.exists, files):
        with open(path, encoding="utf-8", errors="replace") as file:
            told = _VERSION.search(file.read(20000))
        if told:
            return told.group(1).strip()
    return ""


def main(arguments: List[str]) -> List[str]:
    """The lines to print."""
    from lacking import packages  # noqa: PLC0415  beside it in the build's folder

    installed = {name: version_of(place) for name, place in packages()}
    with open(arguments[0], encoding="utf-8", errors="replace") as file:
        return unmet([line.strip() for line in file if line.strip()[:1].isalnum()], installed)


if __name__ == "__main__":
    for line in main(sys.argv[1:]):
        print(line)
