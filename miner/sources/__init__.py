"""The kinds of sources that ask a forge: each module here has a `SOURCE`, a choice of ``--source`` under its name."""

from __future__ import annotations

from miner.source import SourceKind
from prchain.core.catalogue import Catalogue

SOURCES = Catalogue[SourceKind](__name__, "SOURCE")
