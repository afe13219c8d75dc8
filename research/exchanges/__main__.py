"""What each agent program that ships really sends at its version: run and compared with its golden file, or written.

    python -m research.exchanges                    # all that ship, compared; exit code 1 where one differs
    python -m research.exchanges opencode --write   # its file anew, after its version has changed

The agent runs unchanged in a container of the base image, without network, in a folder with one file. Its relay, its
recorder and its replies are those of a rollout; the model is a script (`research.exchanges.script`). It has to be
installed: `prchain rollouts install NAME`. What is kept is masked (`research.exchanges.masking`); what the agent is
known to change, such as the date, does not count where files are compared.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click

from environments.backends import BACKENDS
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.sandbox import WORKDIR, LaidFolder, SandboxConfig
from prchain.core.console.terminal import say
from prchain.core.errors import UsageError
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request
from prchain.core.settings import Settings
from research.exchanges.masking import Masking
from research.exchanges.script import CONTENT, FILE, OWN, SHELLS, TASK, answer
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.model import Ending, Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.programs.attempt import ProgramAttempt
from trajectories.programs.calls import AttemptCalls
from trajectories.programs.choice import named_program
from trajectories.programs.spec import Programs, ProgramSpec

FOLDER = Path(__file__).parents[2] / "tests" / "trajectories" / "data" / "exchanges"

_OPENING = Entry(0, 1, 1, 0, EntryKind.QUERY, "user", TASK)
_TREE = f"git init -q . && git add {FILE} && git -c user.name=a -c user.email=a@b commit -qm begun"


@dataclass
class _Unkept:
    """A recorder that keeps nothing: the model has seen it all."""

    told: list[Entry] = field(default_factory=list)

    def add(self, entries: Sequence[Entry], records: Sequence[Any] = ()) -> None:
        """See `Recorder.add`."""

    def tree(self) -> str | None:
        """See `Recorder.tree`."""

    def restored(self, tree: str) -> None:
        """See `Recorder.restored`."""

    def retell(
        self, entries: Sequence[Entry], tools: Sequence[Mapping[str, Any]], records: Any = (), *, branches: Any = ()
    ) -> None:
        """See `RetellingRecorder.retell`."""
        self.told = list(entries)


def asked_by(program: ProgramSpec, settings: Settings) -> list[tuple[Mapping[str, Any], Reply]]:
    """Run an agent; returns its requests, as they came, with their replies. Raises `UsageError` where it is not
    installed or does not end well, and what an engine raises."""
    backend = BACKENDS["docker"].of(settings)
    if not backend.has_program(program.program, settings):
        raise UsageError(f"{program.name} is not installed; run `prchain rollouts install {program.name}`")
    kept: list[tuple[Mapping[str, Any], Reply]] = []

    def answers(request: Request) -> Reply:
        assert request.body is not None
        reply = answer(request)
        kept.append((request.body, reply))
        return reply

    laid = backend.laid_program(program.program, settings.data_dir)
    with _sandbox(settings, laid) as sandbox:
        sandbox.write(f"{WORKDIR}/{FILE}", CONTENT.encode())
        begun = sandbox.exec(_TREE)
        assert begun.exit_code == 0, begun.output
        spec = AttemptSpec("exchanges", 0, 1, 1, (_OPENING,))
        gateway = Gateway(MemoryLedger(), Route(FakeModel(answers, "big")))
        calls = AttemptCalls(gateway, LoopSettings.of(RolloutOptions()), spec, lambda: None, str)
        result = ProgramAttempt(program, laid.path, calls, sandbox, spec, _Unkept(), keeps=False).run()
        mended = sandbox.read(f"{WORKDIR}/{FILE}").decode()
    if result.ending is not Ending.SUBMITTED or mended != CONTENT.replace("-", "+"):
        raise UsageError(f"{program.name} ended with {result.ending}: {result.reason}; {FILE} holds {mended!r}")
    return kept


def _sandbox(settings: Settings, laid: LaidFolder) -> DockerSandbox:
    image = settings.environments_base_image
    config = SandboxConfig(image, user="agent", laid=(laid,))
    return DockerSandbox(config, engine=settings.environments_engine, relay_image=lambda _: image)


def masked(program: ProgramSpec, kept: Sequence[tuple[Mapping[str, Any], Reply]]) -> list[dict[str, Any]]:
    """The rows of the golden file; what was asked beside the conversation, without tools, stands first."""
    ordered = sorted(kept, key=lambda pair: bool(pair[0].get("tools")))
    masking = Masking(OWN, program.volatile, frozenset(SHELLS))
    return [{"request": masking.request(body), "reply": json.loads(reply.to_json())} for body, reply in ordered]


def without_volatile(rows: Any, program: ProgramSpec) -> Any:
    """What does not change from day to day."""
    pattern = re.compile("|".join(f"(?:{it})" for it in program.volatile) or "(?!)")
    if isinstance(rows, str):
        return pattern.sub("*", rows)
    if isinstance(rows, dict):
        return {name: without_volatile(item, program) for name, item in rows.items()}
    return [*map(partial(without_volatile, program=program), rows)] if isinstance(rows, list) else rows


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Write the files anew.")
def main(names: Sequence[str], write: bool) -> None:
    """Run the agents."""
    settings = Settings()
    differ = False
    for name in names or Programs():
        program = named_program(name, settings)
        rows = masked(program, asked_by(program, settings))
        file = FOLDER / f"{name}-{program.version}.json"
        if write:
            file.write_text(json.dumps(rows, indent=1) + "\n")
            say(f"{file.name}: {len(rows)} exchanges, {file.stat().st_size / 1000:.1f} kB")
            continue
        stored = json.loads(file.read_text()) if file.exists() else None
        same = without_volatile(stored, program) == without_volatile(rows, program)
        differ |= not same
        say(f"{file.name}: {len(rows)} exchanges, {'as kept' if same else 'NOT as kept'}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
