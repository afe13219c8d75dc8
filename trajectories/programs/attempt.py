"""One attempt of an agent program: it runs beside the sandbox's channel until it ends, or a limit ends it."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic

from environments.sandboxes.relaying import RelayedPort, relayed
from environments.sandboxes.sandbox import Sandbox, SandboxStream
from prchain.core.errors import SandboxError
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, RetellingRecorder
from trajectories.agents.scaffolds.taking_up import ENDS
from trajectories.model import Ending, Entry, EntryKind
from trajectories.outcomes import AGENT_FAILED
from trajectories.programs.branches import branches_beside
from trajectories.programs.calls import AttemptCalls, tools_of
from trajectories.programs.entries import attempt_entries
from trajectories.programs.spec import ProgramSpec, filled
from trajectories.recording.server import serving

SILENCE = 1800.0
"""Seconds that an agent may ask nothing: longer than its tools wait for a command."""

_TICK = 0.2
_KEPT = 4000
_TOLD = 300
"""Characters of what it printed last: kept, and told as the reason."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How an attempt ended, kept in the details of its last entry: a run that is killed after that goes on there."""

    ending: Ending
    reason: str | None = None

    @property
    def result(self) -> tuple[Ending, str | None, str | None]:
        """Ending, reason, and the stage's outcome where there is nothing to judge."""
        return self.ending, self.reason, AGENT_FAILED if self.ending is Ending.FAILED else None


class ProgramAttempt:
    """One attempt, which has not begun."""

    def __init__(
        self,
        program: ProgramSpec,
        folder: str,
        calls: AttemptCalls,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: RetellingRecorder,
    ) -> None:
        self._program = program
        self._folder = folder
        self._calls = calls
        self._sandbox = sandbox
        self._spec = spec
        self._record = record
        self._printed = ""
        self._began = monotonic()

    def run(self) -> AttemptResult:
        """Let it work. Raises `LlmError`, `SandboxError`, `StoreError`."""
        calls = self._calls
        try:
            with (
                serving(calls) as server,
                relayed(self._sandbox.listen(), ("127.0.0.1", server.server_address[1])) as port,
            ):
                end = self._work(port, server.token)
            if calls.failure is not None:
                raise calls.failure
            calls.look()
        except ENDS as error:
            # Nothing can be run any more, and what was asked up to there is kept.
            self._store(replace(ProgramEnd(Ending.FAILED), reason=str(error)), {"ended": error.name})
            raise
        self._store(end)
        ending, reason, outcome = end.result
        return AttemptResult(ending, calls.used, reason, outcome)

    def _work(self, port: RelayedPort, token: str) -> ProgramEnd:
        values = self._values(port.number, token)
        for path, content in self._files(values).items():
            self._sandbox.write(path, content.encode())
        variables = {name: filled(text, values) for name, text in self._program.variables.items()}
        stream = self._sandbox.stream(
            filled(self._program.command, values, for_shell=True),
            environment={**self._spec.environment, "HOME": values["home"], **variables},
        )
        try:
            stream.end_input()
            return self._ended(stream, port)
        finally:
            stream.close()

    def _values(self, port: int, token: str) -> dict[str, str]:
        workdir = self._sandbox.config.workdir
        # The same in each sandbox of the kind, since agents tell their model where they are.
        home = f"/tmp/agent-{hashlib.sha256(workdir.encode()).hexdigest()[:8]}"
        return {
            "base_url": f"http://127.0.0.1:{port}/v1",
            "token": token,
            "model": self._calls.model,
            "folder": self._folder,
            "home": home,
            "task": posixpath.join(home, "task.md"),
            "workdir": workdir,
        }

    def _files(self, values: Mapping[str, str]) -> dict[str, str]:
        own = {filled(path, values): filled(text, values) for path, text in self._program.files.items()}
        return {values["task"]: _asked(self._spec.entries[-1]), **own}

    def _ended(self, stream: SandboxStream, port: RelayedPort) -> ProgramEnd:
        """Wait until it ends, or has to."""
        calls = self._calls
        while True:
            try:
                found = stream.receive(_TICK)
            except EOFError:
                return self._end_of(stream.exit_code())
            if found is not None:
                self._printed = (self._printed + found[1].decode("utf-8", "replace"))[-_KEPT:]
            if calls.failure is not None:
                return ProgramEnd(Ending.FAILED)
            if calls.over is not None:
                return ProgramEnd(calls.over)
            if self._is_late():
                return ProgramEnd(Ending.TIME_LIMIT)
            if not calls.under_way and monotonic() - calls.last_asked > SILENCE:
                return ProgramEnd(Ending.FAILED, f"it asked nothing for {SILENCE / 60:.0f} minutes{self._last_words}")
            if port.broken:
                self._sandbox.leftovers()  # says why, where the sandbox is gone
                raise SandboxError("the relay in the sandbox has ended")

    def _end_of(self, code: int | None) -> ProgramEnd:
        if code is None:
            return ProgramEnd(Ending.FAILED, f"it was killed{self._last_words}")
        if code:
            return ProgramEnd(Ending.FAILED, f"it ended with exit code {code}{self._last_words}")
        if self._calls.last is None:
            return ProgramEnd(Ending.FAILED, f"it ended without a reply of its model{self._last_words}")
        return ProgramEnd(Ending.SUBMITTED)

    @property
    def _last_words(self) -> str:
        words = self._calls.clean(" ".join(self._printed.split()))[-_TOLD:]
        return f"; it last printed: {words}" if words else ""

    def _is_late(self) -> bool:
        spec, took = self._spec, monotonic() - self._began
        pairs = ((spec.stage_used, spec.stage_limits), (spec.chain_used, spec.chain_limits))
        return any(most.seconds is not None and used.seconds + took >= most.seconds for used, most in pairs)

    def _store(self, end: ProgramEnd, details: Mapping[str, str] | None = None) -> None:
        """Write the attempt's entries, all at once: one that a kill cuts off begins again."""
        calls = self._calls
        opening = self._spec.entries[-1]
        if calls.last is None:
            return
        entries = attempt_entries(calls.last, opening, calls.trees)
        known = next((entry.tree for entry in reversed(entries) if entry.tree is not None), None)
        newest = None if details else calls.look()
        kept = {**entries[-1].details, **(details or {}), "program": {"ending": str(end.ending), "reason": end.reason}}
        entries[-1] = replace(entries[-1], details=kept, tree=None if newest == known else newest)
        beside = branches_beside(calls.last, calls.conversations.branches, opening, calls.clean)
        self._record.retell(entries, tools_of(calls.last), branches=beside)


def _asked(opening: Entry) -> str:
    return str(opening.details.get("asked", opening.content))


def stored_end(last: Entry) -> ProgramEnd | None:
    """How the attempt ended whose entries end with this one; None where it has not begun."""
    if last.kind is EntryKind.QUERY:
        return None
    found = last.details.get("program") or {}
    return ProgramEnd(Ending(found["ending"]), found["reason"]) if found else None
