"""`python -m research.bench [--only BENCH] [--json]`; exit code 1 where a goal is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from research.bench import (
    atif_bench,
    chains_bench,
    comments_bench,
    entities_bench,
    export_bench,
    git_bench,
    github_bench,
    help_bench,
    import_bench,
    prefix_bench,
    prm_bench,
    recording_bench,
    remains_bench,
    rollout_bench,
    sandbox_bench,
    window_bench,
)
from research.bench.measures import as_json, as_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches, print what they found, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m research.bench", description="Measure time, memory and requests.")
    parser.add_argument("--mirror", type=Path, metavar="PATH", help="a git repository with refs/pull/*/head")
    parser.add_argument(
        "--only",
        choices=[
            "git",
            "github",
            "chains",
            "rollout",
            "sandbox",
            "window",
            "export",
            "import",
            "atif",
            "entities",
            "prm",
            "prefix",
            "comments",
            "help",
            "recording",
            "remains",
        ],
        help="run one of the benches",
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of the git bench (default: 5)")
    parser.add_argument(
        "--landed", type=int, default=git_bench.LANDED, metavar="N", help="size of the generated history"
    )
    parser.add_argument("--pulls", type=int, default=github_bench.PULLS, metavar="N", help="size of the emulated world")
    parser.add_argument("--chained", type=int, default=chains_bench.PULLS, metavar="N", help="size of the graph")
    parser.add_argument("--steps", type=int, default=rollout_bench.STEPS, metavar="N", help="steps of an attempt")
    parser.add_argument("--image", metavar="NAME", help=f"image of sandboxes (default: {sandbox_bench.IMAGE})")
    parser.add_argument(
        "--trajectories",
        type=int,
        default=export_bench.TRAJECTORIES,
        metavar="N",
        help="size of export and atif",
    )
    parser.add_argument("--rows", type=int, default=import_bench.ROWS, metavar="N", help="size of the import bench")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if options.mirror is not None and not options.mirror.is_dir():
        parser.error(f"{options.mirror} is not a folder")
    measures = []
    if options.only in (None, "git"):
        measures += git_bench.run(options.mirror, rounds=options.rounds, landed=options.landed)
    if options.only in (None, "github"):
        measures += github_bench.run(pulls=options.pulls)
    if options.only in (None, "chains"):
        measures += chains_bench.run(pulls=options.chained)
    if options.only in (None, "prefix"):
        measures += prefix_bench.run(steps=options.steps)
    if options.only == "help":
        measures += help_bench.run()
    if options.only == "recording":
        measures += recording_bench.run()
    if options.only == "remains":
        measures += remains_bench.run(image=options.image)
    if options.only == "comments":
        measures += comments_bench.run()
    if options.only == "entities":
        measures += entities_bench.run()
    if options.only == "export":  # several GB on the disk, so only where asked
        measures += export_bench.run(trajectories=options.trajectories)
    if options.only == "import":  # as many
        measures += import_bench.run(rows=options.rows)
    if options.only == "atif":
        measures += atif_bench.run(trajectories=options.trajectories)
    if options.only == "rollout":
        measures += rollout_bench.run(steps=options.steps)
    if options.only == "sandbox":
        measures += sandbox_bench.run(image=options.image, mirror=options.mirror)
    if options.only == "window":
        measures += window_bench.run(image=options.image)
    if options.only == "prm":
        measures += prm_bench.run(steps=options.steps)
    print(as_json(measures) if options.json else as_table(measures))
    return 1 if any(measure.passed is False for measure in measures) else 0


if __name__ == "__main__":
    sys.exit(main())
