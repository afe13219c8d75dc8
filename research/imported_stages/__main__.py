"""Write proved stages in publishers' columns, import them, and prove and grade them once more.

    python -m research.imported_stages --db FILE [--chain ID ...] [--copy FILE] [--runs N]

The database holds chains that `prchain environments validate` has proved with the present rules and images. Each of
their stages is written in the columns of each publisher, and imported by the code of `prchain tasks import` into a copy
of the database; a copy that is there is gone on with. What has the same trees, image, runner and command is proved and
graded once, for all columns. Graded are the reference, nothing, and the reference without one of its hunks, on our
stage and on those that came back. Exit code 1 where tests or verdicts differ.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain as joined
from pathlib import Path

import click

from chains.imports.importing import Importer
from chains.imports.reading import ReadRow, read_instances
from environments.backend import Backend
from environments.backends import BACKENDS
from environments.duelling import GradingSuite
from environments.images.provide import Provider
from environments.proofs.proof_rows import StageProof, read_proof, read_stages, validations
from environments.proofs.published import published_lists
from environments.proofs.validate import RUNS, ChainProver, ValidateOptions
from environments.stages import ChainStages, Stage, open_git, open_trees, read_chain, stage_patches
from environments.suites.outcomes import Grade, StateCheck, grade
from environments.workplace import StageSuite, Workplace
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import BadInstance, PrchainError, RefreshFailed
from prchain.core.settings import Settings
from research.grades.trees import GradedTree, trees_of
from research.imported_stages.columns import COLUMNS, PublishedStage, line, rows_of
from research.imported_stages.differences import (
    ReturnedStage,
    Verdicts,
    differing_tests,
    differing_verdicts,
    files_apart,
    table,
)
from sql.outcomes import PROVED
from sql.store import Store


@dataclass(frozen=True, slots=True)
class _Place:
    """Where stages are proved and graded."""

    settings: Settings
    store: Store
    provider: Provider
    prover: ChainProver
    backend: Backend

    def chain(self, chain_id: str) -> ChainStages:
        with self.store.reading() as tx:
            return read_chain(tx, chain_id)

    def proof(self, chain_id: str) -> StageProof:
        """The proof of a chain of one stage, which is made where it is not there."""
        with self.store.reading() as tx:
            known = validations(tx, chain_id)
        if not known:
            self.prover.prove(chain_id)
        with self.store.reading() as tx:
            [stage] = read_proof(tx, chain_id).stages
        return stage

    def workplace(self, chain: ChainStages, stage: Stage) -> Workplace:
        git = open_git(chain, self.settings.mirrors_dir)
        trees = open_trees(chain, git, self.settings.data_dir)
        provided = self.provider.provide(chain.repository, trees, git, stage)
        return Workplace(provided, trees, backend=self.backend)

    def verdicts(self, chain: ChainStages, stage: Stage, proof: StageProof) -> Verdicts:
        """What the tests of a stage say of each work."""
        workplace = self.workplace(chain, stage)
        patches = list(stage_patches(open_git(chain, self.settings.mirrors_dir), workplace.trees, chain.stages))
        suite = StageSuite.of(workplace, stage, patches, files=proof.files, baseline=proof.baseline)
        sources = [path for path in patches[stage.position - 1].source if path.endswith(".py")]
        return {work: self._grade(suite, proof, tree.tree) for work, tree in _works(suite, sources).items()}

    def _grade(self, suite: StageSuite, proof: StageProof, tree: str) -> Grade | str:
        try:
            run = GradingSuite(suite).run(tree, {*proof.classes.f2p, *proof.classes.p2p})
        except RefreshFailed as error:
            return error.name
        if not run.usable:
            return f"unusable: {run.infra or 'out of time'}"
        return grade(proof.classes, StateCheck(), run.statuses, cheats=run.cheats, taken_back=run.taken_back)


def _works(suite: StageSuite, sources: list[str]) -> Mapping[str, GradedTree]:
    """The reference, nothing, and the reference without one of its hunks; where it has a single one, without that."""
    trees = trees_of(suite, sources)
    reference, nothing = next(trees), next(trees)
    works = {"reference": reference, "nothing": nothing}
    less = next((tree for tree in trees if tree.name.startswith("without hunk ")), None)
    if less is None:
        less = next((tree for tree in trees_of(suite, sources) if tree.name.startswith("without the change of ")), None)
    return works if less is None else {**works, "without a hunk": less}


@click.command(help=__doc__)
@click.option("--db", type=click.Path(dir_okay=False, exists=True, path_type=Path), required=True)
@click.option("--chain", "only", multiple=True, default=("",), help="Of these chains, by the beginnings of their ids.")
@click.option(
    "--copy",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("imported-stages.db"),
    show_default=True,
    help="The copy of the database.",
)
@click.option("--runs", type=click.IntRange(min=1), default=RUNS, show_default=True, help="Test runs on each side.")
def main(db: Path, only: tuple[str, ...], copy: Path, runs: int) -> None:
    """See the module."""
    if not copy.exists():
        with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as source, closing(sqlite3.connect(copy)) as to:
            source.backup(to)
    try:
        returned = list(_returned(Settings.load(db=str(copy)), only, runs))
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    names = ("repository", "columns", "stages", "graded", "same tests", "same verdicts", "as listed")
    say_table(names, table(returned, COLUMNS))
    if any(stage.tests or stage.verdicts for stage in returned):
        sys.exit(1)


def _returned(settings: Settings, only: tuple[str, ...], runs: int) -> Iterator[ReturnedStage]:
    with ExitStack() as resources:
        store = resources.enter_context(closing(Store.open(settings.db, create=False)))
        with store.reading() as tx:
            backends = {name: it.backend for name, it in sorted(validations(tx).items()) if name.startswith(only)}
            chains = {name: read_chain(tx, name) for name in backends}
            proofs = {name: read_stages(tx, name) for name in backends}
        places: dict[str, _Place] = {}
        seen: set[str] = set()
        for name, chain in chains.items():
            if chain.imported:
                continue
            if (named := backends[name]) not in places:
                places[named] = _place(resources, settings, store, ValidateOptions(named, runs))
            for stage, proof in zip(chain.stages, proofs[name], strict=True):
                if proof.outcome == PROVED and stage.landed not in seen:  # chains share stages
                    seen.add(stage.landed)
                    yield from _stage(places[named], chain, stage, proof)


def _place(resources: ExitStack, settings: Settings, store: Store, options: ValidateOptions) -> _Place:
    backend = resources.enter_context(BACKENDS.named(options.backend).of(settings).connected())
    provider = resources.enter_context(closing(Provider(settings, images=backend.needs_image, store=store)))
    return _Place(settings, store, provider, ChainProver(store, provider, settings, options), backend)


def _stage(place: _Place, chain: ChainStages, stage: Stage, ours: StageProof) -> Iterator[ReturnedStage]:
    """One stage of ours, in all columns."""
    published = PublishedStage.of(open_git(chain, place.settings.mirrors_dir), chain.repository, stage, ours)
    known: dict[tuple[str, ...], tuple[StageProof, Verdicts]] = {}
    our_verdicts = place.verdicts(chain, stage, ours)
    say(f"{chain.repository}#{stage.number} {chain.id}.{stage.position}: {_told(our_verdicts)}")
    for columns, row in rows_of(published):
        try:
            chain_id = _imported(place, columns, line(row))
        except BadInstance as error:
            yield ReturnedStage(chain.repository, stage.number, columns, "", False, (str(error),))
            continue
        theirs = place.chain(chain_id)
        [first] = theirs.stages
        workplace = place.workplace(theirs, first)
        plan = workplace.provided.plan
        key = (first.base, first.landed, str(workplace.provided.image), plan.runner, plan.test or "")
        graded = key not in known
        if graded:
            proof = place.proof(chain_id)
            known[key] = proof, place.verdicts(theirs, first, proof) if proof.outcome == PROVED else {}
        proof, verdicts = known[key]
        with place.store.reading() as tx:
            lists = published_lists(tx, chain_id, proof.runner, proof.classes)
        found = ReturnedStage(
            chain.repository,
            stage.number,
            columns,
            chain_id,
            graded,
            tuple(differing_tests(ours, proof)),
            tuple(differing_verdicts(our_verdicts, verdicts, (ours, proof))),
            lists.words() if lists is not None and lists.differ else "",
        )
        if graded:
            apart = files_apart(ours, proof)
            say(f"  {columns} in {key[2]}: {_told(verdicts)}" + (f"; files of {apart}" if apart else ""))
            for words in joined(found.tests[:20], found.verdicts, filter(None, [found.listed])):
                say(f"    {words}")
        yield found


def _imported(place: _Place, columns: str, text: str) -> str:
    """The id of the chain that a row becomes. Raises `BadInstance` where it becomes none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{columns}.jsonl"
        file.write_text(text, encoding="utf-8")
        [read] = read_instances(file, source=f"ours/{columns}")
    told: list[ReadRow] = []
    report = Importer(place.store, place.settings.data_dir, place.settings.mirrors_dir).run([read], told.append)
    if told or read.instance is None or not report.good:
        raise BadInstance(told[0].reason if told else "no repository holds its commit")
    return read.instance.chain_id


def _told(verdicts: Verdicts) -> str:
    return ", ".join(f"{work} {it if isinstance(it, str) else it.outcome}" for work, it in verdicts.items())


if __name__ == "__main__":
    main()
