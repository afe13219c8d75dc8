"""The environment that mini-swe-agent gets: our sandbox, which runs the commands of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

from environments.sandboxes.sandbox import ExecResult
from prchain.core.errors import SandboxLimit
from prchain.core.waiting import waiting_for
from trajectories.agents.scaffolds.taking_up import ended_words
from trajectories.agents.tools.bash import QUIET
from trajectories.agents.tools.observations import bytes_for, exception_words, is_submission
from trajectories.agents.tools.tool import Workspace

SYSTEM = {"system": "Linux", "release": "", "version": "", "machine": ""}
"""Template variables on the system. mini-swe-agent asks the host, but commands do not run there, and its environment on
the host gives templates all of the host's variables, keys among them."""

_NOT_RUN = {"output": "", "returncode": -1, "exception_info": "action was not executed"}
"""mini-swe-agent's own words for a command that it did not run."""


class ExecutedCommand(NamedTuple):
    """A command that mini-swe-agent gave."""

    result: ExecResult | None
    """None where it was not run: after a submission, after the sandbox ended, or without time left."""
    characters: int
    """Length of its output, with the part that the sandbox left out."""
    seconds: float
    ended: SandboxLimit | None = None
    """What ended the sandbox while it ran."""


class Shell:
    """Runs the commands of one attempt, each in a new shell.

    Unlike mini-swe-agent's own environments it does not raise at a submission, nor where the sandbox is ended: the
    step would be lost, and its calls would have no answers. `is_late` says after a command whether there is no time
    left for another.
    """

    def __init__(self, workspace: Workspace, variables: Mapping[str, str], is_late: Callable[[], bool]) -> None:
        self.config = SimpleNamespace()
        self.executed: list[ExecutedCommand] = []
        """The commands of the step."""
        self._step_over = False
        self._is_late = is_late
        self._workspace = workspace
        self._variables = {**QUIET, **variables, **workspace.environment}

    def begin(self) -> None:
        """Forget the last step."""
        self.executed, self._step_over = [], False

    @property
    def ended(self) -> SandboxLimit | None:
        """What ended the sandbox in this step, if anything did."""
        return next((command.ended for command in self.executed if command.ended is not None), None)

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        """Run an action's command, in mini-swe-agent's form. Raises `SandboxError`, but for limits (`ended`)."""
        if self._step_over:
            self.executed.append(ExecutedCommand(None, 0, 0.0))
            return dict(_NOT_RUN)
        workspace = self._workspace
        start_time = perf_counter()
        try:
            with waiting_for("the agent's command"):
                result = workspace.sandbox.exec(
                    action["command"],
                    timeout=workspace.timeout,
                    environment=self._variables,
                    output_limit=bytes_for(workspace.most),
                    pipestatus=True,
                )
        except SandboxLimit as error:
            self.executed.append(ExecutedCommand(None, 0, perf_counter() - start_time, error))
            self._step_over = True
            return {"output": "", "returncode": -1, "exception_info": ended_words(error)}
        output = _text(result)
        self.executed.append(ExecutedCommand(result, len(output), perf_counter() - start_time))
        self._step_over = is_submission(result) or self._is_late()
        code = -1 if result.exit_code is None else result.exit_code
        return {"output": output, "returncode": code, "exception_info": exception_words(result, workspace.timeout)}

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """Template variables on the environment."""
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
