"""One attempt of an agent program: it runs beside the sandbox's channel until it ends, or a limit ends it."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import NoReturn

from environments.sandboxes.relaying import RelayedPort, relayed
from environments.sandboxes.sandbox import Sandbox, SandboxStream
from prchain.core.errors import SandboxError
from prchain.core.git.trees import TreeStore
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, RetellingRecorder
from trajectories.agents.scaffolds.taking_up import ENDS
from trajectories.model import Ending, Entry, EntryKind
from trajectories.outcomes import AGENT_FAILED
from trajectories.programs.branches import branches_beside
from trajectories.programs.calls import AttemptCalls, tools_of
from trajectories.programs.entries import attempt_entries
from trajectories.programs.sessions import (
    LARGEST,
    NEW,
    RESUMED,
    SessionTooLarge,
    keep_session,
    lay_session,
    session_of,
)
from trajectories.programs.spec import ProgramSpec, filled
from trajectories.recording.server import serving

SILENCE = 1800.0
"""Seconds that an agent may ask nothing: longer than its tools wait for a command."""

_SESSION = "/session"
"""Below its home."""

_TICK = 0.2
_LAG = 1.0
"""Seconds after which a relay that ended is known to have: an agent that fails may know before us."""

_KEPT = 4000
_TOLD = 300
"""Characters of what it printed last: kept, and told as the reason."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How an attempt ended, kept in the details of its last entry: a run that is killed after that goes on there."""

    ending: Ending
    reason: str | None = None
    session: str | None = None
    """The session that the agent left, where one may go on with it (`trajectories.programs.sessions`)."""

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
        *,
        keeps: bool,
    ) -> None:
        """`keeps` says whether another turn of the session may follow."""
        self._program = program
        self._folder = folder
        self._calls = calls
        self._sandbox = sandbox
        self._spec = spec
        self._record = record
        self._keeps = keeps
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
            end = self._with_session(end)
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
        command = self._program.command
        if self._session is not None and self._program.next is not None:
            command = self._program.next.command
            lay_session(self._sandbox, values["session"], self._trees, self._session)
        variables = {name: filled(text, values) for name, text in self._program.variables.items()}
        stream = self._sandbox.stream(
            filled(command, values, for_shell=True),
            environment={**self._spec.environment, "HOME": values["home"], **variables},
        )
        try:
            stream.end_input()
            return self._ended(stream, port)
        finally:
            stream.close()

    @property
    def _session(self) -> str | None:
        """What it goes on with."""
        return session_of(self._spec.entries[:-1]) if self._keeps else None

    @property
    def _trees(self) -> TreeStore:
        assert self._spec.stage is not None  # `check_options`: its trees are tracked
        return self._spec.stage.trees

    def _with_session(self, end: ProgramEnd) -> ProgramEnd:
        """The end with the session that the agent left; its failure, where that is too large."""
        if not self._keeps or self._calls.last is None:
            return end
        try:
            session = keep_session(self._sandbox, self._home + _SESSION, self._trees)
        except SessionTooLarge:
            return ProgramEnd(Ending.FAILED, f"its session has more than {LARGEST >> 20} MiB: it cannot go on with it")
        return replace(end, session=session)

    @property
    def _home(self) -> str:
        # The same in each sandbox of the kind, since agents tell their model where they are.
        return f"/tmp/agent-{hashlib.sha256(self._sandbox.config.workdir.encode()).hexdigest()[:8]}"

    def _values(self, port: int, token: str) -> dict[str, str]:
        home = self._home
        return {
            "base_url": f"http://127.0.0.1:{port}/v1",
            "token": token,
            "model": self._calls.model,
            "folder": self._folder,
            "home": home,
            "session": home + _SESSION,
            "task": posixpath.join(home, "task.md"),
            "workdir": self._sandbox.config.workdir,
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
                end = self._end_of(stream.exit_code())
                if end.ending is Ending.FAILED and port.breaks(_LAG):
                    self._lost()
                return end
            if found is not None:
                self._printed = (self._printed + found[1].decode("utf-8", "replace"))[-_KEPT:]
            if calls.failure is not None:
                return ProgramEnd(Ending.FAILED)
            if calls.over is not None:
                return ProgramEnd(calls.over, calls.reason)
            if self._is_late():
                return ProgramEnd(Ending.TIME_LIMIT)
            if not calls.under_way and monotonic() - calls.last_asked > SILENCE:
                return ProgramEnd(Ending.FAILED, f"it asked nothing for {SILENCE / 60:.0f} minutes{self._last_words}")
            if port.broken:
                self._lost()

    def _lost(self) -> NoReturn:
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
        session = NEW if self._session is None else RESUMED
        opening = replace(opening, details={**opening.details, "session": session})
        entries = attempt_entries(calls.last, opening, calls.noticed, calls.conversations.earlier)
        known = next((entry.tree for entry in reversed(entries) if entry.tree is not None), None)
        newest = None if details else calls.look()
        program = {"ending": str(end.ending), "reason": end.reason} | ({"session": end.session} if end.session else {})
        kept = {**entries[-1].details, **(details or {}), "program": program}
        entries[-1] = replace(entries[-1], details=kept, tree=None if newest == known else newest)
        beside = branches_beside(calls.last, calls.conversations.branches, opening, calls.clean)
        records = calls.observers.records(calls.last_request)
        self._record.retell(entries, tools_of(calls.last), records, branches=beside)


def _asked(opening: Entry) -> str:
    return str(opening.details.get("asked", opening.content))


def stored_end(last: Entry) -> ProgramEnd | None:
    """How the attempt ended whose entries end with this one; None where it has not begun."""
    if last.kind is EntryKind.QUERY:
        return None
    found = last.details.get("program") or {}
    return ProgramEnd(Ending(found["ending"]), found["reason"], found.get("session")) if found else None
