"""What people read of lineage: what became of the landed pull requests, the strongest pairs, and their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import text

from chains.history import MinedRepository
from chains.lineage.outcomes import LINEAGE_OUTCOMES
from chains.lineage.shown_lines import ChangedLines, ShownPair
from chains.lineage.trace import TraceReport
from prchain.core.console.terminal import counted, listed, say, say_content, say_counts, say_facts, say_table
from sql.store import Transaction
from sql.tables import Lineage, LineageLanding, LineageWalk

_PAIRS = text(
    """
    SELECT source, target, real_lines, share_of_source, share_of_target, source_lines, moved_lines, inserted_lines,
           functions, names, cited
    FROM lineage_edges
    WHERE repository = :repository AND real_lines >= :fewest
        AND (:number IS NULL OR source = :number OR target = :number)
        AND (:uncited = 0 OR cited = 0)
    ORDER BY real_lines DESC, inserted_lines DESC, source DESC, target DESC
    """
).columns(functions=Lineage.functions.type, names=Lineage.names.type)


def lineage_page(
    tx: Transaction, mined: MinedRepository, *, number: int | None, fewest: int, uncited: bool
) -> dict[str, Any]:
    """What is stored of a repository's lineage: the walk, the outcomes, and the pairs, the strongest first."""
    columns = ("commits", "branches", "missing_blobs", "unread")
    walk = next(tx.rows(LineageWalk, *columns, repository_id=mined.id))
    outcomes = Counter(row[0] for row in tx.rows(LineageLanding, "outcome", repository_id=mined.id))
    values = {"repository": mined.full_name, "fewest": fewest, "number": number, "uncited": int(uncited)}
    pairs = [dict(row) for row in tx.connection.execute(_PAIRS, values).mappings()]
    for pair in pairs:
        pair["cited"] = bool(pair["cited"])
    return {
        "repository": mined.full_name,
        **dict(zip(columns, walk, strict=True)),
        "landed": outcomes.total(),
        "outcomes": {name: outcomes[name] for name in LINEAGE_OUTCOMES if outcomes[name]},
        "pairs": pairs,
    }


def print_trace(report: TraceReport) -> None:
    """Print what a walk did."""
    if report.walked_commits:
        whole = f", all of them: {report.why}" if report.is_whole else ""
        say(f"{report.repository}: walked {counted(report.walked_commits, 'commit')} in {report.seconds:.1f} s{whole}")
    if report.rewritten:
        branches = listed(report.rewritten, 3)
        say(f"{report.repository}: rewritten since it was mined: {branches}; mine it again", err=True)


def print_lineage(page: Mapping[str, Any], limit: int | None) -> None:
    """Print a page of lineage."""
    say(page["repository"])
    say_counts("landed pull requests", page["outcomes"], total=page["landed"])
    pairs = page["pairs"]
    uncited = sum(not pair["cited"] for pair in pairs)
    say_facts(
        {
            "pairs": f"{len(pairs):,}" + (f", {uncited / len(pairs):.0%} of them cited by neither" if pairs else ""),
            "history": f"{counted(page['commits'], 'commit')}, {counted(page['branches'], 'branch')}",
            "missing": f"{counted(page['missing_blobs'], 'file version')}, taken for empty"
            if page["missing_blobs"]
            else "",
        }
    )
    if pairs:
        say()
        columns = ("later", "changes", "lines of code", "of later", "of earlier", "beside", "cited", "functions; names")
        say_table(columns, (_cells(pair) for pair in pairs[:limit]))
        if limit is not None and len(pairs) > limit:
            say(f"... {len(pairs) - limit:,} more pairs; --limit {len(pairs)} prints all")


def _cells(pair: Mapping[str, Any]) -> Sequence[Any]:
    return (
        f"#{pair['source']}",
        f"#{pair['target']}",
        pair["real_lines"],
        f"{pair['share_of_source']:.0%}",
        f"{pair['share_of_target']:.0%}",
        pair["inserted_lines"],
        "yes" if pair["cited"] else "no",
        "; ".join(filter(None, (listed(pair["functions"], 2), listed(pair["names"], 2)))),
    )


def print_changed_lines(pair: ShownPair) -> None:
    """Print the lines of the earlier pull request that the later one changes, and what it puts there."""
    lines = pair.changes.lines if pair.changes else ""
    say()
    say(f"#{pair.later} changes {lines} of #{pair.earlier}:" if lines else f"#{pair.later} changes #{pair.earlier}:")
    if not pair.hunks:
        say("  none of its lines; it puts lines beside them, or uses names that it brought")
    for part in pair.hunks:
        say(f"  {part.path}:{part.start}" + (f"  {part.function}" if part.function else ""))
        for mark, line in _marked(part):
            say_content(b"    %b %b\n" % (mark, line))


def _marked(part: ChangedLines) -> Iterator[tuple[bytes, bytes]]:
    """Removed lines, the earlier one's with ``-`` and others' with ``~``, and added ones with ``+``."""
    for line, is_earlier in part.removed:
        yield b"-" if is_earlier else b"~", line
    for line in part.added:
        yield b"+", line
