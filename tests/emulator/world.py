"""A GitHub universe that can be changed while it is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.emulator.gitrepo import GitRepository
from tests.emulator.model import (
    Account,
    Event,
    Issue,
    IssueComment,
    PullRequest,
    PullRequestCommit,
    Ref,
    Repository,
    Review,
    ReviewComment,
    ReviewThread,
)
from tests.emulator.objects import Changes, Commit, Signature, commit_on, iso
from tests.emulator.universe import Universe

Subject = PullRequest | Issue


class World(Universe):
    """A universe that changes: every method below is an action of people or of GitHub, and takes time.

    `home` is the repository that is mined; its git repository, where there is one, follows every change.
    """

    git: GitRepository | None = None

    def touch(self, subject: Subject) -> None:
        """Set a pull request's or issue's `updated_at` to now."""
        subject.updated_at = self.tick()

    def rename_repository(self, repository: Repository, name_with_owner: str) -> None:
        with self.lock:
            repository.former_names.append(repository.name_with_owner)
            owner, _, name = name_with_owner.partition("/")
            repository.owner, repository.name = self.account(owner, repository.owner.kind), name
            self._names[name_with_owner.lower()] = repository
            self.tick()

    def take_name(self, name_with_owner: str) -> Repository:
        """Make a new, empty repository of a name that another one has, or had; that one no longer has it."""
        with self.lock:
            self._names.pop(name_with_owner.lower(), None)
            repository = self.repository(name_with_owner)
            start = self.home.branches[self.home.default_branch].target
            repository.branches["main"] = self.add("REF", Ref, "main", start)
            self.tick()
            return repository

    def delete_repository(self, repository: Repository) -> None:
        """Take a repository off GitHub: neither its names nor its id lead anywhere."""
        with self.lock:
            self._names = {name: found for name, found in self._names.items() if found is not repository}
            self.nodes.pop(repository.id)
            self.repositories.pop(repository.database_key)
            self.tick()

    def add_issue(
        self, repository: Repository, title: str, body: str | None, author: Account | None, number: int | None = None
    ) -> Issue:
        with self.lock:
            number = number or self.next_number(repository)
            now = self.tick()
            issue = self.add("I", Issue, now, author, "NONE", body, now, repository, number, title)
            repository.numbered[number] = issue
            return issue

    def edit_issue(self, issue: Issue, *, title: str | None = None, body: str | None = None) -> None:
        """Change an issue's texts. The pull requests that close it keep their `updated_at`, as on GitHub."""
        with self.lock:
            issue.updated_at = issue.last_edited_at = self.tick()
            issue.title = issue.title if title is None else title
            issue.body = issue.body if body is None else body

    def add_pull(
        self,
        repository: Repository,
        title: str,
        body: str | None,
        author: Account | None,
        *,
        base: str | None = None,
        changes: Changes | None = None,
        number: int | None = None,
        head_ref_name: str | None = None,
        head_repository: Repository | None = None,
        head: Commit | None = None,
    ) -> PullRequest:
        """Open a pull request of one commit (or with the given head, whose commits the caller records)."""
        with self.lock:
            number = number or self.next_number(repository)
            now = self.tick()
            base = base or repository.default_branch
            target = repository.branches[base].target
            assert target is not None
            home = head_repository or repository
            if head is None:
                changes = changes or {f"added/pr{number}.txt": f"by pull request {number}\n".encode()}
                signed = self.signature(author)
                fresh: Commit | None = commit_on((target,), changes, title or "Change", signed, signed)
                head = self.enter(fresh, author) if fresh else target
            else:
                fresh = None
            pull = self.add(
                "PR",
                PullRequest,
                now,
                author,
                "CONTRIBUTOR",
                body,
                now,
                repository,
                number,
                title,
                base,
                target.oid,
                head_ref_name or f"topic-{number}",
                home,
                head,
            )
            pull.is_cross_repository = home is not repository
            pull.head_ref = self.add("REF", Ref, pull.head_ref_name, head)
            repository.numbered[number] = pull
            repository.pulls.append(pull)
            if fresh:
                pull.commits.append(self.add("PURC", PullRequestCommit, fresh, pull))
                pull.additions = sum((content or b"").count(b"\n") for content in fresh.changes.values())
                pull.changed_files = len(fresh.changes)
                self.sync_git()
            return pull

    def push(self, pull: PullRequest, message: str = "Another commit", changes: Changes | None = None) -> Commit:
        """Add one commit to a pull request's head."""
        with self.lock:
            pull.updated_at = self.tick()
            changes = changes or {f"added/push{self.now}.txt": b"pushed\n"}
            signed = self.signature(pull.author)
            commit = self.enter(commit_on((pull.head,), changes, message, signed, signed), pull.author)
            self._move_head(pull, commit)
            pull.commits.append(self.add("PURC", PullRequestCommit, commit, pull))
            pull.additions += sum((content or b"").count(b"\n") for content in changes.values())
            pull.changed_files += len(changes)
            self.sync_git()
            return commit

    def force_push(self, pull: PullRequest, message: str = "Rewritten") -> Commit:
        """Replace a pull request's commits by one on the same base."""
        with self.lock:
            pull.updated_at = self.tick()
            before = pull.head
            first = pull.commits[0].commit
            changes: Changes = {}
            for item in pull.commits:
                changes.update(item.commit.changes)
            signed = self.signature(pull.author)
            commit = self.enter(commit_on(first.parents[:1], changes, message, signed, signed), pull.author)
            self._move_head(pull, commit)
            for item in pull.commits:
                self.nodes.pop(item.id, None)
            pull.commits[:] = [self.add("PURC", PullRequestCommit, commit, pull)]
            self.event(
                pull,
                "HeadRefForcePushedEvent",
                pull.author,
                before_commit=before,
                after_commit=commit,
                ref=pull.head_ref,
            )
            self.sync_git()
            return commit

    def _move_head(self, pull: PullRequest, head: Commit) -> None:
        pull.head = head
        if pull.head_ref:
            pull.head_ref.target = head

    def enter(self, commit: Commit, user: Account | None) -> Commit:
        """Enter a commit in the index and return it."""
        commit.user = user if user and user.kind == "User" else None
        commit.repository = self.home
        self.nodes[commit.id] = commit
        return commit

    def signature(self, account: Account | None, epoch: int | None = None) -> Signature:
        login = account.login if account else "ghost"
        name = (account.name if account else None) or login
        return Signature(name, f"{login.replace('[bot]', '')}@users.noreply.example", epoch or self.now)

    def edit_pull(self, pull: PullRequest, *, title: str | None = None, body: str | None = None) -> None:
        with self.lock:
            pull.updated_at = pull.last_edited_at = self.tick()
            if title is not None:
                self.event(pull, "RenamedTitleEvent", pull.author, previous_title=pull.title, current_title=title)
                pull.title = title
            if body is not None:
                pull.body = body

    def relabel(self, pull: PullRequest, *names: str) -> None:
        """Give a pull request these labels and no others."""
        with self.lock:
            pull.updated_at = self.tick()
            pull.labels[:] = [self.label(name) for name in names]

    def retarget(self, pull: PullRequest, branch: str) -> None:
        """Let a pull request go to another branch."""
        with self.lock:
            names = {"previous_ref_name": pull.base_ref_name, "current_ref_name": branch}
            self.event(pull, "BaseRefChangedEvent", pull.author, **names)
            pull.base_ref_name, pull.updated_at = branch, self.tick()

    def resolve_thread(self, thread: ReviewThread, *, resolved: bool = True) -> None:
        """Resolve a thread or take that back; the pull request's `updated_at` stays."""
        with self.lock:
            self.tick()
            thread.is_resolved = resolved

    def close_pull(self, pull: PullRequest, *, merge_commit: Commit | None = None, merged: bool = False) -> None:
        with self.lock:
            pull.updated_at = pull.closed_at = self.tick()
            pull.state = "MERGED" if merged else "CLOSED"
            if merged:
                pull.merged_at, pull.merge_commit = pull.closed_at, merge_commit

    def merge_pull(self, pull: PullRequest, by: Account | None = None) -> Commit:
        """Land an open pull request on its base branch with a merge commit."""
        with self.lock:
            branch = pull.repository.branches[pull.base_ref_name]
            assert branch.target is not None
            changes: Changes = {}
            for item in pull.commits:
                changes.update(item.commit.changes)
            signed = self.signature(by)
            text = f"Merge pull request #{pull.number} from someone/{pull.head_ref_name}\n\n{pull.title}"
            commit = self.enter(commit_on((branch.target, pull.head), changes, text, signed, signed), by)
            branch.target, pull.merged_by, pull.landing = commit, by, "merge"
            self.close_pull(pull, merge_commit=commit, merged=True)
            self.event(pull, "MergedEvent", by, commit=commit, merge_ref_name=branch.name)
            self.sync_git()
            return commit

    def delete_head_branch(self, pull: PullRequest) -> None:
        """Delete a merged pull request's branch; GitHub retargets what is stacked on it to where that one went."""
        with self.lock:
            self.tick()
            pull.repository.branches.pop(pull.head_ref_name, None)
            for child in pull.repository.pulls:
                if child.base_ref_name == pull.head_ref_name and child.state == "OPEN":
                    old, child.base_ref_name = child.base_ref_name, pull.base_ref_name
                    names = {"old_base": old, "new_base": pull.base_ref_name}
                    self.event(child, "AutomaticBaseChangeSucceededEvent", None, **names)
                    child.updated_at = iso(self.now)

    def add_comment(
        self, subject: Subject, body: str | None, author: Account | None, *, bump: bool = True
    ) -> IssueComment:
        with self.lock:
            now = self.tick()
            comment = self.add("IC", IssueComment, now, author, "CONTRIBUTOR", body, now, subject)
            if isinstance(subject, PullRequest):
                subject.comments.append(comment)
            subject.repository.issue_comments.append(comment)
            if bump:
                subject.updated_at = now
            return comment

    def add_review(self, pull: PullRequest, state: str, body: str | None, author: Account | None) -> Review:
        with self.lock:
            now = pull.updated_at = self.tick()
            review = self.add("PRR", Review, now, author, "MEMBER", body, now, pull, state, now, pull.head)
            pull.reviews.append(review)
            return review

    def add_review_comment(
        self,
        pull: PullRequest,
        body: str | None,
        author: Account | None,
        *,
        review: Review | None = None,
        thread: ReviewThread | None = None,
        path: str = "README.md",
        bump: bool = True,
    ) -> ReviewComment:
        """Add a comment on a line, in a new thread where none is given."""
        with self.lock:
            now = self.tick()
            if thread is None:
                thread = self.add("PRRT", ReviewThread, now, pull, path, 1)
                pull.threads.append(thread)
            hunk = f"@@ -0,0 +1 @@\n+a line of {path}"
            first = thread.comments[0] if thread.comments else None
            review_comment = self.add(
                "PRRC",
                ReviewComment,
                now,
                author,
                "MEMBER",
                body,
                now,
                pull,
                thread,
                review,
                hunk,
                pull.head,
                pull.head,
                reply_to=first,
            )
            thread.comments.append(review_comment)
            if review:
                review.comments.append(review_comment)
            pull.repository.review_comments.append(review_comment)
            if bump:
                pull.updated_at = now
            return review_comment

    def edit_comment(self, comment: IssueComment | ReviewComment | Review, body: str, *, bump: bool = False) -> None:
        """Change a text. Whether GitHub then also moves the pull request's `updated_at` is not known: `bump`."""
        with self.lock:
            comment.body = body
            comment.updated_at = comment.last_edited_at = self.tick()
            if bump:
                (comment.subject if isinstance(comment, IssueComment) else comment.pull).updated_at = comment.updated_at

    def delete_comment(self, comment: IssueComment | ReviewComment) -> None:
        with self.lock:
            self.tick()
            self.nodes.pop(comment.id, None)
            if isinstance(comment, IssueComment):
                comment.subject.repository.issue_comments.remove(comment)
                if isinstance(comment.subject, PullRequest):
                    comment.subject.comments.remove(comment)
                return
            comment.pull.repository.review_comments.remove(comment)
            comment.thread.comments.remove(comment)
            if comment.review:
                comment.review.comments.remove(comment)
            if not comment.thread.comments:
                comment.pull.threads.remove(comment.thread)
                self.nodes.pop(comment.thread.id, None)

    def delete_pull(self, pull: PullRequest) -> None:
        """Remove a pull request as GitHub's staff would: no number, no node, no ref."""
        with self.lock:
            self.tick()
            repository = pull.repository
            repository.pulls.remove(pull)
            del repository.numbered[pull.number]
            for thing in (pull, *pull.comments, *pull.reviews, *pull.threads, *pull.commits, *pull.timeline):
                self.nodes.pop(thing.id, None)
            gone = set(map(id, pull.comments))
            repository.issue_comments[:] = [c for c in repository.issue_comments if id(c) not in gone]
            repository.review_comments[:] = [c for c in repository.review_comments if c.pull is not pull]
            self.sync_git()

    def event(self, pull: PullRequest, kind: str, actor: Account | None, **data: Any) -> Event:
        """Put an event on a pull request's timeline, now."""
        prefix = "".join(letter for letter in kind if letter.isupper())
        event = self.add(prefix, Event, iso(self.now), kind, actor, {"pull_request": pull, **data})
        pull.timeline.append(event)
        return event

    def cross_reference(self, target: Subject, source: Subject, *, closes: bool = False) -> Event | None:
        """Record that `source` cites `target`; only pull requests have a timeline here."""
        if not isinstance(target, PullRequest):
            return None
        return self.event(
            target,
            "CrossReferencedEvent",
            source.author,
            source=source,
            target=target,
            will_close_target=closes,
            referenced_at=iso(self.now),
            is_cross_repository=source.repository is not target.repository,
            url=source.url,
        )

    # -- git -----------------------------------------------------------------------------------------------------

    def sync_git(self) -> None:
        """Update the git repository, where there is one, to the state of the home repository."""
        if self.git is None:
            return
        refs = {f"refs/heads/{ref.name}": ref.target for ref in self.home.branches.values()}
        for pull in self.home.pulls:
            refs[f"refs/pull/{pull.number}/head"] = pull.head
            if pull.test_merge is not None and pull.state == "OPEN":
                refs[f"refs/pull/{pull.number}/merge"] = pull.test_merge
        self.git.update({name: commit for name, commit in refs.items() if commit is not None})

    def attach_git(self, path: Path) -> None:
        """Build a bare git repository of the home repository at `path` and keep it up to date."""
        self.git = GitRepository(path, head=f"refs/heads/{self.home.default_branch}")
        self.sync_git()
