"""What people read of a run that chose chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chains import outcomes
from chains.meanings import MEANINGS
from chains.options import EDGE_RULES, BuildReport
from prchain.core.console.terminal import counted, say, say_table, tally

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
        "taken": report.taken,
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
        lengths = tally({f"with {counted(length, 'stage')}": count for length, count in sorted(report.lengths.items())})
        chains = counted(report.chains, "chain") + (f" ({lengths})" if lengths else "")
        changes = {"new": report.added, "frozen by their tasks": report.frozen}
        changes_text = tally(changes | {"gone": report.gone, "retired": report.retired})
        say(f"{report.repository}: {chains}" + (f"; {changes_text}" if changes_text else ""))
        if report.taken:
            taken = counted(report.taken, "pull request")
            say(f"  {taken} in tasks of other strategies; --side-by-side takes such, too, to compare strategies")
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
    left = [(name, count) for name, count in counts.most_common() if name not in {outcomes.CHAINED, outcomes.FROZEN}]
    rows = [(f"{count:,}", name, MEANINGS[name]) for name, count in left[:_REASONS]]
    if rest := left[_REASONS:]:
        rows.append((f"{sum(count for _, count in rest):,}", "", f"for {counted(len(rest), 'other reason')}"))
    say(f"  {taken:,} of {counted(counts.total(), 'landed pull request')} in chains{'; the others:' if rows else ''}")
    if rows:
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
