"""The sandbox in which a graph is made: S_t, ready to run, with a snapshot that every action begins from."""

from __future__ import annotations

from contextlib import ExitStack
from hashlib import sha256
from types import TracebackType
from typing import Self

from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import SandboxLimit, SandboxLost
from trajectories.curation.graphs.edits import FileContents
from trajectories.curation.graphs.nodes import Action
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.replay import NO_FILES, Replay, Replayer
from trajectories.rollouts.chain_context import StageWorkplace

_MOST_LOSSES = 3
"""After so many sandboxes lost in a row under the same action, the action is what ends them."""


class Bench:
    """A context manager. Its sandboxes are of `workplace` and hold the tree `start`, which is S_t; where one has ended,
    the next one is made."""

    def __init__(self, workplace: StageWorkplace, start: str, query: str, options: GraphOptions) -> None:
        self._workplace = workplace
        self._start = start
        self._query = query
        self._options = options
        self._replayer: Replayer | None = None
        self._replays: dict[str, Replay] = {}
        """What actions gave, by action and files: the rules of the set ask for the same more than once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the sandbox. Never fails."""
        if self._replayer is not None:
            self._replayer.sandbox.close()
        self._replayer = None

    @property
    def replayer(self) -> Replayer:
        """Runs actions on S_t. Raises `SandboxError`, `StateError`."""
        if self._replayer is None:
            options = self._options
            with ExitStack() as undo:
                sandbox = self._workplace.sandbox()
                undo.callback(sandbox.close)
                sandbox.start()
                self._workplace.place(sandbox, self._start)
                self._replayer = Replayer(
                    sandbox, sandbox.snapshot(), self._query, options.command_timeout, options.observation_chars
                )
                undo.pop_all()
        return self._replayer

    def fresh(self) -> Sandbox:
        """The sandbox, as S_t is, for an agent to work in. Raises `SandboxError`, `StateError`."""
        replayer = self._ready()
        replayer.used()
        return replayer.sandbox

    def _ready(self) -> Replayer:
        """What runs actions, with a sandbox that is as S_t is: a new one where the last one has ended since."""
        try:
            self.replayer.reset()
        except (SandboxLimit, SandboxLost):
            if self._replayer is None:  # it was not to be had at all, which is no action's fault
                raise
            self.close()
        return self.replayer

    def observe(self, action: Action, files: FileContents = NO_FILES) -> Replay:
        """See `Replayer.observe`. An action is run once on the same files. A sandbox that it ends is its fault: at once
        where a limit was reached, else after the third in a row; one that cannot be made is nobody's. Raises
        `SandboxError`, `StateError`."""
        key = _key(action, files)
        if key not in self._replays:
            self._replays[key] = self._run(action, files)
        return self._replays[key]

    def _run(self, action: Action, files: FileContents) -> Replay:
        losses = 0
        while True:
            replayer = self._ready()
            try:
                return replayer.observe(action, files)
            except SandboxLimit as error:
                self.close()
                return Replay("", f"it ends the sandbox: {error}")
            except SandboxLost as error:
                self.close()
                losses += 1
                if losses == _MOST_LOSSES:
                    return Replay("", f"it ends every sandbox: {error}")


def _key(action: Action, files: FileContents) -> str:
    digest = sha256(action.to_json().encode("utf-8", "surrogatepass"))
    for path, content in sorted(files.items()):
        state = "absent" if content is None else sha256(content).hexdigest()
        digest.update(f"\0{path}\0{state}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
