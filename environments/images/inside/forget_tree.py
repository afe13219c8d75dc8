"""Prints the installed packages that come from the work folder, one a line: name, tab, folder below the work folder."""

import json
import os
import sys
from typing import Iterator, List, Tuple
from urllib.parse import unquote

_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg")


def packages_below(folder: str) -> List[Tuple[str, str]]:
    """The packages installed from `folder` or from below it, by PEP 610 or as old setuptools leaves them; with the
    folder that each came from, ``.`` for `folder` itself. Read from the files, for Python has no library for it before
    3.8."""
    found = {(_name(metadata), place[len(folder) :].strip("/") or ".") for metadata, place in _below(folder)}
    return sorted(found)


def metadata_below(folder: str) -> List[str]:
    """The files of metadata of these packages."""
    return sorted({metadata for metadata, _ in _below(folder)})


def _below(folder: str) -> Iterator[Tuple[str, str]]:
    for site in sys.path:
        for metadata, place in _packages(os.path.abspath(site)):
            if (place + "/").startswith(folder + "/"):
                yield metadata, _project(folder, place)


def _project(folder: str, place: str) -> str:
    """The folder of the project whose code lies in a folder, as in ``src``: the nearest above with a manifest."""
    found = place
    while not any(os.path.exists(os.path.join(found, name)) for name in _MANIFESTS):
        if found == folder:
            return place
        found = os.path.dirname(found)
    return found


def _packages(site: str) -> Iterator[Tuple[str, str]]:
    """The file of metadata of each package that a folder of `sys.path` tells of, and the folder that it came from."""
    for entry in sorted(os.listdir(site)) if os.path.isdir(site) else ():
        path = os.path.join(site, entry)
        if entry.endswith(".dist-info"):
            origin = unquote(json.loads(_text(os.path.join(path, "direct_url.json")) or "{}").get("url", ""))
            is_here = origin.startswith("file://")
            yield os.path.join(path, "METADATA"), origin[len("file://") :] if is_here else site
        elif entry.endswith(".egg-info"):  # a folder that lies beside the code, or a file of an older installation
            yield os.path.join(path, "PKG-INFO") if os.path.isdir(path) else path, site


def _name(metadata: str) -> str:
    lines = _text(metadata).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.lower().startswith("name:")), "")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    for name, place in packages_below(sys.argv[1]):
        print(name, place, sep="\t")
