"""How much of its prompts an endpoint's prefix cache can serve, purpose by purpose.

The demo's repository is mined, its tasks written and rolled out by the commands that users type, against an endpoint
on this machine that answers from the demo's script. What arrives there is compared, as one text (tools, then messages),
with every request before it: what both begin with need not be read again. That is the cache of a model that serves all
purposes. An endpoint's cache may hold less, or for a shorter time; it never serves more.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from prchain.cli import run as run_command
from prchain.core.llm.model import Message, Request, ToolCall
from prchain.core.llm.scripted import ScriptedModel
from prchain.core.llm.wire import body_of
from prchain.core.settings import FILE, Settings
from prchain.demo.backend import choose
from prchain.demo.folder import LIBRARY, LIST, SCRIPT, claim, prepare
from prchain.demo.library import build
from research.bench.measures import Measure
from research.bench.rollout_bench import STEPS, scripted_attempt
from tests.endpoint import Answer, Call, FakeEndpoint, Part, completion
from tests.trajectories.demoworld import alone_in

PURPOSES = ("plan", "overview", "query", "agent", "judge", "prefix")
"""Each is asked as a model of that name, so that the endpoint knows for what it is asked."""

AGENT_GOAL, LONG_GOAL, RETRY_GOAL = 99.9, 97.0, 70.0
"""Percent."""

_BLOCK = 64
"""Characters: 16 tokens, the block by which vLLM keeps and finds prefixes."""

_COMMANDS: Sequence[Sequence[str]] = (
    ("mine", LIST, "--source", "git"),
    ("chains", "build", "--strategy", "reference"),
    ("tasks", "build", "--workers", "1"),
    ("rollouts", "run", "--workers", "1"),
)

_STAGE = re.compile(r"<<<reference ([0-9a-f]{16})\\n")
"""In a request for a verdict, the code of what attempts at a stage share."""


class Sent(NamedTuple):
    """A request as it arrived."""

    purpose: str
    opening: str
    """The first message of a user, which begins a conversation."""
    prompt: str
    """The whole text."""
    served: int
    """The characters that a cache can serve."""


def run(*, steps: int = STEPS) -> list[Measure]:
    """Measure. `steps` are those of the long attempt."""
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        sent = served(demo_requests(Path(folder) / "demo"))
        (long_folder := Path(folder) / "long").mkdir()
        attempt = scripted_attempt(long_folder, steps)
    long = served(("agent", body_of(request, attempt.name)) for request in attempt.asked)
    return [*_demo_measures(sent), *_long_measures(long)]


def _demo_measures(sent: Sequence[Sent]) -> list[Measure]:
    bench = f"what a prefix cache can serve of {len(sent)} prompts of the demo"
    measures = []
    for purpose in PURPOSES:
        own = [request for request in sent if request.purpose == purpose]
        if not own:
            continue
        measures.append(_share(bench, purpose, own))
        if purpose == "agent":
            measures.append(_repeated(bench, own))
        if purpose == "judge":
            measures.append(_share(bench, "judge, attempts after the first", retries(own), RETRY_GOAL))
    return measures


def _long_measures(sent: Sequence[Sent]) -> list[Measure]:
    bench = f"the same of an attempt of {len(sent)} steps"
    return [_share(bench, "agent", sent, LONG_GOAL)]


def _share(bench: str, name: str, sent: Sequence[Sent], goal: float | None = None) -> Measure:
    size = sum(len(request.prompt) for request in sent)
    share = 100 * sum(request.served for request in sent) / size if size else 0.0
    note = f"{len(sent)} calls of {size // max(len(sent), 1):,} characters"
    return Measure(bench, name, share, "%", goal, at_least=True, note=note)


def _repeated(bench: str, sent: Sequence[Sent]) -> Measure:
    """How much of the prompt before it each prompt of a conversation begins with."""
    pairs = [(earlier, later) for earlier, later in pairwise(sent) if later.opening == earlier.opening]
    repeated = sum(common(earlier.prompt, later.prompt) for earlier, later in pairs)
    share = 100 * repeated / sum(len(earlier.prompt) for earlier, _ in pairs)
    return Measure(bench, "agent, of the prompt before", share, "%", AGENT_GOAL, at_least=True)


def retries(sent: Iterable[Sent]) -> list[Sent]:
    """The requests for a verdict on an attempt at a stage at which another was judged before."""
    seen: set[str] = set()
    found = []
    for request in sent:
        if match := _STAGE.search(request.prompt):
            found += [request] if match[1] in seen else []
            seen.add(match[1])
    return found


def served(requests: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Sent]:
    """What a cache that forgets nothing can serve of each request, from purposes and bodies in order."""
    before: list[str] = []
    sent = []
    for purpose, body in requests:
        prompt = prompt_of(body)
        longest = max((common(prompt, earlier) for earlier in before), default=0)
        opening = next(str(message["content"]) for message in body["messages"] if message["role"] == "user")
        sent.append(Sent(purpose, opening, prompt, longest // _BLOCK * _BLOCK))
        before.append(prompt)
    return sent


def prompt_of(body: Mapping[str, Any]) -> str:
    """The text that a model reads of a request: tools, which chat templates put first, and messages."""
    parts = [*body.get("tools", ()), *body["messages"]]
    return "\n".join(json.dumps(part, ensure_ascii=False) for part in parts)


def common(one: str, other: str) -> int:
    """How many characters both begin with."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


# ---- the demo's commands against an endpoint


def demo_requests(folder: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Purpose and body of each request of the demo's tasks and rollouts, as they arrived at an endpoint.

    Raises `RuntimeError` where a command fails.
    """
    folder.mkdir()
    with alone_in(folder):
        backend = choose(Settings(), "unsafe-local")
        claim(folder)
        build(folder / LIBRARY)
        prepare(folder, backend, Settings(), None)
        with FakeEndpoint(_answering(ScriptedModel.load(folder / SCRIPT))) as endpoint:
            _point_to(folder / FILE, endpoint.url)
            for command in _COMMANDS:
                _run([*command, *(backend.flags if command[0] == "rollouts" else ())])
    return [(call.body["model"], call.body) for call in endpoint.calls]


def _run(command: list[str]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run_command(command)
    if code:
        raise RuntimeError(f"prchain {' '.join(command)} ended with {code}: {printed.getvalue()[-300:]}")


def _point_to(settings: Path, url: str) -> None:
    """Have the demo's settings name the endpoint in place of the script."""
    lines = [line for line in settings.read_text(encoding="utf-8").split("\n") if not line.startswith("llm_script")]
    lines += [f'llm_base_url = "{url}"', 'llm_model = "any"']
    lines += [f'[purposes.{purpose}]\nmodel = "{purpose}"' for purpose in PURPOSES]
    settings.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _answering(script: ScriptedModel) -> Part:
    """A part of an endpoint that answers from the script."""

    def part(call: Call) -> Answer:
        messages = tuple(_messages(call.body["messages"]))
        reply = script.complete(Request(messages, 1, purpose=call.body["model"]))
        calls = [
            {"id": made.id, "type": "function", "function": {"name": made.name, "arguments": made.arguments}}
            for made in reply.tool_calls
        ]
        more: dict[str, Any] = {"tool_calls": calls} if calls else {}
        return completion(reply.text, finish_reason=reply.finish, **more)(call)

    return part


def _messages(wire: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    for message in wire:
        calls = [
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        ]
        yield Message(message["role"], message.get("content") or "", tuple(calls), message.get("tool_call_id"))
