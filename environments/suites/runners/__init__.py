"""The test runners, one a module: each module of this folder holds one, as `RUNNER`.

To add a runner, add its module here and a recipe that names it (`environments.images.recipes`). Where SWE-bench has a
log parser for it, a line of `prchain.core.swebench.logparsers` says so; where a reporter of ours is to sign its
results, a file in `environments/suites/reporters` does that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prchain.core.catalogue import Catalogue

if TYPE_CHECKING:  # who lists the names alone, as a recipe does, loads no runner
    from environments.suites.runner import Runner

DEFAULT = "pytest"
"""The runner of a recipe that names none."""

RUNNERS: Catalogue[Runner] = Catalogue(__name__, "RUNNER")
