"""The owners of lines against `git blame --first-parent`."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import click

from chains.history import MinedRepository, repositories
from chains.lineage.landings import LandedRange
from chains.lineage.lineage_rows import read_ranges
from chains.lineage.owners import UNKNOWN
from chains.lineage.tracer import Tracer
from chains.lineage.walk import Walk
from prchain.core.console.progress import ProgressTask, open_progress
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import GitError
from prchain.core.git import GitRepository, open_mined
from prchain.core.git.standins import StandInRepository
from sql.store import Store


@click.command()
@click.argument("names", nargs=-1, metavar="[OWNER/NAME]...")
@click.option("--db", required=True)
@click.option("--mirrors", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--landings", default=40, show_default=True, help="Landings, over all repositories.")
@click.option("--lines", default=100_000, show_default=True, help="Lines, over all repositories.")
@click.option("--seed", default=1, show_default=True)
def blame(names: tuple[str, ...], db: str, mirrors: Path, landings: int, lines: int, seed: int) -> None:
    """Compare the owners of lines with git blame."""
    counts: Counter[str] = Counter()
    with closing(Store.open(db, create=False)) as store, open_progress() as progress:
        with store.reading() as tx:
            every = [mined for mined in repositories(tx) if not names or mined.full_name in names]
        table = []
        for mined in every:
            with store.reading() as tx:
                ranges = read_ranges(tx, mined.id)
            with tempfile.TemporaryDirectory() as folder:
                row = _compare(
                    mined,
                    open_mined(mined.location, mirrors, mined.host, mined.full_name),
                    ranges,
                    Path(folder),
                    progress.task(mined.full_name),
                    (-(-landings // len(every)), -(-lines // len(every))),
                    random.Random(seed),
                    counts,
                )
            table.append((mined.full_name, *row))
    say_table(("repository", "landings", "rebased", "other branch", "files", "renamed", "lines", "same"), table)
    total, same = sum(row[6] for row in table), sum(row[7] for row in table)
    say(f"{total:,} lines at {sum(row[1] for row in table)} landings: {same:,} as git blame says")
    for kind, count in counts.most_common():
        say(f"  {count:>8,} {kind}")


def _compare(
    mined: MinedRepository,
    repository: GitRepository,
    ranges: Sequence[LandedRange],
    folder: Path,
    task: ProgressTask,
    wanted: tuple[int, int],
    chance: random.Random,
    counts: Counter[str],
) -> tuple[int, int, int, int, int, int, int]:
    tracer = Tracer(repository, folder, ranges, task)
    chosen = _drawn(tracer, wanted[0], chance)
    tracer.kept = frozenset(chosen)
    tracer.begin(None, ())
    tracer.walk()
    walk = tracer.finished
    reader = StandInRepository.over(repository, folder / "stand-ins.git", ()) if tracer.missing else repository
    files = renamed = total = same = 0
    for landed in chosen:
        share = wanted[1] // len(chosen)
        for path, is_renamed in _paths(reader, walk, landed, chance):
            owners = walk.states[landed].lines.files[path]
            assert owners is not None
            try:
                blamed = [walk.credited.get(sha, 0) for sha in reader.blame(landed, path)]
            except GitError as error:
                say(f"{mined.full_name}: {landed[:12]} {path!r}: {error}", err=True)
                continue
            files, renamed = files + 1, renamed + is_renamed
            total += len(blamed)
            if len(blamed) != len(owners):
                counts[f"lines of a file of another length ({mined.full_name} {landed[:12]} {path.decode()})"] += len(
                    blamed
                )
                continue
            pairs = Counter(zip(owners, blamed, strict=True))
            same += sum(count for (ours, theirs), count in pairs.items() if ours == theirs)
            for (ours, theirs), count in pairs.items():
                if ours == UNKNOWN:
                    counts["unknown: the file was missing, or binary, before"] += count
                elif ours != theirs:
                    counts[_kind(reader, landed, path)] += count
                    what = f"{mined.full_name} {landed[:12]} {path.decode()}"
                    say(f"{what}: {count:,} lines of #{ours}, of #{theirs} by blame", err=True)
            share -= len(blamed)
            if share <= 0:
                break
    sizes = Counter(tracer.landings.owners.values())
    landings = [tracer.landings.ends[sha] for sha in chosen]
    several = sum(sizes[landing.number] > 1 for landing in landings)
    elsewhere = sum(landing.branch != ranges[0].branch for landing in landings)
    return len(chosen), several, elsewhere, files, renamed, total, same


def _drawn(tracer: Tracer, count: int, chance: random.Random) -> list[str]:
    """Landed commits: a third of several commits, a third on other branches if there are such, the rest at random."""
    ends = tracer.landings.ends
    default = tracer.ranges[0].branch
    sizes = Counter(tracer.landings.owners.values())
    groups = [
        [sha for sha, landing in ends.items() if sizes[landing.number] > 1],
        [sha for sha, landing in ends.items() if landing.branch != default],
        list(ends),
    ]
    found: list[str] = []
    for left, group in zip((3, 2, 1), groups, strict=True):
        free = sorted(set(group) - set(found))
        found += chance.sample(free, min(len(free), (count - len(found)) // left))
    return found


def _paths(reader: GitRepository, walk: Walk, landed: str, chance: random.Random) -> Iterator[tuple[bytes, bool]]:
    """Files at a landing that have owners, in random order, those first that were renamed some time before."""
    known = {path for path, owners in walk.states[landed].lines.files.items() if owners is not None and len(owners)}
    with reader.stream(
        "log",
        "--first-parent",
        "--diff-merges=first-parent",
        "--diff-filter=R",
        "-M",
        "-z",
        "--format=",
        "--name-status",
        "-200",
        landed,
    ) as output:
        words = output.read().split(b"\0")
    renamed = {new for mark, _, new in zip(words[::3], words[1::3], words[2::3], strict=False) if mark.startswith(b"R")}
    first = chance.sample(sorted(known & renamed), min(2, len(known & renamed)))
    rest = sorted(known - set(first))
    for path in first:
        yield path, True
    for path in chance.sample(rest, len(rest)):
        yield path, False


def _kind(reader: GitRepository, landed: str, path: bytes) -> str:
    """Why owners may differ: the file came to its path among several that were renamed, added and deleted at once."""
    name = path.decode()
    arguments = ("--first-parent", "--diff-merges=first-parent", "-M", "--name-status", "--format=commit %H")
    came = reader.run("log", *arguments, "--diff-filter=A", "-1", landed, "--", name).split("\n")[0].split()
    if len(came) == 2:
        status = reader.run("log", *arguments, "-1", came[1]).split("\n")
        if sum(line.startswith("R") for line in status) > 1 or any(line.startswith("D") for line in status):
            return (
                "a rename with several candidates: blame looks for one file's origin, the walk pairs all files at once"
            )
    return "unexplained"
