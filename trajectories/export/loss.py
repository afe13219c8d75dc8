"""How much is under loss, and why the rest is not: messages and tokens by the reason of a loss decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trajectories.model import Reason

NOT_THE_MODELS = frozenset({Reason.SYSTEM, Reason.USER, Reason.OBSERVATION, Reason.GUIDANCE})
"""Reasons of messages that no model wrote; all others are of turns."""

LOSS_WORDS: Mapping[Reason, str] = {
    Reason.TURN: "under loss",
    Reason.REFINEMENT: "of a rejected round",
    Reason.FAULTY: "malformed, empty, refused or cut off",
    Reason.TOOL_ERROR: "its tool did not do what was asked",
    Reason.COMMAND_ERROR: "its command failed",
    Reason.UNFOUNDED_CLAIM: "claims passing tests that it had not seen",
    Reason.GUIDED: "rests on an observer's words",
    Reason.UNTRAINED: "kept from training by those who published it",
    Reason.CONTEXT: "under loss in a row of its own",
    Reason.OBSERVATION: "what tools answered",
    Reason.USER: "queries and reviews",
    Reason.SYSTEM: "the system's message",
    Reason.GUIDANCE: "an observer's words",
}


class LossCount:
    """Counts messages and their tokens by reason."""

    def __init__(self) -> None:
        self._messages: Counter[Reason] = Counter()
        self._tokens: Counter[Reason] = Counter()

    def add(self, reason: Reason, tokens: int, messages: int = 1) -> None:
        """Add messages of one reason, with the tokens of their texts."""
        self._messages[reason] += messages
        self._tokens[reason] += tokens

    def figures(self) -> dict[str, Any]:
        """Turns and tokens (of all messages), how many of each are under loss, and their shares (None of nothing); and
        messages and tokens by reason: first what is under loss, then by tokens."""
        turns = sum(count for reason, count in self._messages.items() if reason not in NOT_THE_MODELS)
        tokens = self._tokens.total()
        order = sorted(self._messages, key=lambda reason: (reason is not Reason.TURN, -self._tokens[reason], reason))
        return {
            "turns": turns,
            "turns_under_loss": self._messages[Reason.TURN],
            "turn_share": _share(self._messages[Reason.TURN], turns),
            "tokens": tokens,
            "tokens_under_loss": self._tokens[Reason.TURN],
            "token_share": _share(self._tokens[Reason.TURN], tokens),
            "by_reason": {
                str(reason): {"messages": self._messages[reason], "tokens": self._tokens[reason]} for reason in order
            },
        }


def loss_words(figures: Mapping[str, Any]) -> str:
    """The shares in one sentence, from `LossCount.figures`."""
    turns, tokens = (
        f"{figures[f'{name}s_under_loss']:,} of {figures[f'{name}s']:,} {name}s{_percent(figures[f'{name}_share'])}"
        for name in ("turn", "token")
    )
    return f"Under loss are {turns} and {tokens}"


def loss_rows(figures: Mapping[str, Any]) -> Sequence[tuple[str, str, str, str, str]]:
    """Rows for people: reason, turns (or other messages), tokens, the tokens' share, and what it means."""
    return [
        (
            reason,
            f"{row['messages']:,}",
            f"{row['tokens']:,}",
            "" if not figures["tokens"] else f"{row['tokens'] / figures['tokens']:.1%}",
            LOSS_WORDS[Reason(reason)],
        )
        for reason, row in figures["by_reason"].items()
    ]


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({share:.1%})"
