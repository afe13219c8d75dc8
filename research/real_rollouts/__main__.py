"""Roll out one real chain in docker with an agent whose work is known, and check what is carried between stages.

    python -m research.real_rollouts --db proved.db --chain 0f7a --agent reference
    python -m research.real_rollouts --db proved.db --chain 0f7a --agent reference --scaffold opencode

The agent is the usual one; its model is a script that applies patches and submits. With `--scaffold` it is a program of
others, unchanged, which has to be installed (`prchain rollouts install NAME`): its model decides by the last result
(`research.real_rollouts.programs`), and exports for slime and swift must have under loss what was replied, once. That
holds with `reference` and `different` alone, which are accepted. `reference` does what the developers
did: S_t must be B_t, and every stage is accepted by its tests. `different` does the same in other words: S_t must
contain them, and every stage is accepted. `breaking` leaves out a piece of stage 1, damages a statement beside it or
changes a name, so that the tests of stage 1 do not notice: stage 1 is accepted, stage 2 fails. In each case S_t and A_t
must be the trees that were computed before. The chain must be proved (`prchain environments validate`); the rollout is
written to a copy of the database. Exit code 1 where something differs.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import click

from environments.backends import BACKENDS
from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.workplace import Workplace
from prchain.core.console.terminal import say
from prchain.core.git import path_text
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Model
from prchain.core.llm.price import Price
from prchain.core.llm.scripted import ScriptedModel
from prchain.core.settings import Settings
from research.real_rollouts.outcome import faults, lines, read
from research.real_rollouts.programs import StageScript
from research.real_rollouts.script import ensure_task, script
from research.real_rollouts.search import search
from research.real_rollouts.work import StageWork, different, reference
from sql.chosen import find_chain
from sql.ledger import SqlLedger
from sql.store import Store
from tests.models import FakeModel
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.options import Gate, RolloutOptions
from trajectories.programs.choice import make_scaffold, named_program, require_program
from trajectories.rollouts.chain_context import ChainContext
from trajectories.rollouts.rollout import RunContext, roll
from trajectories.task import read_task

OPTIONS = RolloutOptions(gate=Gate.TESTS, refinements=0)


@click.command()
@click.option("--db", type=click.Path(exists=True, dir_okay=False), required=True, help="A SQLite database of prchain.")
@click.option("--chain", required=True, metavar="ID", help="A proved chain, or the beginning of its id.")
@click.option("--agent", type=click.Choice(["reference", "different", "breaking"]), required=True)
@click.option("--scaffold", default="react", show_default=True, metavar="NAME", help="The agent, or a program.")
@click.option("--tries", default=30, show_default=True, help="Pieces that the search for a breaking agent tries.")
@click.option("--keep", type=click.Path(file_okay=False), help="A new folder for the copies; else they go at the end.")
def main(db: str, chain: str, agent: str, scaffold: str, tries: int, keep: str | None) -> None:
    """Roll out one chain with a scripted agent and compare what happened with what must."""
    started = time.monotonic()
    settings = Settings.load()
    options = _options(scaffold, settings)
    with ExitStack() as stack:
        folder = Path(keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="prchain-")))
        folder.mkdir(parents=True, exist_ok=True)
        copy(Path(db), folder / "prchain.db")
        store = stack.enter_context(closing(Store.open(str(folder / "prchain.db"), create=False)))
        provider = stack.enter_context(closing(Provider(settings)))
        with store.reading() as tx:
            chain_id = find_chain(tx, chain)
        ensure_task(store, chain_id)
        chain_context = _chain_context(store, provider, settings, folder, chain_id)
        say(f"{chain_context.task.chain.repository} {chain_id}, {len(chain_context.task.stages)} stages, {agent} agent")
        missed_by: tuple[str, ...] = ()
        match agent:
            case "reference":
                works = reference(chain_context)
            case "different":
                works = different(chain_context)
                _print_difference(chain_context, works)
            case _:
                found = search(chain_context, tries, say)
                if found is None:
                    say(
                        "nothing in stage 1 was found that stage 2 alone misses; with more --tries it looks further",
                        err=True,
                    )
                    sys.exit(1)
                works, missed_by = found.works, found.missed_by
                say(f"found after {found.tried} tries: {found.piece}, missed by {', '.join(missed_by[:3])}")
        backend = BACKENDS[options.backend].of(settings)
        context = RunContext(
            store,
            _gateway(store, ScriptedModel([])),
            provider,
            backend,
            make_scaffold(options, settings, backend),
            options,
            settings.mirrors_dir,
            folder / "data",
        )
        with store.reading() as tx:
            name = context.find(tx, chain_id, 0)[1].id
        stages = StageScript(chain_context.trees, works)
        model = (
            ScriptedModel(script(chain_context.trees, works, name))
            if scaffold in SCAFFOLDS
            else FakeModel(stages.answer, "scripted")
        )
        assert roll(replace(context, gateway=_gateway(store, model)), chain_id, 0) == name
        result = read(store, name)
        bases = chain_context.trees.trees_of([stage.base for stage in chain_context.task.chain.stages])
        for line in lines(result, bases):
            say(line)
        failures = faults(agent, result, works, bases, missed_by)
        failures += _unchanged_words(chain_context, works) if agent == "different" else []
        if scaffold not in SCAFFOLDS and agent != "breaking":
            failures += stages.export_faults(store, folder, say)
    for fault in failures:
        say(f"FAILED {fault}", err=True)
    say(f"{'not ' if failures else ''}as it must be; {time.monotonic() - started:.0f} s in all")
    sys.exit(1 if failures else 0)


def _options(scaffold: str, settings: Settings) -> RolloutOptions:
    """The options with that agent; a program goes on with its session where it can. Raises `UsageError`."""
    if scaffold in SCAFFOLDS:
        return replace(OPTIONS, scaffold=scaffold)
    options = replace(OPTIONS, scaffold=scaffold)
    if named_program(scaffold, settings).next is None:
        options = replace(options, context="stage")
    require_program(options, settings, BACKENDS[options.backend].of(settings))
    return options


def _gateway(store: Store, model: Model) -> Gateway:
    return Gateway(SqlLedger(store, uuid.uuid4().hex), default=Route(model, Price(input=0.0, output=0.0)))


def copy(db: Path, to: Path) -> None:
    """Copy a SQLite database, which another process may be writing to."""
    address = f"{db.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def _chain_context(store: Store, provider: Provider, settings: Settings, folder: Path, chain_id: str) -> ChainContext:
    """The chain's context, for what is computed before the rollout."""

    def workplace(provided: StageImage, trees: TreeStore) -> Workplace:
        backend = replace(BACKENDS[OPTIONS.backend], client=provider.engine())
        return Workplace(provided, trees, backend=backend, test_timeout=OPTIONS.test_timeout)

    with store.reading() as tx:
        task = read_task(tx, chain_id)
    task.require_tests()
    return ChainContext(
        task, mirrors=settings.mirrors_dir, data_dir=folder / "data", provider=provider, make_workplace=workplace
    )


def _print_difference(chain_context: ChainContext, works: list[StageWork]) -> None:
    for work in works:
        paths = [path_text(change.path) for change in chain_context.trees.diff(work.solved, work.tree)]
        say(f"stage {work.position}: in other words: {', '.join(paths) or 'nothing'}")


def _unchanged_words(chain_context: ChainContext, works: list[StageWork]) -> list[str]:
    """A failure where A_1 has the same words as M_1 in every file that the stage's source patch touches."""
    first = chain_context.task.chain.stages[0]
    touched = set(chain_context.patches[0].source)
    own = {path_text(change.path) for change in chain_context.trees.diff(first.landed, works[0].tree)}
    return [] if touched & own else ["A_1 has the words of M_1 in every source file"]


if __name__ == "__main__":
    main()
