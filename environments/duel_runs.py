"""Runs of the sides of a duel (`environments.suites.canaries.duels`): processes with tests true, false or masked."""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property, partial
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from environments.edited_trees import AT_ONCE, EditedTrees
from environments.suites.canaries.duels import HeldTest, Side, dice, function_of
from environments.suites.canaries.jsmasks import snapshot_file
from environments.suites.canaries.jstokens import TESTS
from environments.suites.canaries.masks import COMPUTED, MOST_MASKS, Masked, Masking, told, told_once
from environments.suites.runners import RUNNERS
from environments.suites.testruns import TestRun
from environments.suites.testtexts import ChangedTests
from environments.workplace import StageSuite
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry

_TITLED = rf"\b(?:{'|'.join(sorted(TESTS))})\b[\w.]*\(\s*([\"'`]){{}}\1"
"""A test whose title is written out; a row that a title is made of may be written out elsewhere."""
Test = tuple[str, str]
"""A test file, and the name of a function in it."""
Told = Mapping[Test, Mapping[int, Collection[str]]]
"""What masks told, by tests and places."""
_MOST_KNOWN = 20 << 20
"""Characters of B_t, beside its tests, that are looked at."""
_AT_ONCE = 100
"""Files that are read together."""


class DuelRuns:
    """Runs of both sides of a duel on a tree with its overlay, `plain`; the bench begins on `first`, which differs from
    it in test files alone."""

    def __init__(self, suite: StageSuite, bench: EditedTrees, first: str, plain: str) -> None:
        self.suite, self._bench, self._plain = suite, bench, plain
        self._texts = SideTexts(suite)
        changed = suite.workplace.trees.diff(first, plain) if first != plain else ()
        self._changed = [path_text(change.path) for change in changed]

    def named(self, chosen: Iterable[HeldTest], ids: Mapping[Test, Sequence[str]]) -> list[str]:
        """What has the runner run these tests alone, by their ids, in the order in which they stand in their files;
        nothing where it cannot be told."""
        files = self.suite.files
        places = sorted((files.index(it.file), self._texts.place(it.file, it.name), it.name, it.file) for it in chosen)
        found = [test for *_, name, file in places for test in ids[file, name]]
        return RUNNERS[self.suite.workplace.runner].named(files, found)

    def run_all(
        self, forms: Sequence[Side], files: Iterable[str], named: Sequence[str], *, at_once: bool
    ) -> list[RanSide]:
        """All sides, in the order of their forms, two `at_once` in the bench's sandbox and those beside it, where the
        backend can have several; after one that says nothing no other begins."""
        given, found = [*files], dict[int, RanSide]()
        benches = self._bench.benches() if at_once else iter(())

        def run_one(number: int, bench: EditedTrees) -> None:
            if all(it.run.usable for it in [*found.values()]):
                found[number] = self.run(forms[number], given, named, bench)

        begun: dict[int, Future[None]] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for number, bench in zip(range(len(forms)), benches, strict=False):
                begun[number] = pool.submit(run_one, number, bench)
            for done in begun.values():
                done.result()
        for number in range(len(forms)):
            if number not in begun:
                self._bench.begin()
                run_one(number, self._bench)
        return [found[number] for number in sorted(found)]

    def run(
        self, side: Side, files: Iterable[str], named: Sequence[str] = (), bench: EditedTrees | None = None
    ) -> RanSide:
        """One side, in a fresh process that sees nothing of another: of `files` all tests, or those that are named."""
        trees = self.suite.workplace.trees
        report = report_path() if side.masked else ""
        made = self._texts.of(side, report)
        changes = self._texts.changes(made)
        tree = trees.edit(self._plain, changes) if changes else self._plain
        paths = [*self._changed, *(path_text(path) for path in changes)]
        given = [*dict.fromkeys(files)]
        bench = bench or self._bench
        timeout = self.suite.workplace.test_timeout
        run = bench.run(tree, paths, timeout, fresh=True, files=given, named=named, masked=report)
        return RanSide.of(run, made)

    def can_be_false(self, tests: Collection[Test], seed: int) -> set[Test]:
        """Those of the tests of which a seed makes other ones."""
        made = {
            file: self._texts.falsified(file, dict.fromkeys(tests, seed))[1] for file in {file for file, _ in tests}
        }
        return {(file, name) for file, name in tests if name in made[file]}

    @property
    def runner(self) -> str:
        return self.suite.workplace.runner


class RanSide(NamedTuple):
    """A run of a side, the texts of its test files, and of its tests with masks the literals at their places, what they
    told, and which told it one time."""

    run: TestRun
    texts: Mapping[str, str]
    literals: Mapping[Test, Sequence[str]]
    told: Told
    once: Mapping[Test, Collection[int]]

    @classmethod
    def of(cls, run: TestRun, made: Mapping[str, Masked]) -> RanSide:
        said, alone, first = told(run.told), told_once(run.told), 0
        found, once = defaultdict[Test, dict[int, set[str]]](dict), defaultdict[Test, set[int]](set)
        for file, masked in made.items():
            numbers = masked.numbers(first)
            for number, (name, place) in numbers.items():
                if number in said:
                    found[file, name][place] = said[number]
                if number in alone:
                    once[file, name].add(place)
            first += len(numbers)
        shown = {key: text for masked in made.values() for key, text in masked.shown.items()}
        if shown:
            keys = re.compile("|".join(sorted(map(re.escape, shown), key=len, reverse=True)))
            statuses = {keys.sub(lambda it: shown[it[0]], test): status for test, status in run.statuses.items()}
            run = replace(run, statuses=statuses)
        literals = {(file, name): it for file, masked in made.items() for name, it in masked.literals.items()}
        return cls(run, {file: it.text for file, it in made.items()}, literals, found, once)


def report_path() -> str:
    """A place for a report of masks that nobody can guess."""
    return f"/tmp/.{secrets.token_hex(12)}/{secrets.token_hex(8)}"


class SideTexts:
    """The texts of M_t's test files, as they are and with tests made false."""

    def __init__(self, suite: StageSuite) -> None:
        self._suite = suite
        entries = suite.workplace.trees.entries(suite.landed)
        self._entries = {path_text(path): (path, it) for path, it in entries.items() if it.mode in (FILE, EXECUTABLE)}
        self._known = cache(self._lines_before)
        self._new = cache(self._new_lines)

    def entry(self, file: str) -> tuple[bytes, TreeEntry]:
        return self._entries[file]

    def snapshots(self, file: str) -> bytes | None:
        """The path of the file's snapshots, if M_t has them."""
        path = snapshot_file(file)
        return self._entries[path][0] if path in self._entries else None

    def changes(self, made: Mapping[str, Masked]) -> dict[bytes, TreeEntry | None]:
        """What has to be changed in a tree that holds M_t's files for it to hold these texts."""
        changes: dict[bytes, TreeEntry | None] = {}
        for file, masked in made.items():
            path, entry = self.entry(file)
            blob = self._suite.workplace.trees.write_blob(masked.text.encode("utf-8", "surrogateescape"))
            changes[path] = entry._replace(blob=blob)
            if masked.without_snapshots and (snapshots := self.snapshots(file)):
                changes[snapshots] = None
        return changes

    def place(self, file: str, name: str) -> int:
        """Where a test's name first stands in a file; -1 for nowhere."""
        found = re.search(rf"\b{re.escape(function_of(name))}\b", self.text(file))
        return -1 if found is None else found.start()

    def names(self, file: str) -> frozenset[str]:
        """The tests of a file that can be masked, or made false by some seed of their language."""
        if file not in self._entries:
            return frozenset()
        runner = RUNNERS[self._suite.workplace.runner]
        seeds = runner.falsify.all_seeds if runner.falsify is not None else ()
        known = self._known(file)
        made = (self._made(file, partial(dice, self._suite.landed, file, seed=seed, known=known)) for seed in seeds)
        maskable = self._with_masks(file, self.text(file), Masking("", 0, lambda _: ())).literals
        return frozenset(maskable).union(*(names for _, names in made))

    def is_new(self, file: str, literal: str) -> bool:
        """Whether a literal stands in a line that no test file of B_t has."""
        part = max((it.strip() for it in literal.splitlines()), key=len, default="")
        return part in self._new(file)

    def of_test(self, test: Test) -> str:
        """A test's own text: from where its name first stands in its file to where another one's does."""
        file, name = test
        first = self.place(file, name)
        if first < 0:
            return self.text(file)
        others = (self.place(file, it) for it in self.names(file))
        return self.text(file)[first : min((it for it in others if it > first), default=None)]

    def of(self, side: Side, report: str, others: Mapping[str, str] = MappingProxyType({})) -> dict[str, Masked]:
        """The files that a side has otherwise, in the order in which their masks are numbered; `others` are texts of
        files that have canaries."""
        masked = {(it.file, it.name): it for it in side.masked if it.masks is not None}
        made: dict[str, Masked] = {}
        first = 0
        for file in sorted({file for file, _ in (*side.false, *masked)}):
            text = others[file] if file in others else self.falsified(file, side.false)[0]
            made[file] = self._with_masks(file, text, Masking(report, first, partial(self._places, file, masked)))
            first += sum(map(len, made[file].literals.values()))
        return made

    def _places(self, file: str, masked: Mapping[Test, HeldTest], name: str) -> Collection[int] | None:
        """See `Masking.places`: a test that is not known stays as it is."""
        held = masked.get((file, name))
        if held is None:
            return ()
        return {*range(MOST_MASKS)}.difference(held.plain) if held.plain else None

    def _with_masks(self, file: str, text: str, masking: Masking) -> Masked:
        mask = RUNNERS[self._suite.workplace.runner].mask
        return Masked(text, {}) if mask is None or file not in self._entries else mask(text, masking)

    def falsified(self, file: str, false: Mapping[Test, int]) -> tuple[str, frozenset[str]]:
        """The file with those of its tests made false that stand in the mapping, and the names of these."""

        def order(name: str) -> Random | None:
            seed = false.get((file, name))
            return None if seed is None else dice(self._suite.landed, file, name, seed, self._known(file))

        return self._made(file, order)

    def _made(self, file: str, order: Callable[[str], Random | None]) -> tuple[str, frozenset[str]]:
        falsifier = RUNNERS[self._suite.workplace.runner].falsify
        if file not in self._entries:
            return "", frozenset()
        text = self.text(file)
        return falsifier.falsify(text, order) if falsifier is not None else (text, frozenset())

    def _lines_before(self, file: str) -> frozenset[str]:
        """The lines of B_t's file of this name."""
        trees = self._suite.workplace.trees
        entry = trees.entries(self._suite.base).get(self._entries[file][0]) if file in self._entries else None
        if entry is None or entry.mode not in (FILE, EXECUTABLE):
            return frozenset()
        text = trees.blobs([entry.blob])[0].decode("utf-8", "surrogateescape")
        return frozenset(it.strip() for it in text.splitlines())

    def _new_lines(self, file: str) -> str:
        """The lines of M_t's file that no test file of B_t has: who moves a file makes no line new."""
        return "\n".join(it for it in self.text(file).splitlines() if it.strip() not in self._old_lines)

    @cached_property
    def _old_lines(self) -> frozenset[str]:
        """The lines of B_t's test files in the languages of those that are run."""
        own = frozenset[str]().union(*map(self._known, self._suite.files))
        return own.union(line.strip() for text in self._before(FileKind.TEST) for line in text.splitlines())

    @cached_property
    def known(self) -> str:
        """What everybody knows who has B_t: its text in the languages of the test files that are run, tests first, as
        much as is looked at."""
        known, room = [*self._old_lines], _MOST_KNOWN
        for text in self._before(*{*FileKind} - {FileKind.TEST}):
            known.append(text[:room])
            room -= len(text)
            if room <= 0:
                break
        return "\n".join(known)

    def _before(self, *kinds: FileKind) -> Iterator[str]:
        """The texts of B_t's files of these kinds, in those languages."""
        trees = self._suite.workplace.trees
        suffixes = tuple({path.rpartition(".")[2] for path in self._suite.files})
        entries = [
            it
            for path, it in trees.entries(self._suite.base).items()
            if path_text(path).endswith(suffixes) and kind_of(path_text(path)) in kinds
        ]
        blobs = [it.blob for it in entries if it.mode in (FILE, EXECUTABLE)]
        for first in range(0, len(blobs), _AT_ONCE):
            for blob in trees.blobs(blobs[first : first + _AT_ONCE]):
                yield blob.decode("utf-8", "surrogateescape")

    def text(self, file: str) -> str:
        """M_t's text of a test file; empty where it has none."""
        if file not in self._entries:
            return ""
        return self._suite.workplace.trees.blobs([self._entries[file][1].blob])[0].decode("utf-8", "surrogateescape")


def file_of(suite: StageSuite, test: str) -> str:
    """The file in which a test stands; empty where its id does not tell."""
    runner = RUNNERS[suite.workplace.runner]
    file_of = (runner.falsify and runner.falsify.file_of) or runner.file_of
    return file_of(test, suite.files) or ""


def _names(suite: StageSuite, test: str) -> tuple[Test, Test]:
    """What a test may be known as: by its function's name, and by that with the class before it."""
    runner = RUNNERS[suite.workplace.runner]
    file, name = file_of(suite, test), runner.name_of(test)
    place = test.removeprefix(file).partition("[")[0]
    owner = re.split(r"::|\.", place[: place.rfind(name)].rstrip(":."))[-1]
    return (file, name), (file, f"{owner}.{name}")


def ids_of(suite: StageSuite, wanted: Collection[Test], known: Iterable[str]) -> dict[Test, Sequence[str]]:
    """Those of the known ids that are of the tests that are wanted."""
    names = {*wanted}
    found = defaultdict[Test, list[str]](list)
    texts = {file: SideTexts(suite).text(file) for file, name in names if name == COMPUTED}
    for test in known:
        (file, name), whole = _names(suite, test)
        own = names.intersection([(file, name), whole])
        if not own and file in texts and not re.search(_TITLED.format(re.escape(name)), texts[file]):
            own = {(file, COMPUTED)}
        for known_as in own:
            found[known_as].append(test)
    return dict(found)


def changed_tests(suite: StageSuite) -> ChangedTests:
    """Whether M_t has a test that B_t has not, or has otherwise."""
    trees = suite.workplace.trees

    def reader(commit: str) -> Callable[[str], str | None]:
        entries = trees.entries(commit)

        def read(path: str) -> str | None:
            entry = entries.get(path.encode("utf-8", "surrogateescape"))
            found = trees.blobs([entry.blob]) if entry and entry.mode in (FILE, EXECUTABLE) else []
            return found[0].decode("utf-8", "replace") if found else None

        return cache(read)

    old, new = reader(suite.base), reader(suite.landed)
    return ChangedTests(suite.workplace.runner, suite.files, {path: path for path in suite.files}, old, new)
