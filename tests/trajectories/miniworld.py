"""Puts a separately installed mini-swe-agent on the path of this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trajectories.agents.scaffolds.mini_package import MiniPackage, load_package

FOLDER = "PRCHAIN_TEST_MINI"
"""The folder that it was installed into; `make test` and `make bench` set it, from the folder that they run in."""

START = Path.cwd()
"""Tests run in folders of their own."""


def on_the_path() -> MiniPackage:
    """The package. Raises `UsageError` where it is neither in that folder nor installed."""
    folder = os.environ.get(FOLDER)
    if folder and (path := str((START / folder).resolve())) not in sys.path:
        sys.path.append(path)
    return load_package()
