"""The scaffold of an agent program: one session a stage, whose end is the work's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from environments.sandboxes.sandbox import LaidFolder, Sandbox
from prchain.core.errors import UsageError
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.prompts import load_prompt
from prchain.core.secrets.scrub import redact_mined
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Recorder, RetellingRecorder
from trajectories.agents.scaffolds.taking_up import end_of
from trajectories.model import NOTHING_USED, EntryKind
from trajectories.options import RolloutOptions
from trajectories.programs.attempt import ProgramAttempt, stored_end
from trajectories.programs.calls import AttemptCalls
from trajectories.programs.spec import ProgramSpec

_VERSION = "1"
"""Of what we make of its calls."""


class ProgramScaffold:
    """See `trajectories.agents.scaffolds.scaffold.Scaffold`. `laid` is where its program lies."""

    def __init__(
        self, program: ProgramSpec, options: RolloutOptions, laid: LaidFolder, secrets: tuple[str, ...] = ()
    ) -> None:
        check_options(program.name, options)
        self.name = program.name
        self.version = f"{_VERSION}/{program.version}"
        self.tools: Sequence[Mapping[str, Any]] = ()
        self.laid = (laid,)
        self._program = program
        self._settings = LoopSettings.of(options)
        self._secrets = secrets

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `Scaffold.prompts`: what tells it its task; its own are none of ours."""
        prompt = load_prompt("trajectories.agents.scaffolds", str(EntryKind.QUERY))
        return {prompt.name: prompt.hash}

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """See `Scaffold.decided_by`."""
        return {"program": self._program.digest}

    def opening(self, kind: EntryKind, variables: Mapping[str, Any]) -> str:
        """See `Scaffold.opening`; it has a system message of its own, which is known once it asks."""
        if kind is EntryKind.SYSTEM:
            return ""
        return load_prompt("trajectories.agents.scaffolds", str(kind)).render(**variables)[0].content

    def attempt(
        self,
        gateway: Gateway,
        sandbox: Sandbox,
        spec: AttemptSpec,
        record: Recorder,
        observers: Sequence[Observer] = (),
    ) -> AttemptResult:
        """See `Scaffold.attempt`."""
        last = spec.entries[-1]
        if (end := stored_end(last)) is not None:
            if (ended := end_of([last])) is not None:
                raise ended
            ending, reason, outcome = end.result
            return AttemptResult(ending, NOTHING_USED, reason, outcome)
        if last.kind is not EntryKind.QUERY:
            raise UsageError(f"{self.name} begins anew with each stage: it cannot be branched off within one")
        if not isinstance(record, RetellingRecorder):
            raise UsageError(f"{self.name} is an agent program, which only rollouts can run")
        tell = spec.stage.tell if spec.stage is not None else lambda words: None
        calls = AttemptCalls(
            gateway,
            self._settings,
            spec,
            record.tree,
            partial(redact_mined, secrets=self._secrets),
            self._secrets,
            self._program.volatile,
            tell,
        )
        return ProgramAttempt(self._program, self.laid[0].path, calls, sandbox, spec, record).run()


def check_options(name: str, options: RolloutOptions) -> None:
    """Raises `UsageError`, in one line, for options that an agent program cannot have."""
    wanted = []
    if options.context != "stage":
        wanted.append("--agent context=stage")
    if options.refinements:
        wanted.append("--refinements 0")
    if wanted:
        raise UsageError(f"{name} has one session a stage, and no comment reaches it: add {' '.join(wanted)}")
    if options.observers:
        raise UsageError(f"no observer can speak to {name}: leave {', '.join(options.observers)} out")
    if options.tools != "full" or options.calls != "native":
        raise UsageError(f"{name} has tools of its own: leave --tools and --agent calls out")
    if not options.track_steps:
        raise UsageError(f"{name} needs its trees: leave --sandbox track=false out")
