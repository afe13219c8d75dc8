"""The scaffold of an agent program: a session for the chain, or one a stage; each of its turns ends an attempt."""

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
from trajectories.programs.guidance import ProgramObservers
from trajectories.programs.sessions import said_in_session, session_of
from trajectories.programs.spec import ProgramSpec

_VERSION = "1"
"""Of what we make of its calls."""


class ProgramScaffold:
    """See `trajectories.agents.scaffolds.scaffold.Scaffold`. `laid` is where its program lies."""

    def __init__(
        self, program: ProgramSpec, options: RolloutOptions, laid: LaidFolder, secrets: tuple[str, ...] = ()
    ) -> None:
        check_options(program.name, options, resumes=program.next is not None)
        self.name = program.name
        self.version = f"{_VERSION}/{program.version}"
        self.tools: Sequence[Mapping[str, Any]] = ()
        self.laid = (laid,)
        self._program = program
        self._settings = LoopSettings.of(options)
        self._goes_on = goes_on(options)
        self._kinds = (EntryKind.QUERY, EntryKind.COMMENT) if options.refinements else (EntryKind.QUERY,)
        self._secrets = secrets

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `Scaffold.prompts`: what tells it its task; its own are none of ours."""
        prompts = [load_prompt("trajectories.agents.scaffolds", str(kind)) for kind in self._kinds]
        return {prompt.name: prompt.hash for prompt in prompts}

    def decided_by(self, chain_id: str) -> Mapping[str, Any]:
        """See `Scaffold.decided_by`."""
        program = self._program
        return {"program": program.digest, **({"next": program.next_digest} if self._goes_on else {})}

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
        if last.kind not in {EntryKind.QUERY, EntryKind.COMMENT}:
            raise UsageError(f"{self.name} begins anew with each attempt: it cannot be branched off within one")
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
            ProgramObservers(observers),
            said_in_session(spec.entries[:-1]) if self._goes_on and session_of(spec.entries[:-1]) else (),
        )
        return ProgramAttempt(self._program, self.laid[0].path, calls, sandbox, spec, record, keeps=self._goes_on).run()


def goes_on(options: RolloutOptions) -> bool:
    """Whether a session of an agent may have more than one turn."""
    return options.context == "chain" or options.refinements > 0


def check_options(name: str, options: RolloutOptions, *, resumes: bool) -> None:
    """Raises `UsageError`, in one line, for options that an agent program cannot have; `resumes` says whether it can go
    on with a session."""
    wanted = []
    if options.context != "stage":
        wanted.append("--agent context=stage")
    if options.refinements:
        wanted.append("--refinements 0")
    if wanted and not resumes:
        raise UsageError(f"{name} cannot go on with a session, so a stage is one: add {' '.join(wanted)}")
    if options.tools != "full" or options.calls != "native" or options.shell != "plain":
        raise UsageError(f"{name} has tools of its own: leave --tools and --agent calls and shell out")
    if not options.track_steps:
        raise UsageError(f"{name} needs its trees: leave --sandbox track=false out")
