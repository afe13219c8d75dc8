"""The program that takes the place of a run that was cut off, and ends the containers that the run had."""

from __future__ import annotations

import sys
from contextlib import closing

from environments.sandboxes import leftovers
from environments.sandboxes.engine import connect, engine_failures
from environments.sandboxes.own_layers import area, engine_layers
from prchain.core.console.terminal import counted, say
from prchain.core.errors import PrchainError


def main() -> None:
    """End the containers and snapshots of this process, and exit with the code that is given."""
    leftovers.clear_local(own=True)
    try:
        with closing(connect()) as client:
            found = leftovers.find_own(client)
            kept = leftovers.remove(client, found)
            with engine_failures():
                layers_at = engine_layers(client)
            if layers_at is not None:
                leftovers.clear_local(area(layers_at), own=True)
        if ended := sum(item.kind == "container" for item in found if item not in kept):
            say(f"prchain: {counted(ended, 'container')} of the run ended", err=True)
    except PrchainError as error:
        say(f"prchain: what the run left in the engine is there: {error}; see `prchain environments gc`", err=True)
    except KeyboardInterrupt:
        say("prchain: what the run left in the engine is there; see `prchain environments gc`", err=True)
    sys.exit(int(sys.argv[1]))


if __name__ == "__main__":
    main()
