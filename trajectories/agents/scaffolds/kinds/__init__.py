"""The scaffolds, one a module: each module of this folder holds one, as `SCAFFOLD`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prchain.core.catalogue import Catalogue

if TYPE_CHECKING:
    from trajectories.agents.scaffolds.scaffold import ScaffoldKind

SCAFFOLDS: Catalogue[ScaffoldKind] = Catalogue(__name__, "SCAFFOLD")
