"""A survey for people: tables of shares, every failure in one line, and a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from environments.report import size_text
from prchain.core.console.progress_state import duration_text
from prchain.core.console.terminal import counted, listed, say, say_prose, say_table, shortened, tally
from trajectories.curation.graphs.svg import bars_svg
from trajectories.studies.survey.survey import SurveyedGroup, SurveyedLanding, SurveyedShare, SurveyReport, Took

_WIDTH = 80
_LONGEST = 200
"""Characters of a first cause."""
_NAMED = 3


def print_survey(report: SurveyReport) -> None:
    """Print a survey."""
    say_prose(_head(report), width=_WIDTH)
    if report.left_out:
        say_prose(f"passed over: {tally(report.left_out)}", width=_WIDTH)
    if not report.landings:
        return
    if report.all.ended:
        groups = [report.all, *report.by_period, *report.by_language]
        groups += report.by_repository if len(report.by_repository) > 1 else ()
        say()
        say("number: percent of those that ended (95 % interval)")
        say_table(
            ("", "ended", "built", "ran", "proved"),
            [(it.name, _ended(it), _words(it.built), _words(it.ran), _words(it.proved)) for it in groups],
        )
    if report.causes:
        say()
        say_table(
            ("first cause", "landings", "percent"),
            [(it.name, f"{it.share.count:,}", _interval(it.share)) for it in report.causes],
        )
    if failures := [it for it in report.landings if it.outcome is not None and not it.proved]:
        say()
        say_table(("not proved", "landed", "outcome", "first cause"), map(_failure, failures))
    if unended := [it for it in report.landings if it.outcome is None]:
        say()
        say_table(("not ended", "landed", "language", "subject, or what ended the work on it"), map(_unended, unended))
    if report.all.ended:
        say()
        for line in _took_lines(report.took, report.all.ended):
            say_prose(line, width=_WIDTH)


def _head(report: SurveyReport) -> str:
    names = listed(report.repositories, _NAMED)
    drawn = counted(report.all.drawn, "landing")
    short = f" of {report.wanted:,} wanted: no more can be drawn" if report.all.drawn < report.wanted else ""
    ended = f"; {report.all.ended:,} ended" if report.all.drawn else ""
    return (
        f"{names}, seed {report.seed}: {drawn} with tests drawn{short}, from {report.landed:,} landed, evenly over "
        f"periods and repositories{ended}, backend {report.backend}"
    )


def _failure(it: SurveyedLanding) -> tuple[str, str, str, str]:
    return f"{it.repository}#{it.number}", it.landed_at[:10], str(it.outcome), shortened(it.cause or "", _LONGEST)


def _ended(group: SurveyedGroup) -> str:
    return f"{group.ended:,}" + (f" of {group.drawn:,}" if group.ended < group.drawn else "")


def _unended(it: SurveyedLanding) -> tuple[str, str, str, str]:
    return f"{it.repository}#{it.number}", it.landed_at[:10], it.language, shortened(it.cause or it.subject, _LONGEST)


def _took_lines(took: Took, ended: int) -> Iterator[str]:
    mean = f" ({duration_text(took.seconds / ended)} a landing)"
    yield f"wall time, one after the other: {duration_text(took.seconds)}{mean}"
    if took.images:
        shared = f", which {counted(took.shared, 'more landing')} shared" if took.shared else ""
        yield f"  builds of {counted(took.images, 'image')}{shared}: {duration_text(took.image_seconds)}"
    if took.failed_build_seconds:
        yield f"  builds that failed: {duration_text(took.failed_build_seconds)}"
    yield f"  {counted(took.runs, 'test run')}: {duration_text(took.run_seconds)}"
    if took.images_there is not None:
        gone = f", {took.images - took.images_there:,} more are gone" if took.images_there < took.images else ""
        yield (
            f"disk of {counted(took.images_there, 'image')}: {size_text(took.own_bytes)} beyond what they share with "
            f"others, {size_text(took.all_bytes)} if they shared nothing{gone}"
        )
    elif took.images:
        yield "disk: the engine does not answer"


def drawing(report: SurveyReport) -> str:
    """The shares as bars, as SVG."""
    bars: dict[str, SurveyedShare] = {
        "built": report.all.built,
        "tests ran": report.all.ran,
        "proved": report.all.proved,
        **_bars(report.by_period),
        **_bars(report.by_language),
        **{cause.name: cause.share for cause in report.causes},
    }
    title = f"{counted(report.all.ended, 'landing')} with tests: share in percent, with 95 % intervals"
    counts = {name: 100 * (share.value or 0.0) for name, share in bars.items()}
    return bars_svg(title, counts, [_words(share) for share in bars.values()])


def _bars(groups: Sequence[SurveyedGroup]) -> dict[str, SurveyedShare]:
    return {f"proved, {group.name}": group.proved for group in groups}


def _words(share: SurveyedShare) -> str:
    return f"{share.count:,}: {_interval(share)}"


def _interval(share: SurveyedShare) -> str:
    if share.value is None or share.low is None or share.high is None:
        return "-"
    return f"{100 * share.value:.0f} ({100 * share.low:.0f} to {100 * share.high:.0f})"
