"""What became of a landed pull request when lineage was walked: exactly one outcome each.

====================  ================================================================================
paired                it builds on at least one earlier pull request; `lineage` has the pairs
unpaired              it changes nobody's lines, or none that count
sweeping              it touches lines of more than `chains.lineage.evidence.SWEEPING` others
carries_landings      a merge that brings landings of another branch; its lines are nobody's
same_change           it repeats, on another branch, the change of one walked before: a backport
off_line              its landed commit is on no branch's first-parent line, or another one has it
====================  ================================================================================
"""

from __future__ import annotations

PAIRED = "paired"
UNPAIRED = "unpaired"
SWEEPING = "sweeping"
CARRIES_LANDINGS = "carries_landings"
SAME_CHANGE = "same_change"
OFF_LINE = "off_line"

LINEAGE_OUTCOMES = (PAIRED, UNPAIRED, SWEEPING, CARRIES_LANDINGS, SAME_CHANGE, OFF_LINE)
"""In the order in which they are reported."""
