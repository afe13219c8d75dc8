"""The data card for people: Markdown made of the card's JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from prchain.core.console.terminal import counted, tally
from trajectories.export.loss import loss_rows, loss_words

_FIGURES = (
    ("tokens", "tokens"),
    ("tokens under loss", "tokens_under_loss"),
    ("tool calls", "tool_calls"),
    ("assistant turns", "turns"),
)
_SETTINGS = (
    *("gate", "threshold", "refinements", "on_fail", "carry", "context", "tools", "observers", "windows"),
    "trajectories",
)
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029|<>`\[\]\\]")
_ACTS = re.compile(r"[*~@&]|://|www\.|(?<!\w)_|_(?!\w)", re.IGNORECASE)
"""Characters that make emphasis, entities, links or mentions in GitHub's Markdown."""


def markdown(card: Mapping[str, Any]) -> str:
    """The card as Markdown. Names of repositories and models are data: Markdown and HTML syntax in them is removed."""
    lines = ["# Data card", "", f"Made by prchain {_safe(card['prchain'])}; format `{_safe(card['format'])}`.", ""]
    lines += _table(
        ("file", "part", "rows", "bytes", "SHA-256"),
        [
            (file["name"], file["part"], f"{file['rows']:,}", f"{file['bytes']:,}", file["sha256"])
            for file in card["files"]
        ],
    )
    lines += ["## What it is", ""]
    lines.append(
        f"{counted(card['samples'], 'sample')} from {counted(card['trajectories'], 'trajectory')} over "
        f"{counted(card['chains'], 'chain')} of pull requests. Tokens are {_safe(card['tokens_how'])}."
    )
    lines += ["", *_table(("tokens counted by", "samples"), list(card["samples_counted_by"].items()))]
    broken = card["broken_marks"]
    lines.append(
        f"Special tokens of chat templates stood in {counted(broken['texts'], 'text')} of "
        f"{counted(broken['samples'], 'sample')}, and "
        "were broken there."
    )
    if card["replaced"]:
        lines += ["", f"Replaced in texts, by kind: {tally(card['replaced'])}."]
    lines += [
        "",
        *_table(
            ("per sample", "mean", "median", "p90", "max", "total"),
            [
                (name, *(_number(card[key].get(figure)) for figure in ("mean", "median", "p90", "max", "total")))
                for name, key in _FIGURES
            ],
        ),
    ]
    lines += _table(("stages", "samples"), list(card["stages"].items()))
    lines += [
        "Hidden tests of the accepted stages; a judge that is the gate alone may accept what fails them. What was done",
        "early had all its F2P passing before the attempt, so that the judge alone accepted it.",
        "",
    ]
    tests = [(name.replace("_", " "), count) for name, count in card["hidden_tests"].items()]
    lines += _table(("hidden tests", "stages"), tests)
    lines += ["What the proofs of these tests are worth; one that is import_only says nothing of the work.", ""]
    proofs = [(name.replace("_", " "), count) for name, count in card["proofs"].items()]
    lines += _table(("proof", "stages"), proofs)
    lines += ["What guards their grades: where a value is told that no process holds, work has to know it.", ""]
    lines += _table(
        ("safeguard", "stages"), [(name.replace("_", " "), count) for name, count in card["safeguards"].items()]
    )
    lines += _pairs(card["pairs"]) if "pairs" in card else []
    lines += ["## Loss", "", f"{loss_words(card['loss'])}. Tokens are those of the texts alone. All messages:", ""]
    lines += _table(("reason", "messages", "tokens", "share", "what"), list(loss_rows(card["loss"])))
    lines += ["## Where it is from", ""]
    lines += _table(
        ("repository", "samples", "chains", "licences"),
        [
            (repository["name"], repository["samples"], repository["chains"], ", ".join(repository["licences"]))
            for repository in card["repositories"]
        ],
    )
    if "imports" in card:
        lines += ["Tasks of others:", ""]
        lines += _table(
            ("data set", "revision", "splits", "licences", "benchmark"),
            [
                (it["source"], it["revision"], _tallied(it["splits"]), _tallied(it["licences"]), it["benchmark"])
                for it in card["imports"]
            ],
        )
    if "trajectories_of_others" in card:
        lines += ["Trajectories of others, which nobody judged here:", ""]
        lines += _table(
            ("source", "trajectories", "licences", "agents", "formats"),
            [
                (it["source"], it["trajectories"], *(_tallied(it[name]) for name in ("licences", "agents", "formats")))
                for it in card["trajectories_of_others"]
            ],
        )
    if "in_several_tasks" in card:
        shared = card["in_several_tasks"]
        words = counted(shared["pull_requests"], "pull request")
        lines += [f"{words} in several of these tasks; a split puts all tasks of one into one file:", ""]
        lines += _table(
            ("pull request", "chains"), [(it["pull_request"], ", ".join(it["chains"])) for it in shared["first"]]
        )
    lines += ["## How it was made", ""]
    for title, key in (("agent", "agents"), ("judge", "judges"), ("writer of tasks", "task_writers")):
        lines += _table((title, "trajectories" if key != "task_writers" else "chains"), list(card[key].items()))
    lines += _table(
        tuple(name.replace("_", " ") for name in _SETTINGS),
        [tuple(_value(setting[name]) for name in _SETTINGS) for setting in card["settings"]],
    )
    lines += _table(
        ("prompt", "hash", "used by"),
        [(prompt["name"], prompt["hash"], prompt["used_by"]) for prompt in card["prompts"]],
    )
    if "guidance" in card:
        lines += ["Process reward models, while the agents ran:", ""]
        lines += _table(("windows", "inserted", "faults", "guesses of the reference"), [_guidance(card["guidance"])])
    lines += ["Signs of cheating in the exported trajectories, found by code; a sign is no proof:", ""]
    signs = [(name, row["trajectories"], row["findings"]) for name, row in card["audit"].items()]
    lines += _table(("sign", "trajectories", "findings"), signs)
    lines += ["## What was left out", "", "Of the trajectories that the options asked for:", ""]
    lines += _table(("reason", "samples"), list(card["left_out"].items()))
    lines += ["Of all trajectories in the database, by outcome:", ""]
    lines += _table(("outcome", "trajectories"), list(card["outcomes_of_all_trajectories"].items()))
    lines += ["Options of this export:", ""]
    lines += _table(("option", "value"), [(name, _plain(value)) for name, value in card["options"].items()])
    lines += ["## Cost", ""]
    lines += _table(("what", "USD"), [(key.replace("_", " "), _usd(value)) for key, value in card["cost"].items()])
    lines += ["Where the prices of all calls in the database are from:", ""]
    prices = [(row["from"], row["calls"], _usd(row["usd"]), row["first"], row["last"]) for row in card["prices"]]
    lines += _table(("prices from", "calls", "USD", "first call", "last call"), prices)
    return "\n".join([*lines, *_overlap(card["overlap"])]) + "\n"


def _pairs(row: Mapping[str, Any]) -> list[str]:
    same = row["same_in_both"]
    return [
        "## Pairs",
        "",
        f"This is the set `{row['set']}` of {counted(row['pairs'], 'pair')} (--pairs {row['kind']}); "
        f"{same:,} of them {'is' if same == 1 else 'are'} one trajectory in both sets. Where a row is a conversation, "
        "line n of one file and line n of the other are a pair.",
        "",
        row["how"],
        "",
        *_table(
            ("set", "file", "samples", "chains", "queries", "tokens, mean", "tool calls, mean"),
            [
                (
                    name,
                    it["file"],
                    it["samples"],
                    it["chains"],
                    it["queries"],
                    _number(it["tokens_mean"]),
                    _number(it["tool_calls_mean"]),
                )
                for name, it in row["sets"].items()
            ],
        ),
    ]


def _guidance(counts: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(counts[name] for name in ("windows", "sent", "faults", "leaks"))


def _overlap(row: Mapping[str, Any]) -> list[str]:
    chains = row["exported_chains_with_one"]
    lines = [
        "## Overlap",
        "",
        f"Pull requests of benchmarks that the choice of chains kept out: "
        f"{row['benchmark_pull_requests_kept_out']:,}; exported chains that hold one: {len(chains):,}.",
    ]
    if file := row.get("file"):
        lines.append(
            f"{file['samples_that_share_text']:,} of {file['samples_looked_at']:,} samples share a run of 13 words "
            f"with {_safe(file['name'])} ({counted(file['lines'], 'line')})."
        )
        lines += [
            "",
            *_table(
                ("sample", "n-grams", "lines"),
                [(hit["sample"], hit["ngrams"], ", ".join(map(str, hit["lines"]))) for hit in file["hits"]],
            ),
        ]
    else:
        lines.append("No file of texts to compare with was given (--overlap).")
    return lines


def _table(head: tuple[str, ...], rows: list[Any]) -> list[str]:
    if not rows:
        return ["Nothing.", ""]
    out = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    out += [f"| {' | '.join(_safe(cell) for cell in row)} |" for row in rows]
    return [*out, ""]


def _tallied(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items())


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _value(value: Any) -> Any:
    """A setting's value, nothing where there is none; the values of a list joined by commas."""
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else "" if value is None else value


def _safe(value: Any) -> str:
    """A text without effect in Markdown and HTML: one that could have an effect is written as code."""
    text = _UNSAFE.sub(" ", str(value))
    return f"`{text}`" if _ACTS.search(text) else text


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.4f}"
