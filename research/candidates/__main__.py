"""Judge candidates that people or other models made, and run the hidden tests on them.

    python -m research.candidates FOLDER --db FILE [--judge-sees tests] [--out CSV]

FOLDER has `candidates.csv` with the columns name, chain, position and kind, and for each name a NAME.patch that applies
to the base of the stage (`git diff`). The database has the stages' queries and proofs. The judge is the model of the
settings, purpose `judge`; it is not told the kind. Kinds that begin with ``right`` are to be accepted, others to be
rejected. Prints how many of each kind are accepted, and how often the judge agrees with the hidden tests.
"""

from __future__ import annotations

import csv
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from environments.backends import BACKENDS
from environments.duelling import GradingSuite
from environments.images.provide import Provider
from environments.proofs.proof_rows import read_stages, validations
from environments.stages import open_git, open_trees, read_chain, stage_patches
from environments.suites.outcomes import Grade, StateCheck, grade
from environments.workplace import StageSuite, Workplace
from prchain.core.code.needs import full_query, interface_of, parse_needs
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import GitError, PrchainError
from prchain.core.git.process import run_git
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore
from prchain.core.settings import Settings
from prchain.core.shares import wilson
from research.rows import write_rows
from sql.chosen import find_chain
from sql.ledger import open_gateway
from sql.store import Store
from sql.tables import TaskStage
from trajectories.verdicts.judge import JUDGE, Judge
from trajectories.verdicts.judged_patch import judged_patch
from trajectories.verdicts.results import results_text

ACCEPTED_FROM = 0.8
"""The paper's threshold (section 3.3)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of `candidates.csv` and its patch."""

    name: str
    chain: str
    position: int
    kind: str
    patch: bytes

    @property
    def to_accept(self) -> bool:
        """Whether a correct judge accepts it."""
        return self.kind.startswith("right")


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One candidate with its results. `tests` is the grade's outcome."""

    name: str
    chain: str
    position: int
    kind: str
    tests: str
    score: float | None
    error: str | None
    comment: str | None

    @property
    def accepted(self) -> bool | None:
        """What the judge says of it; None if it is unscored."""
        return None if self.score is None else self.score >= ACCEPTED_FROM


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--db", help="The database.")
@click.option("--judge-sees", type=click.Choice(["patches", "tests"]), default="patches", show_default=True)
@click.option("--timeout", type=click.FloatRange(min=1), default=900, show_default=True, help="Seconds of one run.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write a row for each candidate.")
def main(folder: Path, db: str | None, judge_sees: str, timeout: float, out: Path | None) -> None:
    """Judge candidates of known kind, and run the hidden tests on them."""
    try:
        rows = list(_judged(Settings.load(db=db), _read(folder), judge_sees == "tests", timeout))
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    write_rows(out, rows)
    _say(rows)


def _read(folder: Path) -> list[Candidate]:
    with (folder / "candidates.csv").open(encoding="utf-8", newline="") as file:
        return [
            Candidate(
                row["name"],
                row["chain"],
                int(row["position"]),
                row["kind"],
                (folder / f"{row['name']}.patch").read_bytes(),
            )
            for row in csv.DictReader(file)
        ]


def _judged(settings: Settings, candidates: list[Candidate], sees_tests: bool, timeout: float) -> Iterator[JudgedRow]:
    """The candidates, stage by stage; tests first, because they need no model."""
    stages = sorted({(candidate.chain, candidate.position) for candidate in candidates})
    with (
        closing(Store.open(settings.db, create=False)) as store,
        closing(Provider(settings, store=store)) as provider,
        open_gateway(settings, store, (JUDGE,)) as gateway,
    ):
        judge = Judge(gateway, sees_tests=sees_tests)
        for prefix, position in stages:
            with store.reading() as tx:
                name = find_chain(tx, prefix)
                chain, proof = read_chain(tx, name), read_stages(tx, name)[position - 1]
                [(text, needs)] = tx.rows(TaskStage, "query", "interface", chain_id=name, position=position)
                backend_name = validations(tx)[name].backend
            query = full_query(str(text), interface_of(parse_needs(needs)))
            git = open_git(chain, settings.mirrors_dir)
            trees = open_trees(chain, git, settings.data_dir)
            patches, stage = tuple(stage_patches(git, trees, chain.stages)), chain.stages[position - 1]
            with BACKENDS.named(backend_name).of(settings).connected() as backend:
                provided = provider.provide(chain.repository, trees, git, stage)
                workplace = Workplace(provided, trees, backend=backend, test_timeout=timeout)
                suite = StageSuite.of(workplace, stage, patches, files=proof.files, baseline=proof.baseline)
                for candidate in candidates:
                    if (candidate.chain, candidate.position) != (prefix, position):
                        continue
                    tree = patched(trees, stage.base, candidate.patch)
                    run = GradingSuite(suite).run(tree, {*proof.classes.f2p, *proof.classes.p2p})
                    found = grade(
                        proof.classes, StateCheck(), run.statuses, cheats=run.cheats, taken_back=run.taken_back
                    )
                    yield _row(judge, candidate, query, trees, (stage.base, stage.landed, tree), found, sees_tests)


def _row(
    judge: Judge,
    candidate: Candidate,
    query: str,
    trees: TreeStore,
    commits: tuple[str, str, str],
    found: Grade,
    sees_tests: bool,
) -> JudgedRow:
    base, landed, tree = commits
    judgement = judge.judge(
        subject=f"candidates/{candidate.name}",
        sample=0,
        attempt=0,
        query=query,
        reference_patch=judged_patch(trees, base, landed),
        agent_patch=judged_patch(trees, base, tree),
        results=results_text(found) if sees_tests else None,
    )
    say(f"{candidate.name}: tests {found.outcome}, judge {judgement.score} {judgement.error or ''}", err=True)
    return JudgedRow(
        candidate.name,
        candidate.chain,
        candidate.position,
        candidate.kind,
        found.outcome,
        judgement.score,
        judgement.error,
        judgement.comment,
    )


def patched(trees: TreeStore, base: str, patch: bytes) -> str:
    """The tree of a commit with a patch of `git diff` applied. Raises `click.ClickException` if it does not apply."""
    with tempfile.TemporaryDirectory() as folder:
        with trees.to_tar(base) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            archive.extractall(folder, filter="tar")
        place = Path(folder)
        own = {"GIT_CEILING_DIRECTORIES": str(place.resolve().parent)}
        try:
            run_git("apply", "--whitespace=nowarn", "-", place=place, own=own, given=patch)
        except GitError as error:
            raise click.ClickException(f"a patch does not apply: {error}") from error
        listing = ("apply", "--numstat", "-z")
        numbers = b"".join(
            run_git(*listing, *way, "-", place=place, own=own, given=patch) for way in ((), ("--reverse",))
        )
        changes: dict[bytes, TreeEntry | None] = {}
        for path in _paths(numbers):
            file = place / path.decode()
            mode = EXECUTABLE if file.exists() and file.stat().st_mode & 0o100 else FILE
            changes[path] = TreeEntry(mode, trees.write_blob(file.read_bytes())) if file.exists() else None
    return trees.edit(trees.tree_of(base), changes)


def _paths(numstat: bytes) -> Iterator[bytes]:
    """The paths of `git apply --numstat -z`, which names a renamed file as it is called afterwards."""
    for line in numstat.split(b"\0"):
        path = line.rpartition(b"\t")[2]
        if path:
            yield path


def _say(rows: list[JudgedRow]) -> None:
    kinds = Counter(row.kind for row in rows)
    accepted = Counter(row.kind for row in rows if row.accepted)
    unscored = Counter(row.kind for row in rows if row.accepted is None)
    passed = Counter(row.kind for row in rows if row.tests == "passed")
    table = [(kind, kinds[kind], accepted[kind], unscored[kind], passed[kind]) for kind in sorted(kinds)]
    say_table(("kind", "candidates", "accepted", "unscored", "tests pass"), table)
    scored = [row for row in rows if row.accepted is not None]
    right = [row for row in scored if row.kind.startswith("right")]
    wrong = [row for row in scored if not row.kind.startswith("right")]
    _share("right ones accepted", sum(bool(row.accepted) for row in right), len(right))
    _share("wrong ones rejected", sum(not row.accepted for row in wrong), len(wrong))
    _share(
        "agreement with the hidden tests", sum(row.accepted == (row.tests == "passed") for row in scored), len(scored)
    )


def _share(name: str, hits: int, total: int) -> None:
    if total:
        low, high = wilson(hits, total)
        say(f"{name}: {hits}/{total} = {hits / total:.0%} [{low:.0%}, {high:.0%}]")


if __name__ == "__main__":
    sys.exit(main())
