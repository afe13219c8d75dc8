"""Canaries of JavaScript that do what a test does which ends when it calls a function that it is given. Pure.

What is false is asked when the canary says that it is done, and told by that call. Nothing is thrown out of a callback:
a runner hears of that at the end of the test's time, or takes it for a failure of the test that runs then. So there are
no copies with another value that is asked for in a callback: of multer's tests some fell that stood behind these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from environments.suites.canaries.blockbodies import BlockForm
from environments.suites.canaries.blockstyle import BlockStyle
from environments.suites.canaries.names import unused_word


@dataclass(frozen=True, slots=True)
class WaitingTests:
    """Tests that end by a call: their `form`, and how one is made false when it ends."""

    form: BlockForm
    render: Callable[[re.Match[str], str, Random, Sequence[str], Sequence[str]], Sequence[str]]
    """From a test's first line, a name, what draws, the test's body and a false assertion, as far in as a body's lines,
    to the canary's lines."""


def _style(found: re.Match[str]) -> BlockStyle:
    return BlockStyle.of(found, BlockStyle.WAITING)


def _render(
    found: re.Match[str], name: str, draw: Random, body: Sequence[str], asserts: Sequence[str]
) -> Sequence[str]:
    style = _style(found)
    head = BlockStyle.WAITING.match(found.string, found.start())
    done = next(filter(None, head.group("callback", "bare", "named"))) if head is not None else "done"
    given, error = (unused_word(found.string, draw) for _ in range(2))
    way = re.sub(rf"\b{done}\b", given, style.way)
    step, end = style.indent, style.end
    lines = [
        f"{step}const {done} = ({error}) => {{",
        f"{step}{step}if ({error}) return {given}({error}){end}",
        f"{step}{step}try {{",
        *(f"{step}{step}{line}" for line in asserts),
        f"{step}{step}{step}{given}(){end}",
        f"{step}{step}}} catch (wrong) {{",
        f"{step}{step}{step}{given}(wrong){end}",
        f"{step}{step}}}",
        f"{step}}}{end}",
        *body,
    ]
    return BlockStyle(style.quote, way, end, step).around(found["function"], name, lines)


JAVASCRIPT_WAITING = WaitingTests(
    BlockForm(
        BlockStyle.WAITING,
        last="})",
        leaves=re.compile(r"\bprocess\b|\.skip\b|\bsnapshot\b|Snapshot|\bthis\b|\byield\b|\bplan\b"),
    ),
    _render,
)
