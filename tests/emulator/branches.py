"""The git side of a generated repository: branches, the changes of pull requests, and how they land.

No two pull requests that are open at once touch the same file, so every landing is clean and brings exactly the changes
of its pull request.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

from tests.emulator.model import Account, PullRequest, Repository
from tests.emulator.objects import Changes, Commit, Signature, commit_on
from tests.emulator.texts import WORDS, sentence, title
from tests.emulator.world import World

Style = Literal["merge", "squash", "rebase", "fast_forward", "by_hand"]
DIRECTORIES, FILES_AT_MOST = 40, 800


@dataclass(slots=True, eq=False)
class Branch:
    name: str
    head: Commit


@dataclass(slots=True, eq=False)
class Draft:
    """A pull request as git sees it. `files` is its net effect, `before` the earlier content of the same paths."""

    author: Account | None
    title: str
    body: str | None
    base: Branch
    fork: Commit
    commits: list[Commit]
    same_repository: bool
    files: Changes
    before: Changes
    branch_name: str = "topic"
    base_pull: Draft | None = None
    reverts: Draft | None = None
    style: Style | None = None
    landed: Commit | None = None
    exact: bool = False
    """Whether its number of commits was requested and must not change."""
    pull: PullRequest = field(init=False)

    @property
    def head(self) -> Commit:
        return self.commits[-1]

    @property
    def single_parented(self) -> bool:
        return all(len(commit.parents) == 1 for commit in self.commits)

    def head_name(self, number: int) -> str:
        return f"{self.branch_name}-{number}"

    def counts(self) -> tuple[int, int, int]:
        """Return changed files, additions, deletions. Lines are unique in a file and keep their order, so sets do."""
        added = removed = 0
        for path, content in self.files.items():
            new, old = set((content or b"").splitlines()), set((self.before[path] or b"").splitlines())
            added += len(new - old)
            removed += len(old - new)
        return len(self.files), added, removed


class History:
    """The branches of one repository and all operations on them."""

    def __init__(self, world: World, rng: random.Random, repository: Repository) -> None:
        self.world, self.rng, self.repository = world, rng, repository
        self.maintainer = world.account("maintainer")
        changes: Changes = {"README.md": b"# Widgets\n", "LICENSE": b"None\n"}
        self._paths: list[str] = []
        self._lines = 0
        for _ in range(20):
            path = self._new_path()
            changes[path] = self._fresh_lines(5)
            self._paths.append(path)
        signature = world.signature(self.maintainer)
        root = world.enter(commit_on((), changes, "Initial commit", signature, signature), self.maintainer)
        self.main = Branch(repository.default_branch, root)
        self.others: dict[str, Branch] = {}
        self._locked: set[tuple[str, str]] = set()
        self._landings = 0

    # -- pull requests -------------------------------------------------------------------------------------------

    def ordinary(
        self, author: Account | None, commits: int, *, same_repository: bool, on: Draft | None = None
    ) -> Draft:
        """Draft a pull request of `commits` commits on new and old files, on main or on the head of another draft."""
        rng = self.rng
        fork = on.head if on else self.main.head
        paths = self._pick_paths(fork, 1 + int(rng.random() ** 2 * 4))
        before: Changes = {path: fork.tree.get(path) for path in paths}
        files = dict(before)
        new_commits: list[Commit] = []
        head = fork
        for index in range(commits):
            path = paths[index % len(paths)] if index else paths[0]
            changes: Changes = {path: self._edited(files[path], first=index < len(paths))}
            if index == commits - 1:  # whatever was picked is touched in the end
                changes |= {p: self._edited(files[p], first=True) for p in paths if files[p] == before[p] and p != path}
            files |= changes
            head = self._commit((head,), changes, self._message(index), author)
            new_commits.append(head)
        draft = Draft(author, title(rng), None, self.main, fork, new_commits, same_repository, files, before)
        return self._lock(draft)

    def stacked(self, on: Draft, author: Account | None, commits: int) -> Draft:
        draft = self.ordinary(author, commits, same_repository=True, on=on)
        draft.base_pull, draft.branch_name = on, "stack"
        return draft

    def revert(self, of: Draft, author: Account | None) -> Draft | None:
        """Draft the revert of a landed pull request; None where its files have moved on."""
        if of.landed is None or of.base is not self.main or not self._unmoved(self.main, of.files):
            return None
        number = of.pull.number
        if of.reverts:
            name = of.reverts.title
            head, body = f'Reland "{name}"', f"Relands #{of.reverts.pull.number}, which #{number} reverted."
        else:
            head = f'Revert "{of.title} (#{number})"' if of.style == "squash" else f'Revert "{of.title}"'
            body = f"Reverts {self.repository.name_with_owner}#{number}"
        message = f"{head}\n\nThis reverts commit {of.landed.oid}."
        commit = self._commit((self.main.head,), of.before, message, author)
        draft = Draft(author, head, body, self.main, self.main.head, [commit], True, dict(of.before), dict(of.files))
        draft.reverts, draft.branch_name = of, f"revert-{number}"
        return self._lock(draft)

    def backport(self, of: Draft, author: Account | None, branch: str) -> Draft | None:
        """Draft the cherry-pick of a landed pull request onto a release branch; None where it does not apply."""
        release = self.others.get(branch)
        if release is None or of.landed is None or of.base is not self.main or not self._unmoved(release, of.before):
            return None
        number = of.pull.number
        message = f"{of.title} (#{number})\n\n(cherry picked from commit {of.landed.oid})"
        commit = self._commit((release.head,), of.files, message, author)
        head = self.rng.choice((f"[{branch}] {of.title} (#{number})", f"Backport PR #{number}: {of.title}"))
        body = self.rng.choice(
            (f"Backport of #{number}.", f"Backports #{number} to {branch}", f"Cherry-pick of {of.landed.oid}")
        )
        draft = Draft(author, head, body, release, release.head, [commit], True, dict(of.files), dict(of.before))
        draft.branch_name = f"backport-{number}"
        return self._lock(draft)

    def bump(self, bot: Account) -> Draft | None:
        """Draft a bot's version bump, whose body is full of another project's numbers."""
        rng = self.rng
        name, old = rng.choice(WORDS), rng.randint(1, 60)
        path = f"requirements/{name}.txt"
        if (self.main.name, path) in self._locked:
            return None
        head = f"Bump {name} from 1.{old} to 1.{old + 1}"
        notes = "\n".join(f"- Fix a thing by @x in #{rng.randint(1, 400)}" for _ in range(12))
        notes = f"<details>\n<summary>Release notes</summary>\n\n{notes}\n</details>"
        body = f"Bumps {name} from 1.{old} to 1.{old + 1}.\n{notes}"
        self._lines += 1
        files: Changes = {path: f"{name}==1.{old + 1}.{self._lines}\n".encode()}
        before: Changes = {path: self.main.head.tree.get(path)}
        commit = self._commit((self.main.head,), files, f"{head}\n\nSigned-off-by: {bot.login}", bot)
        draft = Draft(bot, head, body, self.main, self.main.head, [commit], True, files, before)
        draft.branch_name = f"{bot.login.replace('[bot]', '')}/pip/{name}"
        return self._lock(draft)

    # -- changing heads ------------------------------------------------------------------------------------------

    def amend(self, draft: Draft) -> list[Commit]:
        """Return the draft's commits with another last one."""
        last = draft.head
        path = next((p for p, content in last.changes.items() if content is not None and p in draft.files), None)
        changes = dict(last.changes)
        if path is not None and not draft.reverts:
            changes[path] = draft.files[path] = self._edited(changes[path], first=False)
        commit = self._commit(last.parents, changes, last.message, draft.author)
        return [*draft.commits[:-1], commit]

    def rebase(self, draft: Draft) -> list[Commit]:
        """Return the draft's commits on the tip of its base; merges of the base drop out."""
        draft.fork = draft.base.head
        return self._replay(draft, draft.author)

    def update_branch(self, draft: Draft) -> Commit:
        """Return a merge of the base branch into the draft's head."""
        base = draft.base.head
        changes = {p: c for p, c in draft.fork.tree.changes_to(base.tree).items() if p not in draft.files}
        name = f"Merge branch '{draft.base.name}' into {draft.pull.head_ref_name}"
        return self._commit((draft.head, base), changes, name, draft.author)

    # -- landing -------------------------------------------------------------------------------------------------

    def land(self, draft: Draft, style: Style) -> Commit:
        """Move the base branch by the draft and return the landed commit."""
        branch, pull = draft.base, draft.pull
        tip, head = branch.head, draft.head
        if style == "merge":
            owner = pull.head_repository.owner.login if pull.head_repository else "unknown"
            text = f"Merge pull request #{pull.number} from {owner}/{pull.head_ref_name}\n\n{pull.title}"
            landed = self._commit((tip, head), draft.files, text, self.maintainer)
        elif style == "squash":
            own = "\n\n".join(f"* {commit.message}" for commit in draft.commits)
            text = f"{pull.title} (#{pull.number})" + (f"\n\n{own}" if len(draft.commits) > 1 else "")
            landed = self._commit((tip,), draft.files, text, draft.author, committer=self.maintainer)
        elif style == "rebase":
            landed = self._replay(draft, self.maintainer)[-1]
        elif style == "by_hand":
            text = f"{pull.title}\n\nCloses #{pull.number}"
            landed = self._commit((tip,), draft.files, text, draft.author, committer=self.maintainer)
        else:
            landed = head
        branch.head = landed
        draft.style, draft.landed = style, landed
        if branch is self.main:
            self._paths.extend(
                p for p, old in draft.before.items() if old is None and not p.startswith("requirements/")
            )
        self.release(draft)
        self._landings += 1
        if self._landings == 6:
            self.others["release/1.x"] = Branch("release/1.x", self.main.head)
        if self.rng.random() < 0.03:
            self._push_directly(pull)
        return landed

    def release(self, draft: Draft) -> None:
        """Unlock the files of a landed or closed draft."""
        self._locked.difference_update((draft.base.name, path) for path in draft.files)

    def test_merge(self, draft: Draft) -> Commit:
        """Return what refs/pull/N/merge of an open pull request holds."""
        text = f"Merge {draft.head.oid} into {draft.base.head.oid}"
        tree = draft.files | (draft.base_pull.files if draft.base_pull and draft.base_pull.style is None else {})
        return self._commit((draft.base.head, draft.head), tree, text, draft.author)

    def _push_directly(self, pull: PullRequest) -> None:
        """Commit to main without a pull request; its message mentions one, which GitHub notes on the timeline."""
        self._lines += 1
        log = (self.main.head.tree.get("CHANGELOG.md") or b"") + b"- change %d\n" % self._lines
        text = f"Note #{pull.number} in the changelog"
        commit = self.main.head = self._commit((self.main.head,), {"CHANGELOG.md": log}, text, self.maintainer)
        self.world.event(
            pull,
            "ReferencedEvent",
            self.maintainer,
            commit=commit,
            commit_repository=self.repository,
            subject=pull,
            is_cross_repository=False,
            is_direct_reference=True,
        )

    # -- small parts ---------------------------------------------------------------------------------------------

    def _commit(
        self,
        parents: tuple[Commit, ...],
        changes: Changes,
        message: str,
        author: Account | None,
        *,
        committer: Account | None = None,
    ) -> Commit:
        author_line = self.world.signature(author)
        committer_line = self.world.signature(committer) if committer else author_line
        return self.world.enter(commit_on(parents, dict(changes), message, author_line, committer_line), author)

    def _replay(self, draft: Draft, committer: Account | None) -> list[Commit]:
        head, replayed = draft.base.head, []
        for commit in draft.commits:
            if len(commit.parents) == 1:
                # committed a second later than anything so far, so that a replay in place is a commit of its own
                self.world.now += 1
                committer_line: Signature = self.world.signature(committer)
                fresh = commit_on((head,), commit.changes, commit.message, commit.author_line, committer_line)
                head = self.world.enter(fresh, draft.author)
                replayed.append(head)
        return replayed

    def _lock(self, draft: Draft) -> Draft:
        self._locked.update((draft.base.name, path) for path in draft.files)
        return draft

    def _unmoved(self, branch: Branch, state: Changes) -> bool:
        tree = branch.head.tree
        return all((branch.name, path) not in self._locked and tree.get(path) == old for path, old in state.items())

    def _pick_paths(self, fork: Commit, count: int) -> list[str]:
        """Pick files that are not locked; a file that main changed since the fork would not land cleanly."""
        found: list[str] = []
        main = self.main.head.tree
        for _ in range(count):
            path = self.rng.choice(self._paths)
            if self.rng.random() < 0.35 and len(self._paths) < FILES_AT_MOST:
                found.append(self._new_path())
            elif (self.main.name, path) not in self._locked and path not in found:
                content = fork.tree.get(path)
                if content is not None and content == main.get(path):
                    found.append(path)
        return found or [self._new_path()]

    def _new_path(self) -> str:
        self._lines += 1
        return f"src{self._lines % DIRECTORIES:02d}/part_{self._lines}.py"

    def _fresh_lines(self, count: int) -> bytes:
        out = []
        for _ in range(count):
            self._lines += 1
            out.append(f"{self.rng.choice(WORDS)}_{self._lines} = {self._lines}\n")
        return "".join(out).encode()

    def _edited(self, content: bytes | None, *, first: bool) -> bytes:
        """Return a file with lines added and, at the first touch of a larger one, one replaced and the oldest cut."""
        lines = (content or b"").splitlines(keepends=True)
        if first and len(lines) > 4:
            lines[self.rng.randrange(len(lines))] = self._fresh_lines(1)
            del lines[: max(0, len(lines) - 60)]
        return b"".join(lines) + self._fresh_lines(1 + int(self.rng.random() * 6))

    def _message(self, index: int) -> str:
        subject = title(self.rng)
        return subject if index % 2 else f"{subject}\n\n{sentence(self.rng)}"
