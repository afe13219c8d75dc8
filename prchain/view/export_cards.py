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
"""Bytes; a card is some kilobytes, and some for each thousand of samples."""
_MOST_STAND_INS = 200


@dataclass(frozen=True, slots=True)
class TokenSums:
    """What the totals of a card count."""

    texts: int
    """Of the texts of all messages: what the shares under loss are of."""
    trained: int
    whole: int
    """Of all samples: also what tools there are, and what stands around messages."""
    around: int
    """What is not of the texts; below 0 where a template leaves texts out."""
    per_turn: bool
    """Whether rows are of one turn, and repeat what came before it."""
    estimated: bool


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
    sums: TokenSums | None = None
    stand_ins: tuple[tuple[str, str, str], ...] = ()
    """Trajectories that were left out, why, and the one that is there in their place: the first ones."""


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
    loss, stand_ins = card["loss"], card.get("left_out_for", [])
    sums = TokenSums(
        int(loss["tokens"]),
        int(loss["tokens_under_loss"]),
        int(card["tokens"]["total"]),
        int(card["tokens"]["total"]) - int(loss["tokens"]),
        card["options"].get("rows") == "turns",
        card["tokens_by"] == "estimate",
    )
    figures = tuple(
        (title, {**dict.fromkeys(("mean", "median", "p90", "max", "total")), **card[key]}) for key, title in _FIGURES
    )
    return CardView(
        name,
        problem,
        facts,
        figures,
        loss_words(loss),
        tuple(loss_rows(loss)),
        tuple(_loss_bar(loss)),
        tuple((str(reason), int(count)) for reason, count in card["left_out"].items()),
        tuple((str(name), int(count)) for name, count in card["outcomes_of_all_trajectories"].items()),
        tuple((str(name), _plain(value)) for name, value in card["options"].items() if value not in (None, [], False)),
        text,
        sums,
        tuple((str(it["trajectory"]), str(it["reason"]), str(it["exported"])) for it in stand_ins[:_MOST_STAND_INS]),
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


def row_owners(file: Path, digest: str, rows: int) -> tuple[str, ...]:
    """The trajectory of each row of a file with so many rows, by its card; empty where no card tells."""
    card = _json(_card_of(file)[1])
    try:
        [of_file] = [it for it in card["files"] if it["name"] == file.name and it["sha256"] == digest] if card else []
        counts = {str(name): count for name, count in of_file["trajectories"].items() if count > 0}
        fits = sum(counts.values()) == rows
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()
    return tuple(name for name, count in counts.items() for _ in range(count)) if fits else ()


def _json(path: Path) -> Mapping[str, Any] | None:
    try:
        with path.open("rb") as stream:
            found = json.loads(stream.read(_MOST_CARD))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
