"""The repository of the demo: a small library of quantities with units, and how its pull requests landed.

Git makes it on the spot from the mailboxes in ``history``, one a pull request, as `git format-patch` writes them.
People, dates and words are fixed, so every commit has the same sha everywhere.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

from prchain.core.errors import GitError
from prchain.core.git.process import run_git

REPOSITORY = "demo/measures"
"""Its name, as the list of repositories and the database have it."""


class Style(StrEnum):
    """How a mailbox gets into the history."""

    PUSH = "push"
    SQUASH = "squash"
    MERGE = "merge"
    OPEN = "open"
    """It does not land: there is only a pull head."""


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """One mailbox of ``history``, and what the maintainers did with it."""

    name: str
    style: Style
    at: str
    """When it landed."""
    title: str = ""
    """The pull request's title, in the merge commit."""
    forked_before: int | None = None
    """The branch forked just before this pull request landed; None: from the newest commit."""

    @property
    def number(self) -> int:
        """The pull request's number."""
        return int(self.name[:2])

    @property
    def branch(self) -> str:
        """The contributor's branch."""
        return self.name[3:]


HISTORY = (
    LibraryChange("00-start", Style.PUSH, "2024-03-04T09:12:00+0000"),
    LibraryChange("01-readme-tests", Style.SQUASH, "2024-03-06T08:02:11+0000"),
    LibraryChange("02-read-text", Style.MERGE, "2024-03-13T08:15:40+0000", "Read quantities from text"),
    LibraryChange("03-write-text", Style.SQUASH, "2024-03-18T07:58:03+0000"),
    LibraryChange("04-own-units", Style.MERGE, "2024-03-21T08:31:27+0000", "Let callers bring units of their own"),
    LibraryChange("05-leading-sign", Style.SQUASH, "2024-03-27T08:04:55+0000"),
    LibraryChange(
        "06-readable-units", Style.MERGE, "2024-03-28T09:20:18+0000", "Choose the unit that reads best", forked_before=5
    ),
    LibraryChange("07-any-case", Style.SQUASH, "2024-04-03T08:11:09+0000"),
    LibraryChange("08-signs-between", Style.MERGE, "2024-04-08T08:40:00+0000", "Read differences again"),
    LibraryChange("09-revert-any-case", Style.SQUASH, "2024-04-09T10:03:32+0000"),
    LibraryChange("09-release", Style.PUSH, "2024-04-10T08:00:00+0000"),
    LibraryChange("10-round-first", Style.SQUASH, "2024-04-17T08:22:46+0000"),
    LibraryChange("11-temporary-units", Style.SQUASH, "2024-04-23T08:09:14+0000"),
    LibraryChange("12-decimal-comma", Style.OPEN, "2024-04-25T15:00:00+0000"),
    LibraryChange("13-columns", Style.SQUASH, "2024-05-02T08:05:31+0000"),
    LibraryChange("14-points", Style.SQUASH, "2024-05-08T09:12:47+0000"),
)
"""What happened, in order."""

_MAINTAINER = ("Mara Lindqvist", "mara@measures.example")
_SITE = ("GitHub", "noreply@measures.example")
"""Who commits what is merged or squashed by a button."""
_FROM = re.compile(r"^From: (?P<name>[^<\n]+) <(?P<email>[^>\n]+)>$", re.M)


def build(folder: Path) -> bool:
    """Make the repository at `folder`, whose parent must exist; False where it exists already and is not changed.

    It is made in another folder and moved when complete. Raises `GitError`, and `GitMissing` where there is no git.
    """
    if folder.exists():
        return False
    draft = folder.with_name(folder.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    builder = _Builder(draft)
    builder.git("init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main")
    for step in HISTORY:
        builder.take(step)
    draft.rename(folder)
    return True


class _Builder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: dict[int, str] = {}
        """Pull request to the tip of the default branch before it landed."""

    def take(self, step: LibraryChange) -> None:
        """Apply one change of the history."""
        if step.style is Style.PUSH:
            self._apply(step)
            return
        self._before[step.number] = self.git("rev-parse", "main")
        self.git("checkout", "--quiet", "-b", step.branch, self._before[step.forked_before or step.number])
        author = self._apply(step)
        self.git("update-ref", f"refs/pull/{step.number}/head", "HEAD")
        message = self.git("log", "-1", "--format=%B")
        self.git("checkout", "--quiet", "main")
        if step.style is Style.MERGE:
            words = (
                f"Merge pull request #{step.number} from {author[0].split()[0].lower()}/{step.branch}\n\n{step.title}"
            )
            self.git("merge", "--quiet", "--no-ff", "-m", words, step.branch, by=_MAINTAINER, at=step.at)
        elif step.style is Style.SQUASH:
            subject, _, body = message.partition("\n")
            self.git("merge", "--quiet", "--squash", step.branch)
            self.git("commit", "--quiet", "-m", f"{subject} (#{step.number})\n{body}", by=author, at=step.at)
        self.git("branch", "--quiet", "-D", step.branch)

    def _apply(self, step: LibraryChange) -> tuple[str, str]:
        """Commit a mailbox on top of what is checked out; returns its author's name and address."""
        mailbox = (resources.files("prchain.demo") / "history" / f"{step.name}.mbox").read_text(encoding="utf-8")
        author = next(_authors(mailbox))
        self.git("am", "--quiet", "--committer-date-is-author-date", stdin=mailbox, by=author)
        return author

    def git(self, *arguments: str, stdin: str = "", by: tuple[str, str] = _MAINTAINER, at: str | None = None) -> str:
        """Run git in the repository and return what it prints, without the last line's end."""
        committer = by if at is None else _SITE
        people = {
            "GIT_AUTHOR_NAME": by[0],
            "GIT_AUTHOR_EMAIL": by[1],
            "GIT_COMMITTER_NAME": committer[0],
            "GIT_COMMITTER_EMAIL": committer[1],
            **({"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at is not None else {}),
        }
        try:
            output = run_git(*arguments, place=self._folder, own={"TZ": "UTC", **people}, given=stdin.encode())
        except GitError as error:
            raise GitError(f"git {arguments[0]} failed while the demo's repository was made: {error}") from error
        return output.decode("utf-8", "replace").rstrip("\n")


def _authors(mailbox: str) -> Iterator[tuple[str, str]]:
    for match in _FROM.finditer(mailbox):
        yield match["name"], match["email"]
