"""What samples come to, as drawings: how long they are, and which domains they cover (daVinci-Agency, figure 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from prchain.core.console.terminal import counted
from trajectories.curation.graphs.svg import panels_svg

_PANELS = {"tokens": "tokens", "tool_calls": "tool calls"}


def lengths_drawing(row: Mapping[str, Any]) -> str:
    """Histograms of the tokens and the tool calls of samples, of what `stats` returns, as SVG."""
    panels = {}
    for name, words in _PANELS.items():
        mean = row[name]["mean"]
        head = f"Samples by {words}" if mean is None else f"Samples by {words}: {mean:,.1f} on average"
        panels[head] = {_span(it["from"], it["to"]): it["count"] for it in row["histograms"][name]}
    return panels_svg(f"{counted(row['samples'], 'sample')}: tokens and tool calls", panels)


def _span(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def domains_drawing(row: Mapping[str, Any]) -> str:
    """The samples of each domain, of what `grouped_stats` returns, as SVG."""
    domains: Counter[str] = Counter(dict.fromkeys(row["all_domains"], 0))
    for group in row["groups"]:
        domains.update(group["domains"])
    ordered = dict(sorted(domains.items(), key=lambda item: (-item[1], item[0])))
    return panels_svg("Samples by domain", {f"domains are {row['domains_are']}": ordered})
