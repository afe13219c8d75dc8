"""Prints the lines of a requirement file (``lacking.py FILE``) of whose packages none is installed. With ``--plugins``
it prints the packages that bring plugins of pytest."""

import os
import re
import sys
from typing import Dict, Iterator, List, Set, Tuple


def lacking(lines: List[str], installed: Set[str]) -> List[str]:
    """The requirements of packages that are not installed, by names as `plain` writes them, each once; without options
    and paths."""
    named = [(plain(re.split(r"[^A-Za-z0-9._-]", line.strip())[0]), line) for line in lines if line[:1].isalnum()]
    found: Dict[str, None] = {}
    for name, line in named:
        if name not in installed:
            found[line] = None
    return list(found)


def plain(name: str) -> str:
    """The name of a package as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages() -> Iterator[Tuple[str, str]]:
    """The name of each installed package, and what tells of it: a folder of metadata, or a link to a project."""
    for site in sys.path:
        for entry in sorted(os.listdir(site)) if os.path.isdir(site) else ():
            stem, ending = os.path.splitext(entry)
            if ending in (".dist-info", ".egg-info", ".egg-link"):
                yield plain(stem.split("-")[0] if ending != ".egg-link" else stem), os.path.join(site, entry)


def plugins() -> List[str]:
    """The packages that name an entry point of pytest, without those that come from the work folder."""
    found = set()
    for name, path in packages():
        if os.path.exists(os.path.join(path, "direct_url.json")):
            continue
        try:
            with open(os.path.join(path, "entry_points.txt"), encoding="utf-8", errors="replace") as file:
                if "[pytest11]" in file.read():
                    found.add(name)
        except OSError:
            continue
    return sorted(found)


def main(arguments: List[str]) -> List[str]:
    """The lines to print."""
    if arguments == ["--plugins"]:
        return plugins()
    with open(arguments[0], encoding="utf-8", errors="replace") as file:
        return lacking([line.strip() for line in file if line.strip()], {name for name, _ in packages()})


if __name__ == "__main__":
    for line in main(sys.argv[1:]):
        print(line)
