"""All tests of a stage, with masks in some of them: what these ask for is in no process of a grade, so that nothing
that a process leaves in the machine, such as a counter of its kernel, can tell it to another grade's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from environments.duel_runs import RanSide, SideTexts, Test, ids_of, report_path
from environments.suites.canaries.canary import Canary, CanaryKind, hiding
from environments.suites.canaries.duels import HeldTest, Side, function_of
from environments.suites.canaries.jsmasks import snapshot_file
from environments.suites.canaries.masks import COMPUTED, UNWRITTEN, Masked, agrees, contents
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import PlantedTree, StageSuite
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE

_SHORT = 3
"""Letters of a text that may stand anywhere."""


@dataclass(frozen=True, slots=True)
class MaskedSuite:
    """A tree with its overlay, canaries, and masks whose report is `report` (empty: there are none)."""

    planted: PlantedTree
    made: Mapping[str, Masked]
    report: str

    @classmethod
    def of(cls, suite: StageSuite, plain: str, masked: Collection[HeldTest]) -> MaskedSuite:
        """From the tree with the overlay. No canary is made of a test that is masked, nor holds what it asks for."""
        masked = [it for it in masked if it.masks]
        slots: Sequence[str] = suite.baseline.slots
        planted = suite.planted(plain, slots)
        if not masked:
            return cls(planted, {}, "")
        texts, report, side = SideTexts(suite), report_path(), Side({}, tuple(masked))
        names = {(it.file, name) for it in masked for name in (it.name, function_of(it.name))}
        kept = [it.slot for it in planted.canaries if it.kind is CanaryKind.PLAIN or not _is_of(it, names)]
        alone = texts.of(side, "")
        while True:
            planted = suite.planted(plain, hiding(kept))
            made = texts.of(side, report, _texts(suite, planted.tree))
            bare = {file for file in made if _shows(made[file], alone[file], side, file)}
            if not (left_out := {it.slot for it in planted.canaries if it.file in bare}):
                break
            kept = [it for it in kept if it not in left_out]
        tree = suite.workplace.trees.edit(planted.tree, texts.changes(made))
        canaries = tuple(_with_hidden_donor(it, made) for it in planted.canaries)
        return cls(replace(planted, tree=tree, canaries=canaries), made, report)

    def shown(self, suite: StageSuite) -> tuple[str, bool]:
        """The texts of all test files, and whether some have snapshots beside them."""
        texts = _texts(suite, self.planted.tree)
        paths = {path_text(path) for path in suite.workplace.trees.entries(self.planted.tree)}
        return "\n".join(texts.values()), not paths.isdisjoint(map(snapshot_file, texts))

    def run(self, suite: StageSuite) -> TestRun:
        """Run it once in a sandbox of its own. Raises as `StageSuite.run`."""
        planted = self.planted
        return suite.workplace.tests(
            planted.tree, suite.files, baseline=suite.baseline, canaries=planted.canaries, masked=self.report
        )

    def read(self, run: TestRun) -> RanSide:
        """What a run of it says, by the tests' own ids."""
        return RanSide.of(run, self.made) if self.report else RanSide(run, {}, {}, {}, {})

    def judged(
        self, suite: StageSuite, run: TestRun, masked: Collection[HeldTest], expected: Collection[str]
    ) -> TestRun:
        """A run in which the tests have failed whose masks do not tell what they have to. Of a function some of whose
        ids are `expected` to pass, as B_t has them, these have failed only where a line of B_t's asks for it."""
        ran, texts = self.read(run), SideTexts(suite)
        names = {(it.file, it.name): it for it in masked if it.masks}
        failed = set[str]()
        for key, found in ids_of(suite, names, ran.run.statuses).items():
            # Where canaries left no text that can be masked nothing is told.
            told, literals = ran.told.get(key, {}), dict(enumerate(ran.literals.get(key, ())))
            untold = (place for place, it in names[key].masks or () if not agrees(it, told.get(place, ())))
            wrong = [literals.get(place, UNWRITTEN) for place in untold]
            is_old = any(it != UNWRITTEN and not texts.is_new(key[0], it) for it in wrong)
            failed.update(it for it in found if is_old or (wrong and it not in expected))
        lost = {it for it in failed if ran.run.statuses[it] is Status.passed}
        return replace(ran.run, statuses={**ran.run.statuses, **dict.fromkeys(lost, Status.failed)})


def _texts(suite: StageSuite, tree: str) -> dict[str, str]:
    """The texts of the stage's test files in a tree."""
    trees, files = suite.workplace.trees, {*suite.files}
    entries = {path_text(path): it for path, it in trees.entries(tree).items() if path_text(path) in files}
    kept = {path: it.blob for path, it in entries.items() if it.mode in (FILE, EXECUTABLE)}
    blobs = trees.blobs([*kept.values()])
    return {path: blob.decode("utf-8", "surrogateescape") for path, blob in zip(kept, blobs, strict=True)}


def _with_hidden_donor(canary: Canary, made: Mapping[str, Masked]) -> Canary:
    """A canary that knows its donor by the title that this has in the run."""
    shown = made[canary.file].shown if canary.file in made and canary.kind is CanaryKind.PLAIN else {}
    hidden = next((key for key, title in shown.items() if title == canary.donor), canary.donor)
    return replace(canary, donor=hidden)


def _is_of(canary: Canary, names: Collection[Test]) -> bool:
    """Whether a canary says something of tests with these names: a copy of one, the test itself by another name, and
    what holds some text of their file."""
    if any(file == canary.file and name == COMPUTED for file, name in names):
        return True
    return (not canary.donor and any(file == canary.file for file, _ in names)) or (canary.file, canary.donor) in names


def _shows(made: Masked, alone: Masked, side: Side, file: str) -> bool:
    """Whether a text holds what one of the side's masks stands for, and does not without canaries."""
    own = (literal for it in side.masked if it.file == file for literal in alone.literals.get(it.name, ()))
    hidden = {content for literal in own for content in contents(literal) if len(content) >= _SHORT}
    return any(_holds(made.text, it) and not _holds(alone.text, it) for it in hidden)


def _holds(text: str, content: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(content)}(?!\w)", text) is not None
