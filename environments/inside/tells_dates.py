"""Exits with 0 where a package index tells when its files were uploaded (PEP 700), else with 1 and the reason."""

from __future__ import annotations

import json
import sys
import urllib.request


def tells_dates(index: str) -> bool:
    """Whether the JSON form of the page of pip, which every index has, says so of its files."""
    asked = urllib.request.Request(
        index.rstrip("/") + "/pip/", headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.1"}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        if "json" not in answer.headers.get("Content-Type", ""):
            return False
        files = json.load(answer).get("files", [])
    return bool(files) and all(file.get("upload-time") for file in files)


if __name__ == "__main__":
    url = sys.argv[1]
    if not url:
        from pip._internal.models.index import PyPI  # the index that pip has built in

        url = PyPI.simple_url
    try:
        sys.exit(0 if tells_dates(url) else "the index does not tell upload times")
    except (OSError, ValueError) as error:
        sys.exit("the index cannot be asked for upload times: " + type(error).__name__)
