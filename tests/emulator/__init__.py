"""A GitHub to test against: generated worlds served over HTTP, with GitHub's limits, shapes and failures.

    world = generate_world(seed=1, pulls=60)
    with Emulator(world, faults=[Fault(Kind.BAD_GATEWAY_502, operation="Sweep", nth=3)]) as github:
        ...  # github.api_url, token "test-token"; github.clock; github.log

The names below are public. The GraphQL schema is schema.graphql; sizes.toml has the sizes of generated pull requests.
"""

from tests.emulator.clock import VirtualClock
from tests.emulator.faults import WITHHELD, Call, Fault, Kind
from tests.emulator.generate import generate_world
from tests.emulator.server import Emulator, Exchange
from tests.emulator.sizes import Classes, Sizes
from tests.emulator.world import World

__all__ = [
    "WITHHELD",
    "Call",
    "Classes",
    "Emulator",
    "Exchange",
    "Fault",
    "Kind",
    "Sizes",
    "VirtualClock",
    "World",
    "generate_world",
]
