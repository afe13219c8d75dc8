"""What mini-swe-agent takes for its environment: our sandbox, which runs what its calls ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

from environments.sandboxes.sandbox import ExecResult
from prchain.errors import SandboxLimit
from trajectories.scaffolds.observations import bytes_for, exception_words, is_submission
from trajectories.scaffolds.taking_up import ended_words
from trajectories.scaffolds.tools.bash import QUIET
from trajectories.scaffolds.tools.tool import Workspace

SYSTEM = {"system": "Linux", "release": "", "version": "", "machine": ""}
"""What templates may say of the system. mini-swe-agent asks the host, which is not where the commands run, and its
environment on the host gives templates all of the host's variables, keys among them."""

_NOT_RUN = {"output": "", "returncode": -1, "exception_info": "action was not executed"}
"""mini-swe-agent's own words for a command that it did not run."""


class ExecutedCommand(NamedTuple):
    """A command that mini-swe-agent gave."""

    result: ExecResult | None
    """None where it was not run: the work had been handed in, the sandbox was ended, or there was no time left."""
    characters: int
    """Of its output, with what the sandbox left out."""
    seconds: float
    ended: SandboxLimit | None = None
    """What ended the sandbox while it ran."""


class Shell:
    """Runs the commands of one attempt, each in a new shell.

    It does not raise where the work is handed in, as mini-swe-agent's own environments do, nor where the sandbox is
    ended: what the step did would be lost, and its calls would stay without answers. `is_late` says after a command
    whether there is no time left for another.
    """

    def __init__(self, place: Workspace, variables: Mapping[str, str], is_late: Callable[[], bool]) -> None:
        self.config = SimpleNamespace()
        self.ran: list[ExecutedCommand] = []
        """The commands of the step."""
        self._over = False
        self._is_late = is_late
        self._place = place
        self._variables = {**QUIET, **variables, **place.environment}

    def begin(self) -> None:
        """Forget the last step."""
        self.ran, self._over = [], False

    @property
    def ended(self) -> SandboxLimit | None:
        """What ended the sandbox in this step, if anything did."""
        return next(
            (executed_command.ended for executed_command in self.ran if executed_command.ended is not None), None
        )

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        """Run an action's command, in mini-swe-agent's form. Raises `SandboxError`, but for limits (`ended`)."""
        if self._over:
            self.ran.append(ExecutedCommand(None, 0, 0.0))
            return dict(_NOT_RUN)
        place = self._place
        began = perf_counter()
        try:
            result = place.sandbox.exec(
                action["command"],
                timeout=place.timeout,
                environment=self._variables,
                output_limit=bytes_for(place.most),
            )
        except SandboxLimit as error:
            self.ran.append(ExecutedCommand(None, 0, perf_counter() - began, error))
            self._over = True
            return {"output": "", "returncode": -1, "exception_info": ended_words(error)}
        output = _text(result)
        self.ran.append(ExecutedCommand(result, len(output), perf_counter() - began))
        self._over = is_submission(result) or self._is_late()
        code = -1 if result.exit_code is None else result.exit_code
        return {"output": output, "returncode": code, "exception_info": exception_words(result, place.timeout)}

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """What templates may say of the environment."""
        return dict(SYSTEM)

    def serialize(self) -> dict[str, Any]:
        """Nothing: our rows keep what there is to keep."""
        return {}


class _Shortened(str):
    """An output whose middle the sandbox left out: head and tail can be cut from it, and its length is the whole's."""

    omitted = 0

    def __len__(self) -> int:
        return super().__len__() + self.omitted


def _text(result: ExecResult) -> str:
    if not result.omitted:
        return result.output.decode("utf-8", "replace")
    head, tail = result.output[: result.head], result.output[result.head :]
    text = _Shortened(head.decode("utf-8", "replace") + tail.decode("utf-8", "replace"))
    text.omitted = result.omitted
    return text
