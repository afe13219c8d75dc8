"""Searches a piece of stage 1 whose absence only the tests of stage 2 notice.

Two test runs say where to look: in the files that stage 1 touches each statement is marked when it runs, and those
that only the tests of stage 2 reach come first. Then pieces of the stage's work are left out, one at a time; older
statements beside it are damaged; and names that it introduces are changed throughout where later work relies on them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from environments.duelling import GradingSuite
from environments.sandboxes.sandbox import Sandbox
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun, run_tests
from environments.workplace import StageSuite, Workplace
from prchain.core.errors import SandboxLost
from prchain.core.git import path_text
from research.real_rollouts.pieces import MARK_PREFIX, NAME, Piece, marked, pieces, renamed_pieces
from research.real_rollouts.work import StageWork, breaking, reference, solution
from trajectories.rollouts.chain_context import ChainContext

Tell = Callable[[str], None]
Look = Callable[[Sandbox], None]

_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A piece, the tests of stage 2 that fail without it, the work without it, and how many pieces were tried."""

    piece: Piece
    missed_by: tuple[str, ...]
    works: list[StageWork]
    tried: int


@dataclass(frozen=True, slots=True)
class _Survey:
    """A run of a stage's own test files on the whole work: the tests that count and pass, and the marks they reach."""

    suite: StageSuite
    passed: frozenset[str]
    marks_reached: frozenset[str]

    def missed_by(self, run: TestRun) -> tuple[str, ...]:
        """The tests that no longer pass."""
        return tuple(sorted(test for test in self.passed if run.statuses.get(test) is not Status.passed))


def search(chain_context: ChainContext, limit: int, tell: Tell) -> Found | None:
    """The first piece of stage 1 that only stage 2 misses, among the `limit` likeliest; None where there is none."""
    trees = chain_context.trees
    whole = reference(chain_context)
    start, first = whole[0].state.tree, whole[0].tree
    touched = {path_text(change.path) for change in trees.diff(start, first)}
    first_survey, second_survey = (
        _survey(chain_context, marked(trees, work.tree, touched), work.position) for work in whole[:2]
    )
    for position, survey in ((1, first_survey), (2, second_survey)):
        tell(f"stage {position}: {len(survey.passed)} tests count, which reach {len(survey.marks_reached)} statements")
    words = _test_words(chain_context, 2) - _test_words(chain_context, 1)
    source = set(chain_context.patches[0].source)
    found = (
        piece
        for piece in pieces(trees, start, first, second_survey.marks_reached - first_survey.marks_reached)
        if piece.path in source
    )
    names = renamed_pieces(trees, start, first, relied_on(chain_context))
    ranked = rank((*found, *names), first_survey.marks_reached, second_survey.marks_reached, words)
    tell(f"{len(ranked)} pieces to leave out")
    idle: list[Piece] = []
    tried = 0
    for piece in ranked:
        if tried == limit:
            break
        if any(piece in larger for larger in idle):  # no test missed the larger piece
            continue
        tree = piece.left_out(trees, first)
        works = breaking(chain_context, tree)
        if works[1].state.conflicts or works[1].conflicts:
            tell(f"{piece}: in conflict with later work")
            continue
        tried += 1
        missed = first_survey.missed_by(_run(first_survey.suite, tree))
        if missed:
            tell(f"{piece}: missed by stage 1 ({len(missed)} tests)")
            continue
        missed = second_survey.missed_by(_run(second_survey.suite, works[1].tree))
        tell(f"{piece}: not missed by stage 1, by {len(missed)} tests of stage 2")
        if missed:
            return Found(piece, missed, works, tried)
        idle.append(piece)
    return None


def rank(
    found: Iterable[Piece], first: frozenset[str], second: frozenset[str], words: Collection[str] = ()
) -> list[Piece]:
    """The likeliest first: reached by stage 2's tests alone; then names; then those with most of `words` per line.

    `first` and `second` are the marks that the stages' tests reach, `words` those that only the tests of stage 2 have.
    Pieces that the tests of stage 2 do not reach are left out. A piece comes before its parts if it is as likely.
    """
    reached = [piece for piece in found if not piece.marks or piece.marks & second]
    spoken = {id(piece): len(_words(piece.text) & set(words)) / (len(piece.lines) or 1) for piece in reached}

    def likely(piece: Piece) -> tuple[int, float]:
        parts = (spoken[id(part)] for part in reached if part in piece)
        alone = bool(piece.marks) and piece.marks.isdisjoint(first)
        return 0 if alone else 1 if piece.kind == NAME else 2, -max(parts)

    return sorted(reached, key=likely)


def relied_on(chain_context: ChainContext) -> list[str]:
    """The names that stage 1 introduces, that its tests do not have, and that stage 2 uses; sorted."""
    first, second = chain_context.task.chain.stages[:2]
    new = _added_words(chain_context, first.base, solution(chain_context, first)) - _test_words(chain_context, 1)
    used = new & (_added_words(chain_context, second.base, second.landed) | _test_words(chain_context, 2))
    return sorted(used - chain_context.git.words_at(first.base, used))


def _added_words(chain_context: ChainContext, old: str, new: str) -> set[str]:
    """The words of the lines that a patch adds to Python files."""
    commits = [chain_context.trees.commit(chain_context.trees.tree_of(tree)) for tree in (old, new)]
    [patch] = chain_context.trees.patches([(commits[0], commits[1])])
    return {word for file in patch if file.path.endswith(".py") for line in file.added for word in _words(line)}


def _test_words(chain_context: ChainContext, position: int) -> set[str]:
    """The words of the test patch's files as they landed."""
    stage, patch = chain_context.task.chain.stages[position - 1], chain_context.patches[position - 1]
    entries = chain_context.trees.entries(stage.landed)
    blobs = chain_context.trees.blobs([entries[path].blob for path in patch.test_paths if path in entries])
    return {word for blob in blobs for word in _words(blob.decode("utf-8", "replace"))}


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w{4,}", text) if not keyword.iskeyword(word)}


def _survey(chain_context: ChainContext, tree: str, position: int) -> _Survey:
    stage = chain_context.task.stages[position - 1]
    suite = chain_context.suite(stage)
    assert isinstance(suite, GradingSuite) and stage.tests is not None
    own = replace(suite.suite, files=suite.suite.own_files)
    marks: set[str] = set()

    def look(sandbox: Sandbox) -> None:
        result = sandbox.exec(f"ls -d {MARK_PREFIX}-* 2>/dev/null", timeout=60)
        marks.update(line.removeprefix(f"{MARK_PREFIX}-") for line in result.text.split())

    run = _run(own, tree, look)
    counted = {*stage.tests.classes.f2p, *stage.tests.classes.p2p}
    passed = frozenset(test for test in counted if run.statuses.get(test) is Status.passed)
    return _Survey(own, passed, frozenset(marks))


def _run(suite: StageSuite, tree: str, look: Look = lambda sandbox: None) -> TestRun:
    """As `StageSuite.run`, with a call of `look` after it; repeated where the sandbox is lost."""
    for _ in range(_RETRIES):
        try:
            return _run_once(suite, tree, look)
        except SandboxLost:
            continue
    return _run_once(suite, tree, look)


def _run_once(suite: StageSuite, tree: str, look: Look) -> TestRun:
    workplace: Workplace = suite.workplace
    with workplace.sandbox() as sandbox:
        workplace.place(sandbox, suite.with_overlay(tree))
        run = run_tests(
            sandbox,
            workplace.command,
            suite.files,
            timeout=workplace.test_timeout,
            baseline=suite.baseline,
        )
        look(sandbox)
    return run
