"""The card of an exported file as its page shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prchain.view.training_rows import TokenSlice
from trajectories.export.loss import NOT_THE_MODELS, loss_rows, loss_words
from trajectories.export.write import card_paths
from trajectories.model import Reason

_FIGURES = (
    ("tokens", "Tokens"),
    ("tokens_under_loss", "Tokens under loss"),
    ("tool_calls", "Tool calls"),
    ("turns", "Turns of the model"),
)
_MOST_CARD = 1 << 24
"""Bytes; a card is some kilobytes."""


@dataclass(frozen=True, slots=True)
class CardView:
    """What the card beside a file says."""

    name: str
    problem: str
    """Why the rest is empty, or what does not fit the file; empty where all is well."""
    facts: tuple[tuple[str, str], ...] = ()
    figures: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    loss: str = ""
    reasons: tuple[tuple[str, ...], ...] = ()
    """Reason, messages, tokens, share and meaning."""
    bar: tuple[TokenSlice, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    outcomes: tuple[tuple[str, int], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    text: str = ""
    """The whole card for people."""


def read_card(file: Path, digest: str) -> CardView:
    """The card of an exported file, whose SHA-256 is `digest`."""
    for_people, path = _card_of(file)
    card = _json(path)
    if card is None:
        return CardView(path.name, "there is no such card beside the file, or it cannot be read")
    try:
        text = for_people.read_text(encoding="utf-8", errors="replace")[:_MOST_CARD] if for_people.is_file() else ""
        return _card(path.name, card, file.name, digest, text)
    except (KeyError, TypeError, ValueError, AttributeError, OSError):
        return CardView(path.name, "it is no card of this version of prchain")


def _card(name: str, card: Mapping[str, Any], file: str, digest: str, text: str) -> CardView:
    of_file = next((it for it in card["files"] if it["name"] == file), None)
    problem = "" if of_file and of_file["sha256"] == digest else "the file is not the one that this card is of"
    facts = (
        ("format", str(card["format"])),
        ("samples", f"{card['samples']:,}"),
        ("trajectories", f"{card['trajectories']:,}"),
        ("chains", f"{card['chains']:,}"),
        ("repositories", ", ".join(f"{it['name']} ({it['samples']:,})" for it in card["repositories"])),
        ("licences", ", ".join(f"{licence} ({count:,})" for licence, count in card["licences"].items())),
        ("agents", ", ".join(f"{agent} ({count:,})" for agent, count in card["agents"].items())),
        ("judges", ", ".join(f"{judge} ({count:,})" for judge, count in card["judges"].items())),
        ("tokens", str(card["tokens_how"])),
        ("SHA-256", str(of_file["sha256"]) if of_file else ""),
    )
    figures = tuple(
        (title, {**dict.fromkeys(("mean", "median", "p90", "max", "total")), **card[key]}) for key, title in _FIGURES
    )
    return CardView(
        name,
        problem,
        facts,
        figures,
        loss_words(card["loss"]),
        tuple(loss_rows(card["loss"])),
        tuple(_loss_bar(card["loss"])),
        tuple((str(reason), int(count)) for reason, count in card["left_out"].items()),
        tuple((str(name), int(count)) for name, count in card["outcomes_of_all_trajectories"].items()),
        tuple((str(name), _plain(value)) for name, value in card["options"].items() if value not in (None, [], False)),
        text,
    )


def _loss_bar(loss: Mapping[str, Any]) -> Iterator[TokenSlice]:
    whole, at = loss["tokens"] or 1, 0
    for reason, row in loss["by_reason"].items():
        kind = Reason(reason)
        style = "train" if kind is Reason.TURN else "rest" if kind in NOT_THE_MODELS else "masked"
        yield TokenSlice(style, round(100 * at / whole, 3), round(100 * row["tokens"] / whole, 3))
        at += row["tokens"]


def _card_of(file: Path) -> tuple[Path, Path]:
    """The card's two files: a file for validation has that of the file for training beside it."""
    own = card_paths(file)
    return own if own[1].exists() else card_paths(file.with_name(file.name.replace(".validation.", ".", 1)))


def is_per_turn(file: Path) -> bool:
    """Whether the rows of a file are of one turn each, by its card."""
    card = _json(_card_of(file)[1])
    options = card.get("options") if card else None
    return isinstance(options, dict) and options.get("rows") == "turns"


def _json(path: Path) -> Mapping[str, Any] | None:
    try:
        with path.open("rb") as stream:
            found = json.loads(stream.read(_MOST_CARD))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
