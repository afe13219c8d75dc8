"""Prints the names of the installed packages that come from the work folder, one a line."""

from __future__ import annotations

import json
import sys
from importlib.metadata import distributions


def packages_below(folder: str) -> list[str]:
    """The packages installed from `folder` or from below it, by PEP 610 or as old setuptools leaves them."""
    found = set()
    for package in distributions():
        origin = json.loads(package.read_text("direct_url.json") or "{}").get("url", "")
        place = str(package.locate_file(""))
        if (origin + "/").startswith("file://" + folder + "/") or (place + "/").startswith(folder + "/"):
            found.add(package.metadata["Name"])
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(packages_below(sys.argv[1])))
