"""What became of a landed pull request, and of an edge, when chains were chosen: exactly one outcome each.

Of a pull request, per strategy:

====================  ================================================================================
chained               it is a stage of a chain that was chosen
frozen                it is a stage of a chain that has a task already, chosen by an earlier run
unlinked              nothing that may be a stage builds on it, and it builds on nothing that may
not_chosen            its edges lead to others that went to chains of greater confidence
reverted              a later pull request took it back whole
revert                it takes an earlier one back whole
...                   a filter's name; `chains.stages.filters`
====================  ================================================================================

Of an edge:

====================  ================================================================================
kept                  chains may use it
backport              it says that the source repeats the target on another branch
reversal              the source takes the target back, or puts it in again
not_ancestor          the target had not landed on what the source landed on
no_shared_area        the two change no common file or folder, and the source uses no name of the target's
below_floor           the signs speak too little for it
stage_dropped         one of the two can be no stage
unused_source         nothing that the strategy looks at knows of it
====================  ================================================================================
"""

from __future__ import annotations

CHAINED = "chained"
FROZEN = "frozen"
UNLINKED = "unlinked"
NOT_CHOSEN = "not_chosen"

KEPT = "kept"
BACKPORT = "backport"
REVERSAL = "reversal"
NOT_ANCESTOR = "not_ancestor"
NO_SHARED_AREA = "no_shared_area"
BELOW_FLOOR = "below_floor"
STAGE_DROPPED = "stage_dropped"
UNUSED_SOURCE = "unused_source"

RETIRED = "retired"
