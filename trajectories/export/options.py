"""What an export takes, and how it writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prchain.core.errors import UsageError
from sql.strength import ProofFilter
from trajectories.export.masks import DEFAULT_MASKS, Mask, Refinements
from trajectories.export.recipe import Recipe
from trajectories.outcomes import KEPT

TooLong = Literal["drop", "split"]
SplitBy = Literal["repository", "chain"]
Duplicates = Literal["trees", "conversation", "keep"]
PerChain = Literal["all", "shortest"]
PairKind = Literal["none", "short-long", "rejection-sampling"]
Rows = Literal["conversations", "turns"]
Reasoning = Literal["field", "inline", "drop"]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Everything that decides the bytes of an export, besides the database and the format."""

    outcomes: frozenset[str] = KEPT
    repository: str | None = None
    model: str | None = None
    rows: Rows = "conversations"
    masks: frozenset[Mask] = DEFAULT_MASKS
    refinements: Refinements = "mask"
    guidance: Literal["keep", "drop"] = "keep"
    """Whether an observer's words stay in the conversation; they are never under loss."""
    reasoning: Reasoning = "field"
    """Where a turn's reasoning goes: into a field of its own (``field``, where the format has one), before the content
    in ``<think>`` (``inline``, and ``field`` where the format has none), or nowhere (``drop``)."""
    max_tokens: int | None = None
    too_long: TooLong = "drop"
    tokenizer: Path | None = None
    """A ``tokenizer.json``; None: tokens are estimated."""
    validation: float = 0.0
    split_by: SplitBy = "repository"
    seed: int = 0
    duplicates: Duplicates = "trees"
    per_chain: PerChain = "all"
    """``shortest``: one trajectory a chain (`trajectories.export.shortest`)."""
    at_most: int | None = None
    """So many of the samples at random, by `seed`; None: all."""
    overlap: Path | None = None
    """A file of texts that no sample should hold; the card tells which do."""
    scaffolds: frozenset[str] | None = None
    """Trajectories of these scaffolds alone; None: of all but `DISCLOSED`, whose agents were told a part of a process
    graph."""
    recipe: Recipe | None = None
    """Whose training arguments are written beside the file, of the trainers that the papers used."""
    grounded: bool = False
    """Whether a turn right after an observer's words, which are dropped, is under loss only where it names nothing that
    the task or an observation has not shown."""
    pairs: PairKind = "none"
    """Which two sets of the same chains are written (`trajectories.export.pairs`)."""
    retold: bool = True
    """Whether the texts of an accepted prefix are those told anew for it, not those that the agent read."""
    proof: ProofFilter = ProofFilter.ANY
    """What the proofs of the exported stages have to be worth."""

    def __post_init__(self) -> None:
        if not 0 <= self.validation < 1:
            raise UsageError("--split is a share of the samples: 0 or more, and less than 1")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UsageError("--max-tokens must be 1 or more")
        if self.per_chain == "shortest" and not self.outcomes <= KEPT:
            raise UsageError(
                "--per-chain shortest compares trajectories that passed: give no --outcome but "
                f"{' and '.join(sorted(KEPT))}"
            )
        if self.grounded and self.guidance != "drop":
            raise UsageError("--grounded is of turns whose guidance is dropped: add --guidance drop")
        if self.at_most is not None and self.at_most < 1:
            raise UsageError("--at-most must be 1 or more")
        if self.pairs != "none":
            self._check_pairs()

    def _check_pairs(self) -> None:
        for flag, given in (
            ("--split", self.validation > 0),
            ("--too-long split", self.too_long == "split"),
            ("--per-chain shortest", self.per_chain == "shortest"),
            ("--outcome", self.outcomes != KEPT),
        ):
            if given:
                raise UsageError(f"--pairs writes two sets of whole samples of the same chains: leave out {flag}")

    @property
    def masks_nothing(self) -> bool:
        """Whether every assistant turn is under loss, in every sample."""
        return not self.masks and self.refinements != "mask" and not self.grounded
