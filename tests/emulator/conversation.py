"""The texts of a generated pull request: its body, comments, reviews, labels, issues and cross-references."""

from __future__ import annotations

import random

from tests.emulator.branches import Draft
from tests.emulator.model import (
    Account,
    Event,
    Issue,
    IssueComment,
    PullRequest,
    Review,
    ReviewComment,
    ReviewThread,
)
from tests.emulator.objects import iso
from tests.emulator.sizes import Classes, Sizes
from tests.emulator.texts import Target, choose, citation, comment, decoy, sentence
from tests.emulator.world import World

STATES = ("APPROVED", "COMMENTED", "COMMENTED", "CHANGES_REQUESTED", "DISMISSED")
ASSOCIATIONS = ("MEMBER", "CONTRIBUTOR", "CONTRIBUTOR", "NONE", "COLLABORATOR", "FIRST_TIME_CONTRIBUTOR", "OWNER")


class Conversation:
    """Makes everything of a pull request that is not git."""

    def __init__(
        self, world: World, rng: random.Random, sizes: Sizes, people: list[Account], bots: list[Account]
    ) -> None:
        self.world, self.rng, self.sizes, self.people, self.bots = world, rng, sizes, people, bots
        self.issues: list[Issue] = []
        self.tracker: list[Issue] = []
        self.foreign: list[Issue] = []
        names = ("bug", "enhancement", "docs", "CI", "good first issue", "área/✓")
        self.labels = [world.label(name) for name in names] + [world.label(f"area: {n}") for n in range(110)]
        self.milestones = [world.milestone(f"1.{n}", n + 1) for n in range(4)]

    def body(self, draft: Draft, targets: list[Target], number: int) -> str:
        """Write a body; `hold` records its citations once the pull request has a number."""
        rng = self.rng
        parts = [sentence(rng)]
        if rng.random() < 0.25:
            parts.append(decoy(rng, max(1, number - rng.randint(1, 20))))
        if targets and rng.random() < 0.45:
            parts.extend(citation(rng, target).text for target in targets[: 1 if rng.random() < 0.7 else 3])
        return "\n\n".join(parts)

    def hold(self, draft: Draft, exact: dict[str, int]) -> None:
        """Fill every connection of the draft's pull request."""
        pull, rng = draft.pull, self.rng

        def size(name: str) -> int:
            classes: Classes = getattr(self.sizes, name)
            return exact[name] if name in exact else classes.draw(rng)

        pull.labels[:] = rng.sample(self.labels, size("labels"))
        pull.milestone = choose(rng, self.milestones) if rng.random() < 0.15 else None
        self._closing(pull, size("closing"))
        self._cite_own(pull)
        for _ in range(size("comments")):
            self._comment(pull)
        for _ in range(size("reviews")):
            self._review(pull)
        for _ in range(size("threads")):
            self._thread(draft, size("thread_comments"))
        for _ in range(size("timeline")):
            self._cited_from_outside(pull)
        if rng.random() < 0.03:
            self._event(pull, "ConvertToDraftEvent", choose(self.rng, self.people))
            self._event(pull, "ReadyForReviewEvent", choose(self.rng, self.people))

    def _later(self) -> str:
        return iso(self.world.now + int(self.rng.random() ** 2 * 2_000_000))

    def _who(self) -> Account | None:
        roll = self.rng.random()
        if roll < 0.03:
            return None
        return choose(self.rng, self.bots) if roll < 0.08 else choose(self.rng, self.people)

    def _event(self, pull: PullRequest, kind: str, actor: Account | None, **data: object) -> None:
        prefix = "".join(letter for letter in kind if letter.isupper())
        event = self.world.add(prefix, Event, self._later(), kind, actor, {"pull_request": pull, **data})
        pull.timeline.append(event)

    def _closing(self, pull: PullRequest, count: int) -> None:
        pool = self.issues[-20:] if count <= min(len(self.issues), 20) and self.rng.random() < 0.85 else self.tracker
        pull.closing[:] = sorted(self.rng.sample(pool, count), key=lambda issue: issue.order)
        for issue in pull.closing[:1]:
            if self.rng.random() < 0.2:
                self._event(
                    pull,
                    "ConnectedEvent",
                    pull.author,
                    source=pull,
                    subject=issue,
                    is_cross_repository=issue.repository is not pull.repository,
                )
            if self.rng.random() < 0.05:
                self._event(
                    pull, "DisconnectedEvent", pull.author, source=pull, subject=issue, is_cross_repository=False
                )

    def _cite_own(self, pull: PullRequest) -> None:
        """Note on older pull requests' timelines that this one's body cites them, as GitHub would."""
        body = pull.body or ""
        numbered = pull.repository.numbered
        for word in {word.strip(".,:;") for word in body.split() if "#" in word[:20]}:
            head, _, digits = word.partition("#")
            if digits.isdigit() and head in {"", pull.repository.name_with_owner} and int(digits) < pull.number:
                target = numbered.get(int(digits))
                if isinstance(target, PullRequest):
                    self.world.cross_reference(target, pull)

    def _comment(self, pull: PullRequest) -> None:
        rng, when = self.rng, self._later()
        text = comment(rng)
        if rng.random() < 0.06 and pull.number > 3:
            cited = pull.repository.numbered[rng.randint(max(1, pull.number - 200), pull.number - 1)]
            sha = cited.merge_commit.oid if isinstance(cited, PullRequest) and cited.merge_commit else None
            text += "\n\n" + citation(rng, Target(pull.repository.name_with_owner, cited.number, cited.url, sha)).text
            self.world.cross_reference(cited, pull)
        issue_comment = self.world.add(
            "IC", IssueComment, when, self._who(), choose(rng, ASSOCIATIONS), text, when, pull
        )
        if rng.random() < 0.05:
            issue_comment.updated_at = issue_comment.last_edited_at = self._later_than(when)
        issue_comment.is_minimized = rng.random() < 0.02
        pull.comments.append(issue_comment)
        pull.repository.issue_comments.append(issue_comment)

    def _later_than(self, when: str) -> str:
        return max(when, self._later())

    def _review(self, pull: PullRequest) -> None:
        rng, when = self.rng, self._later()
        text = comment(rng) if rng.random() < 0.4 else ""
        review = self.world.add(
            "PRR",
            Review,
            when,
            self._who(),
            choose(rng, ASSOCIATIONS),
            text,
            when,
            pull,
            choose(rng, STATES),
            when,
            choose(rng, pull.commits).commit,
        )
        pull.reviews.append(review)

    def _thread(self, draft: Draft, count: int) -> None:
        pull, rng, world = draft.pull, self.rng, self.world
        when = self._later()
        path = choose(rng, list(draft.files))
        thread = world.add("PRRT", ReviewThread, when, pull, path, rng.randint(1, 60))
        thread.is_resolved, thread.is_outdated = rng.random() < 0.5, rng.random() < 0.3
        pull.threads.append(thread)
        hunk = f"@@ -1,3 +1,4 @@\n context\n+{choose(rng, ('return', 'raise', 'pass'))}  # {path}"
        for _ in range(count):
            review = choose(rng, pull.reviews) if pull.reviews else None
            commit = choose(rng, pull.commits).commit
            review_comment = world.add(
                "PRRC",
                ReviewComment,
                when,
                self._who(),
                choose(rng, ASSOCIATIONS),
                comment(rng),
                when,
                pull,
                thread,
                review,
                hunk,
                None if thread.is_outdated and rng.random() < 0.3 else commit,
                commit,
                reply_to=thread.comments[0] if thread.comments else None,
            )
            if review:
                review.comments.append(review_comment)
            thread.comments.append(review_comment)
            pull.repository.review_comments.append(review_comment)
            when = self._later_than(when)

    def _cited_from_outside(self, pull: PullRequest) -> None:
        source = choose(self.rng, self.foreign if self.rng.random() < 0.5 or not self.issues else self.issues)
        self._event(
            pull,
            "CrossReferencedEvent",
            source.author,
            source=source,
            target=pull,
            will_close_target=False,
            referenced_at=iso(self.world.now),
            is_cross_repository=source.repository is not pull.repository,
            url=source.url,
        )
