"""The figures of rollouts by group, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table


def print_grouped(row: Mapping[str, Any]) -> None:
    """Print the figures for people."""
    groups, steps = row["groups"], row["steps"]
    if not groups:
        say("nothing was rolled out yet" if row["by"] != "repository" else "nothing was mined yet")
        return
    if row["by"] == "option" and len(groups) > 1:  # their names are too long for a table
        for number, it in enumerate(groups, 1):
            say_prose(f"{number}: {it['group']}")
        say()
        groups = [{**it, "group": str(number)} for number, it in enumerate(groups, 1)]
    if row["by"] == "repository":
        mined = [(it["group"], f"{it['pull_requests']:,}", f"{it['queries']:,}") for it in groups]
        mined.append(("sum", f"{row['sum']['pull_requests']:,}", f"{row['sum']['queries']:,}"))
        mined.append(("the paper's", f"{row['paper']['pull_requests']:,}", f"{row['paper']['queries']:,}"))
        say_table(("repository", "pull requests", "queries"), mined)
        say()
    say_table(
        (row["by"], "rollouts", "chains", "samples", "USD", "USD a sample"),
        [
            (
                it["group"],
                f"{it['rollouts']:,}",
                f"{it['chains']:,}",
                f"{it['samples']:,}",
                *(_usd(it["cost"][name], it["samples"]) for name in ("usd", "usd_per_sample")),
            )
            for it in groups
        ],
    )
    purposes = sorted({name for it in groups for name in it["cost"]["by_purpose"]})
    say_prose(
        f"USD of all purposes: {', '.join(purposes) or 'no calls'}; those of no rollout: {dollars(row['rest']['usd'])}"
    )
    for noun, key in (("stages", "resolved_stages"), ("chains", "resolved_chains")):
        say()
        say_table(
            (f"{noun} resolved at", "of", *map(str, steps), "steps"),
            [
                (it["group"], f"{it[key]['of']:,}", *(_share(it[key]["at"][str(most)]) for most in steps), "")
                for it in groups
            ],
        )
    say()
    count = len(row["all_domains"])
    say_table(
        ("domains", "covered", "samples"),
        [
            (
                it["group"],
                f"{len(it['domains'])} of {count}",
                ", ".join(f"{domain} {samples:,}" for domain, samples in it["domains"].items()) or "-",
            )
            for it in groups
        ],
    )
    say(f"domains are {row['domains_are']}; {counted(count, 'domain')} in all chains")


def _usd(value: float | None, samples: int) -> str:
    return f"{value:,.4f}" if value is not None else "unknown" if samples else "-"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
