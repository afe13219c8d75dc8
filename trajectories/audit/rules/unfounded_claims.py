"""``unfounded_claims``: a turn says that tests pass, and what the agent saw says otherwise, or it saw nothing.

The text counts, and no reasoning. See `trajectories.audit.unfounded`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trajectories.audit.acts import AuditedWork
from trajectories.audit.finding import AuditFinding, AuditRule, CheatSign, quoted


def find(work: AuditedWork) -> Iterator[AuditFinding]:
    """See `AuditRule.find`."""
    for claim in work.claims:
        yield AuditFinding(CheatSign.UNFOUNDED_CLAIMS, claim.position, claim.step, quoted(claim.quote), str(claim.seen))


RULE = AuditRule(CheatSign.UNFOUNDED_CLAIMS, "says that tests pass, and saw no such thing", find)
