"""Prints the installed packages that come from the work folder, one a line: name, tab, folder below the work folder."""

from __future__ import annotations

import json
import sys
from importlib.metadata import distributions
from urllib.parse import unquote


def packages_below(folder: str) -> list[tuple[str, str]]:
    """The packages installed from `folder` or from below it, by PEP 610 or as old setuptools leaves them; with the
    folder that each came from, ``.`` for `folder` itself."""
    found = set()
    for package in distributions():
        origin = unquote(json.loads(package.read_text("direct_url.json") or "{}").get("url", ""))
        for place in (origin[len("file://") :] if origin.startswith("file://") else "", str(package.locate_file(""))):
            if (place + "/").startswith(folder + "/"):
                found.add((package.metadata["Name"], place[len(folder) :].strip("/") or "."))
                break
    return sorted(found)


if __name__ == "__main__":
    for name, place in packages_below(sys.argv[1]):
        print(name, place, sep="\t")
