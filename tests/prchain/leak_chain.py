"""A chain of two stages for the tests of the leak check, and what the check says of a text for it."""

from __future__ import annotations

from prchain.core.code.needs import Need
from prchain.core.git.patches import FilePatch, Hunk
from prchain.core.leaks import Finding, Kind, check, stage_facts

SHAS = ("a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "0f1e2d3c4b5a69788796a5b4c3d2e1f000112233")
BASE = {"Pool", "connect", "PoolError", "timeout", "drain_all", "MaxIdle"}
PATHS = ["src/net/pool.py", "src/net/retry.py", "src/net/core_loop.py", "tests/test_pool.py", "README.md"]

FILLER = (
    "Connections that fail for a moment should be tried again before the caller hears of it, because most of these "
    "failures pass. The place to work in is src/net/pool.py, where a connection is opened and where errors are raised. "
)


def patch(path: str, added: str, removed: str = "") -> FilePatch:
    lines = tuple(["-" + line for line in removed.splitlines()] + ["+" + line for line in added.splitlines()])
    return FilePatch(path, hunks=(Hunk(1, 1, 1, 1, "", lines),))


FIRST = stage_facts(
    41,
    SHAS[:1],
    [
        patch(
            "src/net/pool.py",
            """
class Pool:
    # Wait a little longer after every failure in a row so that the server recovers.
    def connect(self, max_retries=3, linger=0, max_idle=1):
        delay_factor = compute_backoff(self.attempts_made, "exponential/jitter")
        if max_retries < 0:
            raise PoolError("cannot retry a negative number of times")
        lazyconn = LazyConnection(delay_factor)
""",
            "    def connect(self):",
        )
    ],
    [
        patch(
            "tests/test_pool.py",
            'def test_gives_up_after_limit():\n    assert Pool(handshake_limit=2).connect() == "ok"',
        )
    ],
    BASE,
    [Need("name", "handshake_limit")],
)
SECOND = stage_facts(
    57, SHAS[1:], [patch("src/net/circuit.py", "class CircuitBreaker:\n    def trip_now(self): ...")], [], BASE
)
CHAIN = [FIRST, SECOND]


def found(text: str, position: int = 1, kind: Kind = "query", filler: str = FILLER) -> list[Finding]:
    return check(filler + text, CHAIN, position, kind=kind, paths_at_base=PATHS)


def leaks(text: str, position: int = 1, kind: Kind = "query") -> set[str]:
    return {finding.kind for finding in found(text, position, kind) if finding.severity == "leak"}


def warnings(text: str, position: int = 1, kind: Kind = "query") -> set[str]:
    return {finding.kind for finding in found(text, position, kind) if finding.severity == "warning"}
