"""What stood in the trees of a chain: its reference patches, and how the trees of a rollout differ.

The pages go on without what cannot be read, and say why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from chains.lineage.shown_lines import ChangedLines, changed_lines
from environments.stages import ChainStages, open_git, open_trees, read_chain
from prchain.core.errors import GitError, TaskError
from prchain.core.git.output import path_text
from prchain.core.git.patches import FilePatch, read_patches
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from sql.store import Store

Patch = Sequence[FilePatch]

_DIFF = (
    *("diff-tree", "--stdin", "-r", "-p", "-M", "-U3", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"),
)

_UNKNOWN = "\ufffd"
"""In the place of bytes of a path that are no UTF-8: nothing is found by such a name."""

_HIDDEN = 4
"""Characters of a line without blanks from which on it can tell something: braces and ``else:`` are everybody's."""


@dataclass(frozen=True, slots=True)
class LitLines:
    """Lines of one stage that the next one removes or changes, by the paths of their files."""

    before: dict[str, set[str | int]]
    """Where they stood when the stage that brought them had landed; by what they say where nobody can tell."""
    after: dict[str, set[str | int]]
    """Where they stand when the next stage begins."""

    def add(self, hunk: ChangedLines, places: Sequence[tuple[bytes, int] | None]) -> None:
        """Add those of a hunk; `places` are where its lines stood before, of none where that is not known."""
        known = places if len(places) == len(hunk.removed) else [None] * len(hunk.removed)
        for number, ((line, mine), place) in enumerate(zip(hunk.removed, known, strict=True), hunk.start):
            if not mine:
                continue
            self.after.setdefault(hunk.path, set()).add(number)
            if place is None:
                self.before.setdefault(hunk.path, set()).add(line.decode("utf-8", "replace"))
            else:
                self.before.setdefault(path_text(place[0]), set()).add(place[1])


class ChainTrees:
    """The repository of one chain, opened when it is first needed."""

    def __init__(self, store: Store, chain_id: str, mirrors: Path, data_dir: Path) -> None:
        self.problem: str | None = None
        """Why there are no patches, in words; None while nothing failed."""
        self._data_dir = data_dir
        self._chain: ChainStages | None = None
        self._git: GitRepository | None = None
        self._trees: TreeStore | None = None
        try:
            with store.reading() as tx:
                self._chain = read_chain(tx, chain_id)
            self._git = open_git(self._chain, mirrors)
        except (GitError, TaskError) as error:
            self.problem = str(error)

    def references(self) -> list[Patch] | None:
        """The reference patch of each stage, in order; None where they cannot be read."""
        if self._git is None or self._chain is None:
            return None
        try:
            pairs = [(stage.base, stage.landed) for stage in self._chain.stages]
            return list(self._git.patches(pairs, context=3))
        except GitError as error:
            self.problem = str(error)
            return None

    def states(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Patch]:
        """The patch from one tree to another, for each pair that is there; one git process for all of them."""
        wanted = list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
        if not wanted or self._git is None or self._chain is None:
            return {}
        try:
            if self._trees is None:
                self._trees = open_trees(self._chain, self._git, self._data_dir)
            missing = self._trees.missing({tree for pair in wanted for tree in pair})
            known = [pair for pair in wanted if not missing & set(pair)]
            if len(known) < len(wanted):
                self.problem = f"the data folder {self._data_dir} lacks trees of this rollout"
            if not known:
                return {}
            named = [f"{old} {new}" for old, new in known]
            with self._trees.stream(*_DIFF, lines=named) as output:
                return dict(zip(known, read_patches(output, named), strict=True))
        except GitError as error:
            self.problem = str(error)
            return {}

    def lit_lines(self, position: int) -> LitLines:
        """The lines of the stage before `position` that this stage removes or changes, by `git blame`."""
        found = LitLines({}, {})
        if self._git is None or self._chain is None or position < 2:
            return found
        earlier, later = self._chain.stages[position - 2], self._chain.stages[position - 1]
        try:
            own = self._git.run("rev-list", "--first-parent", f"{earlier.base}..{earlier.landed}").split()
            owners = dict.fromkeys([*own, earlier.landed], earlier.number)
            changed = changed_lines(self._git, later.base, later.landed, owners, earlier.number)
            for path, own_hunks in groupby(changed, lambda hunk: hunk.path):
                hunks = list(own_hunks)
                ranges = [(hunk.start, len(hunk.removed)) for hunk in hunks]
                places: Sequence[tuple[bytes, int] | None] = ()
                if _UNKNOWN not in path:
                    places = self._git.places_before(later.base, path.encode(), ranges, earlier.landed)
                for hunk in hunks:
                    found.add(hunk, places[: len(hunk.removed)])
                    places = places[len(hunk.removed) :]
        except GitError as error:
            self.problem = str(error)
        return found

    def reference_lines(self) -> frozenset[str] | None:
        """The lines that the references of the chain add or take away, without the blanks around them; but not the
        shortest, which tell nothing. None where they cannot be read."""
        references = self.references()
        if references is None:
            return None
        return frozenset(
            text
            for patch in references
            for file in patch
            for line in (*file.added, *file.removed)
            if len(text := line.strip()) >= _HIDDEN
        )
