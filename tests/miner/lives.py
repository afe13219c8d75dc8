"""Lives of the miner that tests end: processes forked from one that has the modules of these tests, and the worlds that
they make, so that no life imports them."""

from __future__ import annotations

import multiprocessing

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.miner.test_github_faults", "tests.miner.test_kills"])
