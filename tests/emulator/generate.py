"""Generates worlds: a repository's life, one pull request after the other, deterministic by seed."""

from __future__ import annotations

import gc
import random
from pathlib import Path

from tests.emulator.branches import Branch, Draft, History, Style
from tests.emulator.conversation import Conversation
from tests.emulator.model import Account, Issue, PullRequest, PullRequestCommit, Ref, Repository
from tests.emulator.objects import Commit, iso
from tests.emulator.sizes import EDGES, Sizes
from tests.emulator.texts import AWKWARD_BODIES, Target, title
from tests.emulator.world import World

HOME, FORMER = "acme/widgets", "acme/gadgets"
OPEN_AT_ONCE = 8
RELEASE = "release/1.x"


def generate_world(seed: int, pulls: int, *, sizes: Sizes | None = None, git_dir: Path | None = None) -> World:
    """Return a world whose `home` repository has `pulls` pull requests.

    The same seed and number give the same world. With `git_dir` a bare git repository of it is built there, with
    refs/heads/*, refs/pull/N/head of every pull request and refs/pull/N/merge of the open ones that can be merged;
    the world's shas are its shas (they are git's own without it, too).
    """
    collecting = gc.isenabled()
    gc.disable()  # a growing world has no garbage
    try:
        world = _Generator(seed, sizes or Sizes.load()).run(pulls)
    finally:
        if collecting:
            gc.enable()
    if git_dir is not None:
        world.attach_git(git_dir)
    return world


class _Generator:
    def __init__(self, seed: int, sizes: Sizes) -> None:
        self.rng = random.Random(seed)
        self.world = World(seed)
        self.repository = self.world.repository(FORMER)
        self.world.rename_repository(self.repository, HOME)
        self.history = History(self.world, self.rng, self.repository)
        self.people = [self.world.account(f"dev-{n}") for n in range(40)]
        self.bots = [self.world.account(name, "Bot") for name in ("dependabot[bot]", "renovate[bot]")]
        self.odd = [
            self.world.account("old-import", "Mannequin"),
            self.world.account("acme", "Organization"),
            self.world.account("corp-user", "EnterpriseUserAccount"),
        ]
        self.fork_of: dict[str, Repository] = {}
        self.talk = Conversation(self.world, self.rng, sizes, self.people, self.bots)
        self.sizes = sizes
        self.open: list[Draft] = []
        self.landed: list[Draft] = []
        self.count = 0

    def run(self, pulls: int) -> World:
        self._neighbours()
        edges = list(EDGES if pulls >= 2 * len(EDGES) else EDGES[: pulls // 2])
        # every so many pull requests one of the exact sizes
        stride = max(1, pulls // (len(edges) + 1))
        while self.count < pulls:
            self.world.now += self.rng.randint(300, 20_000)
            if self.count and self.rng.random() < 0.18:
                self._issue()
            if len(self.open) >= OPEN_AT_ONCE or (self.open and self.rng.random() < 0.4):
                self._settle()
            else:
                exact = edges.pop(0) if edges and self.count % stride == 0 else {}
                self._open(exact)
        while len(self.open) > OPEN_AT_ONCE // 2:
            self.world.now += 600
            self._settle()
        for draft in self.open:
            draft.pull.test_merge = self.history.test_merge(draft)
        self._finish()
        return self.world

    def _neighbours(self) -> None:
        """Add other repositories: to cite and be cited by, and a private one."""
        other = self.world.repository("someoneelse/project")
        people = self.people
        self.talk.foreign = [
            self.world.add_issue(other, f"Breaks with {HOME}", "See above.", people[0]) for _ in range(30)
        ]
        tracker = self.world.repository("acme/tracker")
        self.talk.tracker = [self.world.add_issue(tracker, f"Task {n}", "", people[n % 40]) for n in range(110)]
        self.world.repository("acme/secret", is_private=True)

    def _number(self) -> int:
        return len(self.repository.numbered) + 1

    def _author(self) -> Account | None:
        roll = self.rng.random()
        if roll < 0.02:
            return None
        return self.rng.choice(self.odd) if roll < 0.03 else self.rng.choice(self.people)

    def _issue(self) -> Issue:
        body = self.rng.choice(("It fails.", "", None, "Since the last release."))
        issue = self.world.add_issue(self.repository, title(self.rng), body, self._author(), self._number())
        self.talk.issues.append(issue)
        if self.rng.random() < 0.1:
            self.world.add_comment(issue, "Me too", self._author())
        return issue

    # -- opening -------------------------------------------------------------------------------------------------

    def _open(self, exact: dict[str, int]) -> None:
        draft = self._draft(exact)
        number = self._number()
        rng, world = self.rng, self.world
        now = iso(world.now)
        home = self.repository if draft.same_repository else self._fork(draft.author)
        pull = world.add(
            "PR",
            PullRequest,
            now,
            draft.author,
            "MEMBER" if draft.same_repository else "CONTRIBUTOR",
            draft.body,
            now,
            self.repository,
            number,
            draft.title,
            draft.base.name,
            draft.base.head.oid,
            draft.head_name(number),
            home,
            draft.head,
        )
        pull.is_cross_repository = home is not self.repository
        pull.head_ref = world.add("REF", Ref, pull.head_ref_name, draft.head)
        self.repository.numbered[number] = pull
        self.repository.pulls.append(pull)
        draft.pull = pull
        if draft.base_pull and rng.random() < 0.5:
            pull.base_ref_name, pull.base_ref_oid = draft.base_pull.pull.head_ref_name, draft.base_pull.head.oid
        self._list_commits(draft)
        awkward = AWKWARD_BODIES[self.count] if self.count < len(AWKWARD_BODIES) else None
        if self.count < len(AWKWARD_BODIES):
            pull.body = awkward
            pull.title += " ünïcode ✓ 🙈" if self.count % 3 == 1 else ""
        pull.is_draft = rng.random() < 0.05
        self.count += 1
        self.open.append(draft)
        self.talk.hold(draft, exact)

    def _draft(self, exact: dict[str, int]) -> Draft:
        rng, history = self.rng, self.history
        author = self._author()
        commits = exact.get("commits", self.sizes.commits.draw(rng))
        roll = rng.random()
        draft: Draft | None = None
        if "commits" not in exact and self.landed:
            recent = self.landed[-min(len(self.landed), 40) :]
            if roll < 0.03:
                draft = history.revert(rng.choice(recent), author)
            elif roll < 0.07:
                draft = history.backport(rng.choice(recent), author, RELEASE)
            elif roll < 0.12:
                draft = history.bump(rng.choice(self.bots))
            elif roll < 0.18:
                bases = [d for d in self.open if d.same_repository and d.base is history.main and not d.base_pull]
                draft = history.stacked(rng.choice(bases), author, commits) if bases else None
        if draft is None:
            draft = history.ordinary(author, commits, same_repository=rng.random() < 0.45)
            draft.exact = "commits" in exact
            draft.body = self.talk.body(draft, self._targets(), self._number())
        return draft

    def _targets(self) -> list[Target]:
        """Return what a new text can cite: recent pull requests and issues of the home repository."""
        numbered = self.repository.numbered
        last = len(numbered)
        if not last:
            return []
        picks = {self.rng.randint(max(1, last - 300), last) for _ in range(3)}
        found = []
        for number in sorted(picks):
            it = numbered[number]
            sha = it.merge_commit.oid if isinstance(it, PullRequest) and it.merge_commit else None
            found.append(Target(HOME, number, it.url, sha))
        return found

    def _fork(self, author: Account | None) -> Repository | None:
        """Return the author's fork; None where it was deleted, as a ghost's always is."""
        if author is None or self.rng.random() < 0.06:
            return None
        if author.login not in self.fork_of:
            fork = self.world.repository(f"{author.login}/widgets", is_fork=True, parent=self.repository)
            self.fork_of[author.login] = fork
        return self.fork_of[author.login]

    def _list_commits(self, draft: Draft) -> None:
        pull, world = draft.pull, self.world
        for old in pull.commits:
            world.nodes.pop(old.id, None)
        pull.commits[:] = [world.add("PURC", PullRequestCommit, commit, pull) for commit in draft.commits]
        pull.changed_files, pull.additions, pull.deletions = draft.counts()

    # -- settling ------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Land or close one open pull request that does not wait for another."""
        rng, world = self.rng, self.world
        ready = [d for d in self.open if d.base_pull is None or d.base_pull not in self.open]
        draft = rng.choice(ready)
        self.open.remove(draft)
        pull = draft.pull
        if draft.base_pull and draft.base_pull.style is None:
            self._close(draft)
            return
        if rng.random() < 0.12:
            self._force_push(draft, self.history.amend(draft))
        behind = draft.fork is not draft.base.head and not draft.base_pull
        if rng.random() < 0.05 and behind and not draft.exact:
            draft.commits = [*draft.commits, self.history.update_branch(draft)]
            self._show_head(draft)
        style = self._style(draft)
        if style is None:
            self._close(draft)
            return
        if style == "fast_forward" and draft.fork is not draft.base.head:
            self._force_push(draft, self.history.rebase(draft))
        if rng.random() < 0.05:
            world.event(pull, "RenamedTitleEvent", draft.author, previous_title="WIP", current_title=pull.title)
        landed = self.history.land(draft, style)
        self.landed.append(draft)
        pull.updated_at = pull.closed_at = iso(world.now)
        pull.landing = style
        pull.is_draft = False
        if style == "by_hand":
            pull.state = "CLOSED"
        else:
            pull.state, pull.merged_at = "MERGED", pull.closed_at
            pull.merged_by = rng.choice(self.people[:8])
            # GitHub has forgotten the merge commit of some old pull requests
            pull.merge_commit = landed if rng.random() > 0.015 else None
            world.event(pull, "MergedEvent", pull.merged_by, commit=pull.merge_commit, merge_ref_name=draft.base.name)
        world.event(pull, "ClosedEvent", pull.merged_by)
        self._settled(draft)
        self._rebase_children(draft, style)

    def _style(self, draft: Draft) -> Style | None:
        roll = self.rng.random()
        if roll < 0.16:
            return None
        if not draft.single_parented:
            return "merge" if roll < 0.5 else "squash"
        for bound, style in ((0.4, "merge"), (0.75, "squash"), (0.9, "rebase"), (0.97, "fast_forward")):
            if roll < bound:
                return style  # type: ignore[return-value]
        return "by_hand"

    def _close(self, draft: Draft) -> None:
        pull, world, rng = draft.pull, self.world, self.rng
        self.history.release(draft)
        pull.updated_at = pull.closed_at = iso(world.now)
        pull.state = "CLOSED"
        world.event(pull, "ClosedEvent", draft.author)
        if rng.random() < 0.2 and len(self.repository.pulls) > 1:
            canonical = rng.choice(self.repository.pulls)
            if canonical is not pull:
                world.event(
                    pull,
                    "MarkedAsDuplicateEvent",
                    draft.author,
                    canonical=canonical,
                    duplicate=pull,
                    is_cross_repository=False,
                )
        self._settled(draft)

    def _settled(self, draft: Draft) -> None:
        """The head branch is often deleted afterwards; a few pull requests are locked."""
        pull = draft.pull
        if self.rng.random() < 0.6:
            pull.head_ref = None
            self.world.event(pull, "HeadRefDeletedEvent", draft.author, head_ref=None, head_ref_name=pull.head_ref_name)
        if self.rng.random() < 0.02:
            pull.locked, pull.active_lock_reason = True, "RESOLVED"
            self.world.event(pull, "LockedEvent", self.people[0], lock_reason="RESOLVED")

    def _force_push(self, draft: Draft, new: list[Commit]) -> None:
        pull, before = draft.pull, draft.head
        draft.commits = new
        self._show_head(draft)
        self.world.event(
            pull,
            "HeadRefForcePushedEvent",
            draft.author,
            before_commit=before,
            after_commit=draft.head,
            ref=pull.head_ref,
        )

    def _show_head(self, draft: Draft) -> None:
        draft.pull.head = draft.head
        if draft.pull.head_ref:
            draft.pull.head_ref.target = draft.head
        self._list_commits(draft)

    def _rebase_children(self, draft: Draft, style: str) -> None:
        for child in [d for d in self.open if d.base_pull is draft]:
            pull = child.pull
            if pull.base_ref_name != draft.base.name:
                self.world.event(
                    pull,
                    "BaseRefChangedEvent",
                    child.author,
                    previous_ref_name=pull.base_ref_name,
                    current_ref_name=draft.base.name,
                )
                pull.base_ref_name = draft.base.name
            pull.base_ref_oid = draft.base.head.oid
            if style != "merge":
                self._force_push(child, self.history.rebase(child))

    def _finish(self) -> None:
        """Sort connections by time, add branches as refs, and set the clock after the last event."""
        world, repository = self.world, self.repository
        latest = iso(world.now)
        branches: list[Branch] = [self.history.main, *self.history.others.values()]
        for branch in branches:
            repository.branches[branch.name] = world.add("REF", Ref, branch.name, branch.head)
        for draft in self.open:
            if draft.same_repository and draft.pull.head_ref:
                repository.branches[draft.pull.head_ref_name] = draft.pull.head_ref
        for pull in repository.pulls:
            for connection in (pull.comments, pull.reviews, pull.threads, pull.timeline):
                connection.sort(key=lambda thing: thing.order)
            dated = (*pull.comments[-1:], *pull.reviews[-1:], *(c for t in pull.threads for c in t.comments[-1:]))
            pull.updated_at = max((pull.updated_at, *(thing.updated_at for thing in dated)))
            latest = max(latest, pull.updated_at)
        repository.updated_at = latest
        while iso(world.now) <= latest:
            world.now += 86_400
        world.changes += 1
