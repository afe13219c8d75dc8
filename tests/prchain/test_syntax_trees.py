"""Python's texts are parsed by one thread at a time."""

from __future__ import annotations

import ast
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from prchain.core.code.syntax_trees import syntax_tree

ROOT = Path(__file__).parents[2]
INSIDE = re.compile(r"/(?:inside|reporters)/")
"""What runs in a sandbox, alone."""


def test_no_two_threads_parse_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, parse = 0, 0, ast.parse
    counting = threading.Lock()

    def slow(text: str) -> ast.Module:
        nonlocal at_once, most
        with counting:
            at_once += 1
            most = max(most, at_once)
        sleep(0.002)
        with counting:
            at_once -= 1
        return parse(text)

    monkeypatch.setattr(ast, "parse", slow)
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(syntax_tree, [f"x = {number}" for number in range(12)]))
    assert most == 1 and len(trees) == 12


def test_nobody_else_parses_in_the_packages() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for package in ("prchain", "sql", "miner", "chains", "environments", "trajectories")
        for path in (ROOT / package).rglob("*.py")
        if "ast.parse(" in path.read_text(encoding="utf-8") and not INSIDE.search(path.as_posix())
    ]
    assert found == ["prchain/core/code/syntax_trees.py"]
