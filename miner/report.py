"""What people read of the mined rows: the funnel, and the page of one pull request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select

from miner.outcomes import OUTCOMES
from prchain.core.console.terminal import counted, say, say_counts, say_facts, say_some, tally
from prchain.core.errors import UsageError
from sql.store import Store, Transaction
from sql.tables import (
    Candidate,
    Chain,
    Citation,
    ClosingReference,
    Commit,
    GraphRow,
    IncompletePart,
    Landing,
    LandingFile,
    Lineage,
    MineRun,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    RefusedClaim,
    Repository,
    ReviewThread,
    Selection,
    Task,
    Trajectory,
    Validation,
)

_NONE_YET = "none yet"
_TEXT_COLUMNS = (
    "field",
    "key",
    "author",
    "state",
    "body",
    "review",
    "reply_to",
    "path",
    "line",
    "original_line",
    "side",
    "commit_sha",
    "created_at",
)


def funnel(store: Store, repository: str | None = None) -> list[dict[str, Any]]:
    """Per repository the counts from pull requests to counted citations; raises `UsageError` for an unknown one.

    The counts of ``outcomes`` add up to ``pull_requests``, those of ``landed`` to the outcome of that name, and those
    of ``refused`` with ``counted`` to ``citations``.
    """
    with store.reading() as tx:
        found = [
            _funnel_of(tx, repository_id, f"{owner}/{name}")
            for repository_id, owner, name in tx.rows(Repository, "id", "owner", "name")
            if repository is None or f"{owner}/{name}".lower() == repository.lower()
        ]
    if not found and repository is not None:
        raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
    return sorted(found, key=lambda row: str(row["repository"]).lower())


def _funnel_of(tx: Transaction, repository_id: int, name: str) -> dict[str, Any]:
    run = _last_run(tx, repository_id)
    styles = _counts(tx, Landing, repository_id, Landing.is_default, Landing.style)
    return {
        "repository": name,
        "last_run": run,
        "pull_requests": tx.count(PullRequest, repository_id=repository_id),
        "outcomes": {key[0]: count for key, count in _counts(tx, PullRequest, repository_id, PullRequest.outcome)},
        "incomplete": len(set(tx.rows(IncompletePart, "number", repository_id=repository_id))),
        "landed": {
            f"{style} on {'the default branch' if default else 'other branches'}": count
            for (default, style), count in styles
        },
        "landed_without_files": _lacking(tx, repository_id),
        "refused_claims": {
            key[0]: count for key, count in _counts(tx, RefusedClaim, repository_id, RefusedClaim.reason)
        },
        "citations": tx.count(Citation, repository_id=repository_id),
        "counted": {
            key[0]: count for key, count in _counts(tx, Citation, repository_id, Citation.relation, counted=True)
        },
        "refused": {
            key[0]: count for key, count in _counts(tx, Citation, repository_id, Citation.reason, counted=False)
        },
        "chaining": _chaining(tx, repository_id),
        "rollouts": _made_of_chains(tx, repository_id, Trajectory),
        "graphs": _made_of_chains(tx, repository_id, GraphRow),
    }


def _lacking(tx: Transaction, repository_id: int) -> int:
    """How many landings need files that the mirror lacks."""
    query = select(func.count()).where(Landing.repository_id == repository_id, Landing.missing_files > 0)
    return int(tx.connection.execute(query).scalar_one())


def _chaining(tx: Transaction, repository_id: int) -> dict[str, Any]:
    """Per strategy: what became of the landed pull requests, the chains by outcome, and their tasks and proofs by
    outcome, of which a chain has one."""
    found: dict[str, Any] = defaultdict(lambda: {"candidates": {}, "chains": {}, "tasks": {}, "proofs": {}})
    for (strategy, outcome), count in _counts(tx, Candidate, repository_id, Candidate.strategy, Candidate.outcome):
        found[strategy]["candidates"][outcome] = count
    steps: dict[str, tuple[Any, Any]] = {
        "chains": (Selection.outcome, None),
        "tasks": (func.coalesce(Task.outcome, _NONE_YET), Task),
        "proofs": (func.coalesce(Validation.outcome, _NONE_YET), Validation),
    }
    for step, (outcome_of, table) in steps.items():
        query = select(Selection.strategy, outcome_of, func.count()).join(Chain, Chain.id == Selection.chain_id)
        if table is not None:
            query = query.join(table, table.chain_id == Chain.id, isouter=True)
        query = query.where(Chain.repository_id == repository_id).group_by(Selection.strategy, outcome_of)
        for strategy, outcome, count in tx.connection.execute(query.order_by(Selection.strategy, outcome_of)):
            found[strategy][step][outcome] = count
    return dict(found)


def _made_of_chains(tx: Transaction, repository_id: int, table: type[Trajectory] | type[GraphRow]) -> dict[str, int]:
    """What was made of the repository's chains, by outcome: each once, however many strategies chose its chain."""
    query = select(table.outcome, func.count()).join(Chain, Chain.id == table.chain_id)
    query = query.where(Chain.repository_id == repository_id).group_by(table.outcome).order_by(table.outcome)
    return {str(row[0]): int(row[1]) for row in tx.connection.execute(query)}


def _counts(
    tx: Transaction, table: Any, repository_id: int, *columns: Any, **equals: Any
) -> list[tuple[tuple[Any, ...], int]]:
    query = select(*columns, func.count()).filter_by(repository_id=repository_id, **equals).group_by(*columns)
    rows = [(tuple(row[:-1]), row[-1]) for row in tx.connection.execute(query.select_from(table))]
    return sorted(rows, key=lambda row: -row[1])


def _last_run(tx: Transaction, repository_id: int) -> dict[str, Any] | None:
    columns = (MineRun.source, MineRun.started_at, MineRun.finished_at, MineRun.outcome, MineRun.reason)
    costs = (MineRun.graphql_requests, MineRun.rest_requests, MineRun.points, MineRun.replaced)
    query = select(*columns, *costs).where(MineRun.repository_id == repository_id).order_by(MineRun.id.desc()).limit(1)
    row = tx.connection.execute(query).mappings().first()
    return {**row, "replaced": row["replaced"] or {}} if row else None


def replaced_words(replaced: Mapping[str, int]) -> str:
    """What a run replaced, by kind: ``3 secrets replaced (2 github, 1 url)``; nothing where it replaced none."""
    total = sum(replaced.values())
    return f"{counted(total, 'secret')} replaced ({tally(replaced)})" if total else ""


def not_mined(store: Store) -> list[dict[str, Any]]:
    """Lines of a list whose last run failed before there was a repository to put it to."""
    with store.reading() as tx:
        runs = tx.rows(MineRun, "spec", "repository_id", "outcome", "reason", "started_at")
        last = {run[0]: run for run in runs}
    return [
        {"spec": spec, "outcome": outcome, "reason": reason, "started_at": started_at}
        for spec, repository_id, outcome, reason, started_at in last.values()
        if repository_id is None and outcome != "running"
    ]


def print_funnel(rows: list[dict[str, Any]], failed: Sequence[dict[str, Any]] = ()) -> None:
    """Print the funnel as text, and the lines of a list that came to nothing."""
    if not rows:
        say("nothing mined yet; run `prchain mine repos.txt`")
    for row in rows:
        run = row["last_run"]
        say(row["repository"])
        if run:
            requests = run["graphql_requests"] + run["rest_requests"]
            cost = f", {counted(requests, 'request')}" if run["graphql_requests"] else ""
            reason = f": {run['reason']}" if run["reason"] else ""
            say(f"  last run  {run['outcome']}, {run['started_at']}, source {run['source']}{cost}{reason}")
            if words := replaced_words(run["replaced"]):
                say(f"            {words}")
        outcomes = {name: count for name in OUTCOMES if (count := row["outcomes"].get(name))}
        say_counts("pull requests", outcomes, total=row["pull_requests"])
        if row["incomplete"]:
            say_counts("incomplete, see `prchain sql incomplete`", {}, total=row["incomplete"])
        if row["landed"]:
            say_counts("landed as", row["landed"], indent=4)
        if row["landed_without_files"]:
            say_counts("of which the mirror lacks files", {}, total=row["landed_without_files"], indent=4)
        say_counts("claims to a landing refused", row["refused_claims"])
        say_counts("citations", {}, total=row["citations"])
        say_counts("counted", row["counted"], indent=4)
        say_counts("not counted", row["refused"], indent=4)
        for strategy, chained in row["chaining"].items():
            say_counts(f"landed, strategy {strategy}", chained["candidates"])
            say_counts(f"chains, strategy {strategy}", chained["chains"])
            for step in ("tasks", "proofs"):
                if chained[step].keys() - {_NONE_YET} or step == "tasks":
                    say_counts(f"their {step}", chained[step], indent=4)
        for name in ("rollouts", "graphs"):
            if row[name]:
                say_counts(f"{name} of all chains", row[name])
        say()
    if rows:
        say("docs/outcomes.md says what each name means")
    for row in failed:
        say(f"not mined: {row['spec']}: {row['outcome']}, {row['started_at']}: {row['reason']}")


def find_pull_request(store: Store, repository: str, number: int) -> dict[str, Any]:
    """Everything that is stored of one pull request; raises `UsageError` where it is not there."""
    with store.reading() as tx:
        names = {i: f"{owner}/{name}" for i, owner, name in tx.rows(Repository, "id", "owner", "name")}
        repository_id = next((i for i, name in names.items() if name.lower() == repository.lower()), None)
        if repository_id is None:
            raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
        key = {"repository_id": repository_id, "number": number}
        columns = [column.name for column in PullRequest.__table__.columns if column.name != "repository_id"]
        rows = list(tx.rows(PullRequest, *columns, **key))
        if not rows:
            raise UsageError(f"{repository} has no pull request #{number}; it may be an issue")
        cites = ("target", "relation", "field", "syntax", "snippet", "counted", "reason", "confidence")
        cited = ("source", *cites[1:])
        changed = ("real_lines", "source_lines", "moved_lines", "inserted_lines")
        return {
            "repository": names[repository_id],
            **dict(zip(columns, rows[0], strict=True)),
            "texts": _dicts(tx, PullRequestText, _TEXT_COLUMNS, **key),
            "threads": _dicts(tx, ReviewThread, ("comment", "is_resolved", "is_outdated"), **key),
            "incomplete": _dicts(tx, IncompletePart, ("connection", "came", "total", "reason"), **key),
            "landings": _landings(tx, repository_id, number),
            "commits": _commits(tx, repository_id, number),
            "closes": _dicts(tx, ClosingReference, ("issue_repository", "issue_number"), **key),
            "cites": _dicts(tx, Citation, cites, repository_id=repository_id, source=number),
            "cited_by": _dicts(tx, Citation, cited, repository_id=repository_id, target=number),
            "changes": _dicts(tx, Lineage, ("earlier", *changed), repository_id=repository_id, later=number),
            "changed_by": _dicts(tx, Lineage, ("later", *changed), repository_id=repository_id, earlier=number),
        }


def _dicts(tx: Transaction, table: Any, columns: tuple[str, ...], **equals: Any) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in tx.rows(table, *columns, **equals)]


def _landings(tx: Transaction, repository_id: int, number: int) -> list[dict[str, Any]]:
    key = {"repository_id": repository_id, "number": number}
    columns = (
        "branch",
        "style",
        "base_sha",
        "landed_sha",
        "landed_at",
        "subject",
        "claim",
        "evidence",
        "missing_files",
    )
    landings = _dicts(tx, Landing, columns, **key)
    for landing in landings:
        files = ("status", "path", "old_path", "additions", "deletions", "note")
        landing["files"] = _dicts(tx, LandingFile, files, branch=landing["branch"], **key)
        commit = _dicts(tx, Commit, ("message",), repository_id=repository_id, sha=landing["landed_sha"])
        landing["message"] = commit[0]["message"] if commit else ""
    return landings


def _commits(tx: Transaction, repository_id: int, number: int) -> list[dict[str, Any]]:
    query = (
        select(Commit.sha, Commit.author, Commit.message)
        .join(
            PullRequestCommit,
            (PullRequestCommit.repository_id == Commit.repository_id) & (PullRequestCommit.sha == Commit.sha),
        )
        .where(Commit.repository_id == repository_id, PullRequestCommit.number == number)
        .order_by(PullRequestCommit.origin.desc(), PullRequestCommit.position)
    )
    unique = {row["sha"]: dict(row) for row in tx.connection.execute(query).mappings()}
    return list(unique.values())


def _title(landing: dict[str, Any]) -> str:
    """The title as the landing has it: below the subject of a GitHub merge, else the subject."""
    _, _, below = landing["message"].partition("\n\n")
    lines = below.splitlines()
    return str(lines[0] if landing["subject"].startswith("Merge pull request") and lines else landing["subject"])


def print_pull_request(page: dict[str, Any]) -> None:
    """Print the page of a pull request."""
    title = next((text["body"] for text in page["texts"] if text["field"] == "title"), None)
    title = title or next((_title(landing) for landing in page["landings"]), "")
    title = title or next((commit["message"].split("\n", 1)[0] for commit in page["commits"]), "")
    say(f"{page['repository']}#{page['number']}  {title}")
    reason = f" ({page['reason']})" if page["reason"] else ""
    author = f"{page['author']}, {page['state']}, created {page['created_at']}" if page["author"] else ""
    say_facts({"outcome": f"{page['outcome']}{reason}", "head": page["head_sha"] or "none", "author": author})
    say_facts({"reviews": _review_words(page)})
    for part in page["incomplete"]:
        say_facts({"incomplete": f"{part['connection'].replace('_', ' ')}: {part['reason']}"})
    for landing in page["landings"]:
        landed = f"{landing['landed_sha']} on {landing['branch']}, {landing['landed_at']}"
        say_facts({"landed": landed, "base": landing["base_sha"], "files": len(landing["files"])})
        if landing["missing_files"]:
            say_facts({"missing": f"{counted(landing['missing_files'], 'file')} of these trees, in the mirror"})
        say_some([_file_words(file) for file in landing["files"]], _SHOWN)
    say_facts({"commits": len(page["commits"])})
    subjects = [f"{commit['sha'][:12]} {next(iter(commit['message'].splitlines()), '')}" for commit in page["commits"]]
    say_some(subjects, _SHOWN)
    for issue in page["closes"]:
        say_facts({"closes": f"{issue['issue_repository']}#{issue['issue_number']}"})
    _print_citations("cites", page["cites"], "target")
    _print_citations("cited by", page["cited_by"], "source")
    _print_lineage("changes lines of", page["changes"], "earlier")
    _print_lineage("lines changed by", page["changed_by"], "later")


_SHOWN = 20
"""So many files and commits are printed."""


def _review_words(page: dict[str, Any]) -> str:
    """How many reviews of each state, and how many of their comments were resolved; empty where there are none."""
    states = Counter(text["state"] for text in page["texts"] if text["field"] == "review")
    words = [f"{count} {state.lower().replace('_', ' ')}" for state, count in sorted(states.items())]
    comments = [text for text in page["texts"] if text["field"] == "review_comment"]
    if comments:
        settled = {thread["comment"] for thread in page["threads"] if thread["is_resolved"]}
        resolved = sum((text["reply_to"] or text["key"]) in settled for text in comments)
        words.append(f"{counted(len(comments), 'comment')} ({resolved} resolved)")
    return ", ".join(words)


def _file_words(file: dict[str, Any]) -> str:
    moved = f" (from {file['old_path']})" if file["old_path"] else ""
    counts = f"  +{file['additions']} -{file['deletions']}" if file["additions"] is not None else ""
    return f"{file['status']} {file['path']}{moved}{counts}"


def _print_lineage(title: str, pairs: list[dict[str, Any]], other: str) -> None:
    """Those that `prchain chains lineage` has found; nothing where it has not run."""
    strongest = sorted(pairs, key=lambda pair: (-pair["real_lines"], -pair["inserted_lines"], pair[other]))
    if strongest:
        say_facts({title: counted(len(strongest), "pull request")})
    say_some([_lineage_words(pair, other) for pair in strongest], _SHOWN)


def _lineage_words(pair: dict[str, Any], other: str) -> str:
    inserted = f", {pair['inserted_lines']:,} put beside" if pair["inserted_lines"] else ""
    return f"#{pair[other]}  {counted(pair['real_lines'], 'line')} changed{inserted}"


def _print_citations(title: str, citations: list[dict[str, Any]], other: str) -> None:
    say_facts({title: f"{sum(citation['counted'] for citation in citations)} counted of {len(citations)}"})
    for citation in sorted(citations, key=lambda citation: (not citation["counted"], citation[other])):
        verdict = f"{citation['confidence']:.2f}" if citation["counted"] else f"no: {citation['reason']}"
        say(f"    #{citation[other]} {citation['relation']} [{citation['field']}, {citation['syntax']}] {verdict}")
        say(f"        {citation['snippet']}")
