"""Whether the words of a reading leak the reference patch of the instance: the pull request as it landed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from environments.stages import Stage
from prchain.core.errors import UsageError
from prchain.core.git import GitRepository
from prchain.core.leaks import Finding
from research.prm_replays.selection import Instance
from research.prm_windows.conversation import RealTrajectory
from trajectories.verdicts.hidden import CommentCheck, HiddenContent, of_the_reference, read_hidden


class References:
    """The reference patches in a folder of mirrors, ``owner+name`` or ``owner+name/repo``, with all their refs."""

    def __init__(self, mirrors: Path) -> None:
        self._mirrors = mirrors
        self._hidden = cache(self._read)

    def leaks(self, trajectory: RealTrajectory, last_step: int, words: str) -> list[Finding]:
        """What the words say that only the reference has, of all that the agent had read and written by that step.

        Raises `UsageError` where the instance has no such name, and `GitError` for what a mirror lacks.
        """
        told = [
            text
            for entry in trajectory.entries
            if entry.step <= last_step
            for text in (entry.content, entry.reasoning or "", *(call.arguments for call in entry.tool_calls))
        ]
        instance = Instance.of(trajectory.instance)
        if instance is None:
            raise UsageError(f"{trajectory.instance!r} is no name of an instance")
        found = CommentCheck(self._hidden(instance), 1, told=told)(words)
        return [finding for finding in found if of_the_reference(finding)]

    def _read(self, instance: Instance) -> HiddenContent:
        git = GitRepository.open(mirror_of(self._mirrors, instance.repository))
        landed, base = _landing(git, instance.number)
        return read_hidden(git, [Stage(1, instance.number, base, landed, "")])


def mirror_of(mirrors: Path, repository: str) -> Path:
    """Where the mirror of a repository, ``owner/name``, is."""
    folder = mirrors / repository.replace("/", "+")
    return folder / "repo" if (folder / "repo").is_dir() else folder


def _landing(git: GitRepository, number: int) -> tuple[str, str]:
    """The commit with which a pull request landed on any branch, and the one before it; else its head."""
    subject = re.compile(rf".*\(#{number}\)|Merge pull request #{number} .*")
    format_of_log = "--format=%H %P%x00%s"
    found = git.run("log", "--all", "--first-parent", format_of_log, f"--grep=#{number}", named=True)
    for line in found.splitlines():
        names, _, words = line.partition("\0")
        if subject.fullmatch(words) and len(names.split()) > 1:
            landed, base, *_ = names.split()
            return landed, base
    head = git.run("rev-parse", f"refs/pull/{number}/head", named=True).strip()
    base = git.run("merge-base", head, "HEAD", named=True).strip()
    return head, base if base != head else git.run("rev-parse", f"{head}^").strip()
