"""What became of a landed pull request, and of an edge, when chains were chosen: exactly one outcome each.

Of a pull request, per strategy, what `chains.meanings` says.

Of an edge:

====================  ================================================================================
kept                  chains may use it
backport              it says that the source repeats the target on another branch
reversal              the source takes the target back, or puts it in again
not_ancestor          the target had not landed on what the source landed on
no_shared_area        the two change no common file or folder, and the source uses no name of the target's
below_floor           the signs speak too little for it
too_far_apart         more days lie between the two landings than a chain may last
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
TOO_FAR_APART = "too_far_apart"
STAGE_DROPPED = "stage_dropped"
UNUSED_SOURCE = "unused_source"

RETIRED = "retired"
