"""The kinds of sources that ask a forge: each module here has a `SOURCE`, a choice of ``--source`` under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prchain.core.catalogue import Catalogue

if TYPE_CHECKING:
    from miner.source import SourceKind

AUTO = "auto"
"""In place of a source: a forge's where the settings have what it needs, else git alone."""

GIT = "git"
"""In place of a source: git alone."""

SOURCES: Catalogue[SourceKind] = Catalogue(__name__, "SOURCE")
