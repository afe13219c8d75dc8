"""The rules of the audit: each module of this folder holds one, as `RULE`."""

from __future__ import annotations

from prchain.core.catalogue import Catalogue
from trajectories.audit.finding import AuditRule

RULES = Catalogue[AuditRule](__name__, "RULE")
