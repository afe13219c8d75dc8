"""What people read of chains: the result of a run, the list, and the page of one chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import func, select

from chains import outcomes
from chains.addresses import pull_request_url
from chains.history import MERGE_PREFIX, display_subject, title_below
from chains.meanings import MEANINGS
from chains.options import EDGE_RULES, BuildReport
from prchain.core.console.terminal import counted, listed, say, say_facts, say_table, shortened, tally
from prchain.core.errors import UsageError
from sql.chosen import find_chain, resolved
from sql.outcomes import SELECTED
from sql.store import Store, Transaction
from sql.strength import read_strengths, worst
from sql.tables import (
    Candidate,
    Chain,
    ChainStage,
    Commit,
    Lineage,
    PullRequestCommit,
    PullRequestText,
    Repository,
    Selection,
    Task,
)

_WIDTH = 100
"""Characters of a subject, or of the detail of a sign."""

_REASONS = 4
"""Why pull requests are in no chain, that `chains build` tells."""


def report_row(report: BuildReport) -> dict[str, Any]:
    """The result of a run in one repository, for machines."""
    return {
        "repository": report.repository,
        "error": str(report.error) if report.error else None,
        "landed": report.landed,
        "candidates": dict(report.candidates.most_common()),
        "edges": dict(report.edges.most_common()),
        "sources": dict(report.sources.most_common()),
        "relations": dict(report.relations.most_common()),
        "chains": report.chains,
        "lengths": {str(length): count for length, count in sorted(report.lengths.items())},
        "added": report.added,
        "kept": report.kept,
        "frozen": report.frozen,
        "gone": report.gone,
        "retired": report.retired,
        "stale": report.stale,
        "unfinished": report.unfinished,
    }


def print_build(reports: Sequence[BuildReport]) -> None:
    """Print the result of a run."""
    for report in reports:
        if report.error:
            say(f"{report.repository}: {report.error.name}: {report.error}", err=True)
            continue
        lengths = tally({f"of {length}": count for length, count in sorted(report.lengths.items())})
        chains = counted(report.chains, "chain") + (f" ({lengths} stages)" if lengths else "")
        changes = {"new": report.added, "frozen by their tasks": report.frozen}
        changes_text = tally(changes | {"gone": report.gone, "retired": report.retired})
        say(f"{report.repository}: {chains}" + (f"; {changes_text}" if changes_text else ""))
        _print_hints(report)
        if report.stale:
            stale = counted(report.stale, "frozen chain")
            say(f"  history was rewritten: {stale} with stages that are no longer landed so; --reselect retires them")
        _print_left_out(report)
    if any(report.candidates for report in reports):
        say("`prchain sql dropped` and `prchain sql pairs` count every reason; docs/outcomes.md says what they mean")
    if not reports:
        say("nothing mined yet; run `prchain mine repos.txt`")


def _print_left_out(report: BuildReport) -> None:
    """Print how many pull requests are in chains, and the commonest reasons why others are not; the same of pairs."""
    counts = report.candidates
    taken = counts[outcomes.CHAINED] + counts[outcomes.FROZEN]
    if not counts:
        return
    say(f"  {taken:,} of {counted(counts.total(), 'landed pull request')} in chains; the others:")
    left = [(name, count) for name, count in counts.most_common() if name not in {outcomes.CHAINED, outcomes.FROZEN}]
    rows = [(f"{count:,}", name, MEANINGS[name]) for name, count in left[:_REASONS]]
    if rest := left[_REASONS:]:
        rows.append((f"{sum(count for _, count in rest):,}", "", f"for {counted(len(rest), 'other reason')}"))
    say_table((), rows, indent=4)
    if report.edges:
        kept = tally(dict(report.relations.most_common()))
        others = tally({name: count for name, count in report.edges.most_common() if name != outcomes.KEPT})
        words = f"{report.edges[outcomes.KEPT]:,} of {counted(report.edges.total(), 'pair')} can be used"
        say(f"  {words}" + (f" ({kept})" if kept else "") + (f"; {others}" if others else ""))


def _print_hints(report: BuildReport) -> None:
    """Print what the user can do about unfinished mining, a filter that drops a whole repository, and no chains."""
    if report.lineage_error:
        say(f"  without lineage: {report.lineage_error}", err=True)
    if report.unfinished:
        say("  mining it has not ended: more may be found; run `prchain mine` again, then this", err=True)
    if report.benchmark:
        say(f"  it is part of a benchmark ({report.benchmark}) and dropped; --allow-benchmarks keeps it")
    for outcome, (problem, remedy) in _LICENCES.items():
        if count := report.candidates[outcome]:
            say(f"  {count:,} of {counted(report.landed, 'landed pull request')} dropped: {problem}; {remedy}")
    if not report.chains and not report.benchmark and not report.unfinished:
        say(f"  no chain: {'; '.join(_remedies(report))}")


_LICENCES = {
    "licence": (
        "the repository's licence at its base is not among those allowed",
        "--licence SPDX allows one more, --licence any all",
    ),
    "licence_unknown": ("no licence was recognised at the base", "--licence any keeps such"),
}
"""Outcome to the problem of these pull requests, and the option that keeps them. Licences change in a history."""


def _remedies(report: BuildReport) -> Iterator[str]:
    """What the user can try where no chain was found, the likeliest first."""
    if not report.landed:
        yield "no pull request has landed; `prchain status` says what became of them"
        return
    if report.strategy not in EDGE_RULES:
        yield "`prchain sql dropped` lists what filters dropped; --keep FILTER switches one off"
        return
    if not report.by_api:
        yield "with a GITHUB_TOKEN, `prchain mine` finds more citations than git alone holds"
    if report.edges[outcomes.BELOW_FLOOR]:
        yield f"a lower --floor takes {counted(report.edges[outcomes.BELOW_FLOOR], 'more pair')}"
    if report.edges[outcomes.STAGE_DROPPED]:
        yield f"--keep FILTER saves some of {counted(report.edges[outcomes.STAGE_DROPPED], 'pair')} that a filter broke"
    if report.edges[outcomes.KEPT]:
        yield "a lower --min takes shorter ones"
    if report.strategy == "reference" and report.edges[outcomes.UNUSED_SOURCE]:
        yield f"--strategy evidence takes {counted(report.edges[outcomes.UNUSED_SOURCE], 'pair')} that nobody cited"
    else:
        yield "--strategy temporal needs no citations"


def find_chains(
    store: Store, strategy: str, *, retired: bool = False, repository: str | None = None
) -> list[dict[str, Any]]:
    """The chains of a strategy as rows; raises `UsageError` for a repository that was not mined."""
    outcome = outcomes.RETIRED if retired else SELECTED
    with store.reading() as tx:
        strategy = resolved(tx, strategy)
        names = {id_: f"{owner}/{name}" for id_, owner, name in tx.rows(Repository, "id", "owner", "name")}
        if repository is not None and repository.lower() not in {name.lower() for name in names.values()}:
            raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
        query = (
            select(
                Chain.id,
                Chain.repository_id,
                Chain.length,
                Chain.language,
                Chain.licence,
                Selection.score,
                Task.outcome,
            )
            .join(Selection, Selection.chain_id == Chain.id)
            .outerjoin(Task, Task.chain_id == Chain.id)
            .where(Selection.strategy == strategy, Selection.outcome == outcome)
        )
        stages, proofs = _stages(tx), read_strengths(tx)
        rows = []
        for chain, repository_id, length, language, licence, score, task in tx.connection.execute(query):
            if repository is not None and names[repository_id].lower() != repository.lower():
                continue
            chain_stages = stages[chain]
            rows.append(
                {
                    "id": chain,
                    "repository": names[repository_id],
                    "length": length,
                    "numbers": [stage["number"] for stage in chain_stages],
                    "language": language or "",
                    "licence": licence,
                    "score": score,
                    "confidence": min(
                        (s["confidence"] for s in chain_stages if s["confidence"] is not None), default=0.0
                    ),
                    "lines": sum(stage["source_lines"] for stage in chain_stages),
                    "date": chain_stages[-1]["landed_at"],
                    "subject": chain_stages[0]["subject"],
                    "task": task,
                    "proof": worst(proofs.get(chain, {}).values()),
                }
            )
    return rows


def _stages(tx: Transaction, chain: str | None = None) -> dict[str, list[dict[str, Any]]]:
    columns = (
        "chain_id",
        "position",
        "number",
        "branch",
        "base_sha",
        "landed_sha",
        "landed_at",
        "subject",
        "source_files",
        "source_lines",
        "test_files",
        "test_lines",
        "relation",
        "confidence",
        "signs",
        "worth",
        "worth_signs",
    )
    found: dict[str, list[dict[str, Any]]] = {}
    filters = {"chain_id": chain} if chain else {}
    titles, git_titles = _titles(tx, chain), _git_titles(tx, chain)
    for row in tx.rows(ChainStage, *columns, **filters):
        stage = dict(zip(columns[1:], row[1:], strict=True))
        key = (row[0], row[1])
        stage["subject"] = titles.get(key) or git_titles.get(key) or display_subject(stage["subject"])
        found.setdefault(row[0], []).append(stage)
    return found


def _titles(tx: Transaction, chain: str | None) -> dict[tuple[str, int], str]:
    """Titles from GitHub's API, also those read after the chains were chosen; by chain and position."""
    query = (
        select(ChainStage.chain_id, ChainStage.position, PullRequestText.body)
        .join(
            PullRequestText,
            (PullRequestText.repository_id == ChainStage.repository_id) & (PullRequestText.number == ChainStage.number),
        )
        .where(PullRequestText.field == "title")
    )
    if chain is not None:
        query = query.where(ChainStage.chain_id == chain)
    return {(id_, position): title.strip() for id_, position, title in tx.connection.execute(query)}


def _git_titles(tx: Transaction, chain: str | None) -> dict[tuple[str, int], str]:
    """Titles of merges from git: the first line below the merge's subject, else the subject of the only own commit; by
    chain and position."""
    merge_commits = select(ChainStage.chain_id, ChainStage.position, Commit.message).where(
        ChainStage.repository_id == Commit.repository_id,
        ChainStage.landed_sha == Commit.sha,
        ChainStage.subject.startswith(MERGE_PREFIX),
    )
    own = PullRequestCommit
    only_commits = (
        select(ChainStage.chain_id, ChainStage.position, func.min(Commit.message))
        .where(ChainStage.repository_id == own.repository_id, ChainStage.number == own.number)
        .where(Commit.repository_id == own.repository_id, Commit.sha == own.sha)
        .where(ChainStage.subject.startswith(MERGE_PREFIX))
        .group_by(ChainStage.chain_id, ChainStage.position)
        .having(func.count(func.distinct(own.sha)) == 1)
    )
    if chain is not None:
        merge_commits = merge_commits.where(ChainStage.chain_id == chain)
        only_commits = only_commits.where(ChainStage.chain_id == chain)
    found = {(id_, place): message.partition("\n")[0] for id_, place, message in tx.connection.execute(only_commits)}
    for id_, place, message in tx.connection.execute(merge_commits):
        if title := title_below(message):
            found[id_, place] = title
    return found


def other_strategies(store: Store, strategy: str) -> dict[str, int]:
    """How many chains the other strategies chose, by strategy."""
    with store.reading() as tx:
        shown = resolved(tx, strategy)
        chosen = Counter(row[0] for row in tx.rows(Selection, "strategy", outcome=SELECTED))
    return {name: chosen[name] for name in sorted(chosen) if name != shown}


def print_chains(rows: Sequence[dict[str, Any]], total: int, others: Mapping[str, int]) -> None:
    """Print the list, and what else there is."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        numbers = " > ".join(f"#{number}" for number in row["numbers"])
        task = f"  task {row['task']}" if row["task"] else ""
        task += f"  proof {row['proof']}" if row["proof"] else ""
        figures = (f"{row['score']:.2f}", f"{row['confidence']:.2f}", f"{row['lines']:,}")
        lines.append((row["id"], *figures, f"{row['repository']}  {numbers}{task}"))
        lines.append(("", "", "", "", shortened(row["subject"], _WIDTH)))
    if rows:
        say_table(("id", "score", "weakest", "lines", "repository and pull requests"), lines)
    if total:
        say(f"{len(rows):,} of {counted(total, 'chain')}")
    else:
        say("no chain is like that; without options all are listed, and `prchain chains build` chooses them")
    for strategy, count in others.items():
        say(f"and {counted(count, 'chain')} of --strategy {strategy}")


def chain_page(store: Store, prefix: str) -> dict[str, Any]:
    """Everything stored of one chain; raises `UsageError` where the start of its id matches none, or several."""
    with store.reading() as tx:
        chain = find_chain(tx, prefix)
        row = next(iter(tx.rows(Chain, "repository_id", "length", "licence", "language", id=chain)))
        names = next(iter(tx.rows(Repository, "host", "owner", "name", id=row[0])))
        selections = [
            dict(zip(("strategy", "score", "outcome", "reason", "selected_at"), found, strict=True))
            for found in tx.rows(Selection, "strategy", "score", "outcome", "reason", "selected_at", chain_id=chain)
        ]
        stages = _stages(tx, chain)[chain]
        for before, stage in zip([None, *stages], stages, strict=False):
            stage["signs"] = stage["signs"] or []
            stage["worth_signs"] = stage["worth_signs"] or []
            stage["changes"] = _changes(tx, row[0], stage["number"], before["number"]) if before else None
            stage["url"] = pull_request_url(names[0], f"{names[1]}/{names[2]}", stage["number"])
        task = next((found[0] for found in tx.rows(Task, "outcome", chain_id=chain)), None)
    return {
        "id": chain,
        "repository": f"{names[1]}/{names[2]}",
        "length": row[1],
        "licence": row[2],
        "language": row[3],
        "selections": selections,
        "task": task,
        "stages": stages,
    }


def _changes(tx: Transaction, repository_id: int, later: int, earlier: int) -> dict[str, Any] | None:
    """What a stage changes of the one before, by the lineage; None where it changes nothing of it."""
    columns = ("real_lines", "inserted_lines", "functions", "names")
    for real, inserted, functions, names in tx.rows(
        Lineage, *columns, repository_id=repository_id, later=later, earlier=earlier
    ):
        return {
            "real_lines": real,
            "inserted_lines": inserted,
            "functions": functions,
            "names": names,
        }
    return None


def _changes_text(changes: Mapping[str, Any]) -> str:
    parts = [f"{counted(changes['real_lines'], 'line')} of it"] if changes["real_lines"] else []
    if changes["inserted_lines"]:
        parts.append(f"{counted(changes['inserted_lines'], 'line')} put beside its lines")
    if changes["functions"]:
        parts.append(f"in {listed(changes['functions'], 3)}")
    if changes["names"]:
        parts.append(f"uses {listed(changes['names'], 3)}")
    return "; ".join(parts)


def print_chain(page: dict[str, Any]) -> None:
    """Print the page of a chain."""
    say(f"chain {page['id']}  {page['repository']}, {counted(page['length'], 'stage')}")
    for selection in page["selections"]:
        reason = f" ({selection['reason']})" if selection["reason"] else ""
        say(f"  {selection['strategy']:<10}{selection['outcome']}{reason}, score {selection['score']:.2f}")
    facts = {"licence": page["licence"] or "unknown", "language": page["language"] or "unknown"}
    say_facts(facts | {"task": page["task"] or "none yet"})
    for stage in page["stages"]:
        say()
        say(f"  {stage['position']}. #{stage['number']}  {stage['subject']}")
        if stage["relation"]:
            relation = stage["relation"].replace("_", " ")
            say(f"     builds on the one before ({relation}), confidence {stage['confidence']:.2f}:")
            for sign in stage["signs"]:
                say(f"       {sign['weight']:+.1f}  {sign['sign']:<18}  {shortened(sign['detail'], _WIDTH)}")
        if stage["changes"]:
            say_facts({"changes": _changes_text(stage["changes"])}, indent=5)
        if stage["worth"] is not None:
            say(f"     worth as a task {stage['worth']:.2f}:")
            for sign in stage["worth_signs"]:
                say(f"       {sign['weight']:+.1f}  {sign['sign']:<18}  {shortened(sign['detail'], _WIDTH)}")
        landed = f"{stage['landed_sha']} on {stage['branch']}, {stage['landed_at']}"
        say_facts({"landed": landed, "base": stage["base_sha"]}, indent=5)
        for part in ("source", "test"):
            files = counted(stage[f"{part}_files"], "file")
            say_facts({part: f"{counted(stage[f'{part}_lines'], 'line')} in {files}"}, indent=5)
        say_facts({"page": stage["url"]}, indent=5)
    if any(stage["signs"] or stage["worth_signs"] for stage in page["stages"]):
        say()
        say("The figures before the signs are log-odds; they add up to a confidence or a worth (docs/chains.md).")


def candidates(store: Store, strategy: str) -> dict[str, Counter[str]]:
    """Per repository, the number of landed pull requests of each outcome."""
    with store.reading() as tx:
        names = {id_: f"{owner}/{name}" for id_, owner, name in tx.rows(Repository, "id", "owner", "name")}
        found: dict[str, Counter[str]] = {}
        for repository_id, outcome in tx.rows(Candidate, "repository_id", "outcome", strategy=strategy):
            found.setdefault(names[repository_id], Counter())[outcome] += 1
    return found
