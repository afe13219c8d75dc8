"""Measure what is taken for a secret in real repositories, and what is left.

    python -m research.secrets --mirror DIR [--mirror DIR ...] [--sample N] [--kind NAME ...] [--labels]
    python -m research.secrets --mirror DIR --detector PYTHON

Reads all messages of commits, names of branches and tags, and added lines of patches, and prints what `scrub_mined`
replaces, by kind; then rows, drawn by their digest, in which the secret is masked, for a person to judge. `--labels`
scores the judgements of ``labels.csv``, which names rows by digest. With `--detector`, an interpreter that has the
package detect-secrets, the rows are what that finds in the scrubbed texts.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from prchain.core.console.terminal import say, say_table
from prchain.core.git import GitRepository
from research.secrets.peer import Missed, missed
from research.secrets.replaced import Row, Scan, masked
from research.secrets.texts import SOURCES, texts

LABELS = Path(__file__).with_name("labels.csv")
_NAMES = {"repo", "repo.git", ".git"}


def name_of(mirror: Path) -> str:
    """The repository's name, of the folder that it lies in."""
    path = mirror.resolve()
    return (path.parent if path.name in _NAMES else path).name.removesuffix(".git").replace("+", "/")


@click.command()
@click.option(
    "--mirror",
    "mirrors",
    multiple=True,
    required=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A git repository; can be given several times.",
)
@click.option("--sample", default=60, show_default=True, help="Rows to show, of each kind of each repository.")
@click.option("--kind", "kinds", multiple=True, metavar="NAME", help="Show rows of these kinds alone.")
@click.option("--labels", is_flag=True, help="Score the judgements of labels.csv instead of showing rows.")
@click.option("--detector", metavar="PYTHON", help="An interpreter with detect-secrets: show what that finds beside.")
def main(mirrors: Sequence[Path], sample: int, kinds: Sequence[str], labels: bool, detector: str | None) -> None:
    """Count and show what is taken for a secret."""
    scans = []
    for mirror in mirrors:
        scan = Scan(name_of(mirror))
        scrubbed = scan.run(texts(GitRepository.open(mirror)))
        if detector:
            _say_missed(scan.repository, sorted(missed(detector, scrubbed)), sample, kinds)
        else:
            for _ in scrubbed:
                pass
        scans.append(scan)
    _say_scans(scans)
    if labels:
        _say_labels(scans)
    elif not detector:
        for scan in scans:
            _say_rows(scan, sample, kinds)


def _say_scans(scans: Sequence[Scan]) -> None:
    say_table(
        ("repository", "source", "texts", "lines", "characters"),
        [
            (scan.repository, source, *(f"{part[source]:,}" for part in (scan.texts, scan.lines, scan.characters)))
            for scan in scans
            for source in SOURCES
        ],
    )
    say()
    rows = []
    for scan in scans:
        different = Counter(row.kind for row in scan.rows.values())
        for kind, count in sorted(different.items()):
            by_source = [f"{scan.replaced[kind, source]:,}" for source in SOURCES]
            lost = sum(scan.lost[kind, source] for source in SOURCES)
            rows.append((scan.repository, kind, f"{count:,}", *by_source, f"{lost:,}"))
    say_table(("repository", "replaced", "different", "messages", "refs", "patches", "characters"), rows)


def _say_rows(scan: Scan, sample: int, kinds: Sequence[str]) -> None:
    shown: Counter[str] = Counter()
    for row in sorted(scan.rows.values(), key=lambda row: (row.kind, row.id)):
        shown[row.kind] += 1
        if shown[row.kind] <= sample and (not kinds or row.kind in kinds):
            say(f"{scan.repository} {row.id} {row.kind} {row.place}")
            say(f"    {row.before}{masked(row.secret)}{row.after}")


def _say_labels(scans: Sequence[Scan]) -> None:
    with LABELS.open(encoding="utf-8", newline="") as file:
        labels = {(line["repository"], line["row"]): line["label"] for line in csv.DictReader(file)}
    found: dict[str, Counter[str]] = {}
    for scan in scans:
        for row in scan.rows.values():
            found.setdefault(row.kind, Counter())[_label(labels, scan, row)] += 1
    say()
    say_table(
        ("replaced", "different", "read", "right", "wrong"),
        [
            (kind, counts.total(), counts.total() - counts["unread"], counts["right"], counts["wrong"])
            for kind, counts in sorted(found.items())
        ],
    )


def _label(labels: dict[tuple[str, str], str], scan: Scan, row: Row) -> str:
    return labels.get((scan.repository, row.id), "unread")


def _say_missed(repository: str, rows: Sequence[Missed], sample: int, kinds: Sequence[str]) -> None:
    shown: Counter[str] = Counter()
    different: dict[tuple[str, str], Missed] = {(row.kind, row.secret): row for row in rows}
    for (kind, secret), row in sorted(different.items()):
        shown[kind] += 1
        if shown[kind] <= sample and (not kinds or kind in kinds):
            at = row.line.find(secret)
            say(f"{repository} left, {kind}")
            say(f"    {row.line[max(at - 60, 0) : at]}{masked(secret)}{row.line[at + len(secret) :][:60]}")
    for kind, count in sorted(shown.items()):
        say(f"{repository}: {count:,} different are left that detect-secrets takes for: {kind}")


if __name__ == "__main__":
    main()
