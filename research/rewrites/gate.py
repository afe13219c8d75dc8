"""The gates of a curated run that are code, as `trajectories.curation.windows.making` asks them; the judge is left
out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prchain.core.errors import PrchainError
from prchain.core.git import GitRepository, mirror_path
from prchain.core.git.trees import TreeStore
from prchain.core.llm.model import Reply, ToolCall
from research.rewrites.cases import HandRewrite, RewriteStage
from research.rewrites.conversation import WORKDIR, conversation, turn, write_tree
from trajectories.agents.scaffolds.turns import named_calls, read_turn
from trajectories.agents.steps.conversation import steps_of, transcript
from trajectories.agents.tools.toolset import toolset
from trajectories.curation.graphs.graph import defined_names_at
from trajectories.curation.windows.grounding import RewriteFault, form_faults, unshown
from trajectories.curation.windows.shown import observed
from trajectories.model import Entry

ROOTS = (WORKDIR,)


@dataclass(frozen=True)
class Judged:
    """A rewrite, and why it was refused."""

    stage: RewriteStage
    rewrite: HandRewrite
    faults: tuple[RewriteFault, ...]

    @property
    def right(self) -> bool:
        """Whether the gates decided as they have to."""
        return self.rewrite.honest != bool(self.faults)


@dataclass(frozen=True)
class OpenStage:
    """A stage with its conversation."""

    stage: RewriteStage
    repository: GitRepository
    entries: Sequence[Entry]

    @property
    def text(self) -> str:
        """The conversation, whole."""
        return transcript(self.entries)

    def judged(self, rewrite: HandRewrite) -> Judged:
        """What the gates say of a rewrite. Raises `GitError`."""
        return Judged(self.stage, rewrite, tuple(self._faults(rewrite)))

    def _faults(self, rewrite: HandRewrite) -> list[RewriteFault]:
        tools = toolset("full")
        step = len(self.stage.looks) + 1
        call = ToolCall(f"call_{step}", rewrite.tool, json.dumps(rewrite.arguments))
        reply = Reply(rewrite.words, "hand", tool_calls=(call,))
        parsed = read_turn(reply, named_calls(reply, step), tools.tools, tools.ending)
        [replaced] = steps_of(turn(self.stage.replaced, step))
        faults = form_faults(rewrite.words, parsed.calls, replaced)
        if faults:
            return faults

        def defined(words: Collection[str]) -> set[str]:
            return defined_names_at(self.repository, self.stage.base, words)

        return unshown(rewrite.words, parsed.calls, observed(self.stage.query, self.entries, ROOTS), defined, ROOTS)

    def unproved(self) -> Iterator[str]:
        """What is wrong with the leaking rewrites themselves: a leak that the conversation has shown, or that is not
        where it is said to be from."""
        for rewrite in self.stage.rewrites:
            leak = rewrite.leak
            if leak is None:
                continue
            if leak in self.text:
                yield f"{self.stage.key}: the conversation has shown {leak!r}"
            before, after = (self._has(commit, leak) for commit in (self.stage.base, self.stage.landed))
            if not (before if rewrite.source == "unseen" else after and not before):
                yield f"{self.stage.key}: {leak!r} is not from the {rewrite.source}"

    def _has(self, commit: str, leak: str) -> bool:
        """Whether a line of a commit holds a text, or a path does."""
        arguments = ("grep", "-I", "-l", "--no-color", "-F", "-e", leak, commit, "--")
        with self.repository.stream(*arguments, fine=(0, 1)) as output:
            return bool(output.read()) or any(leak in path for path in self.repository.paths_at(commit))


@contextmanager
def opened(stage: RewriteStage, mirrors: Path) -> Iterator[OpenStage]:
    """A stage with its conversation. Raises `PrchainError`, `LookRefused`."""
    repository = GitRepository.open(mirror_of(stage.repository, mirrors))
    with tempfile.TemporaryDirectory(prefix="prchain-") as name:
        store = TreeStore.open(Path(name) / "store", [repository.path])
        folder = Path(name) / "base"
        folder.mkdir()
        write_tree(store, stage.base, folder)
        yield OpenStage(stage, repository, conversation(stage, folder))


def mirror_of(repository: str, mirrors: Path) -> Path:
    """The mirror of a repository of GitHub: as `prchain mine` keeps it, or in ``owner+name/repo``."""
    places = (mirror_path(mirrors, "github.com", repository), mirrors / repository.replace("/", "+") / "repo")
    for place in places:
        if place.exists():
            return place
    raise PrchainError(f"there is no mirror of {repository} in {mirrors}; clone it bare to {places[0]}")
