"""Samples that are longer than the trainer's limit: dropped, or split into pieces."""

from __future__ import annotations

from typing import NamedTuple

from trajectories.export.options import TooLong
from trajectories.export.samples import Sample, piece
from trajectories.export.tokens import Counter, Tokens

TOO_LONG = "too_long"
NOTHING_TO_TRAIN = "nothing_to_train"


class FittedSamples(NamedTuple):
    """Samples that fit, with their tokens, and the reason of each one that was left out."""

    kept: list[tuple[Sample, Tokens]]
    left_out: list[str]


def fit(
    sample: Sample, counter: Counter, limit: int | None, policy: TooLong, *, each_stage: bool = False
) -> FittedSamples:
    """The sample if it has at most `limit` tokens, else the result of `policy`.

    `each_stage`: the conversation began anew with every stage, so each stage is a piece of its own, unchanged.

    ``drop`` leaves the sample out. ``split`` cuts it at stage boundaries into as few pieces as fit, in order; a stage
    that is too long alone is left out. A piece begins with the system message, and with the overview before its first
    query, but without the messages of earlier stages, although the agent's later turns may refer to them.
    """
    if not sample.trained:
        return FittedSamples([], [NOTHING_TO_TRAIN])
    if each_stage:
        return _each_stage(sample, counter, limit)
    tokens = counter.sample(sample)
    if limit is None or tokens.total <= limit:
        return FittedSamples([(sample, tokens)], [])
    positions = sorted({turn.position for turn in sample.turns})
    if policy == "drop" or len(positions) == 1:
        return FittedSamples([], [TOO_LONG])
    kept: list[tuple[Sample, Tokens]] = []
    left_out: list[str] = []
    while positions:
        for length in range(len(positions), 0, -1):
            part = piece(sample, positions[:length], len(kept) + 1, lead=True)
            part_tokens = counter.sample(part)
            if part_tokens.total <= limit or length == 1:
                break
        if not part.trained:
            left_out.append(NOTHING_TO_TRAIN)
        elif part_tokens.total > limit:
            left_out.append(TOO_LONG)
        else:
            kept.append((part, part_tokens))
        positions = positions[length:]
    return FittedSamples(kept, left_out)


def _each_stage(sample: Sample, counter: Counter, limit: int | None) -> FittedSamples:
    fitted = FittedSamples([], [])
    for number, position in enumerate(sorted({turn.position for turn in sample.turns}), 1):
        part = piece(sample, [position], number, lead=False)
        tokens = counter.sample(part)
        if not part.trained:
            fitted.left_out.append(NOTHING_TO_TRAIN)
        elif limit is not None and tokens.total > limit:
            fitted.left_out.append(TOO_LONG)
        else:
            fitted.kept.append((part, tokens))
    return fitted
