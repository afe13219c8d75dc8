"""What an export takes, and how it writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prchain.core.errors import UsageError
from prchain.core.told import Within, told
from sql.label_filter import LabelFilter
from sql.proof_filter import ProofFilter
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
BranchChoice = Literal["main", "all"]


GUIDANCE = Within("--guidance", "Loss", "Whether an observer's words stay in the conversation.")
LONGEST = Within("--max-tokens", "Loss", "The longest sample that is wanted.")
SPLIT = Within("--split", "Split", "So much of the samples goes into a second file, for validation.")
DUPLICATES = Within("--duplicates", "Which", "Samples of a chain that are left out for another one.")
PREDICTIONS = Within("--predictions", "Which", "With swebench: which rollouts.")


@dataclass(frozen=True, slots=True)
class PredictionChoice:
    """Which rollouts predictions are of."""

    sample: int | None = told(None, "Which sample.", PREDICTIONS, why="the harness takes one", unset="the lowest")
    like: str | None = told(
        None,
        "Only rollouts with the model, judge, options and prompts of this trajectory, named by its id or the beginning "
        "of it. Needed where there are several.",
        PREDICTIONS,
        why="the harness takes one set of options",
        metavar="ID",
    )


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Everything that decides the bytes of an export, besides the database and the format."""

    outcomes: frozenset[str] = KEPT
    repository: str | None = None
    strategy: str | None = None
    """Only trajectories over chains that this strategy chose; None: over all."""
    model: str | None = None
    rows: Rows = told(
        "conversations",
        "turns: a row for every turn under loss, for trainers that cannot leave turns out of it.",
        "File",
        why="trainers without a loss mask",
    )
    masks: frozenset[Mask] = DEFAULT_MASKS
    refinements: Refinements = told(
        "mask",
        "Rejected rounds: out of the loss, under loss as any other, or leave their samples out.",
        "Loss",
        why="trainers without a loss mask; and to learn from one's mistakes, or not",
        name="rejected",
    )
    guidance: Literal["keep", "drop"] = told(
        "keep",
        "Whether an observer's words stay in the conversation; they are never under loss.",
        GUIDANCE,
        why="a model that shall work without an observer",
        head=True,
    )
    reasoning: Reasoning = told(
        "field",
        "A turn's reasoning: a field of its own where the format has one; before the content in <think>; nowhere.",
        "Loss",
        why="models that do not think, and templates that take it in the text",
    )
    max_tokens: int | None = told(
        None, "The longest sample that is wanted.", LONGEST, why="a trainer's context", least=1, head=True
    )
    too_long: TooLong = told(
        "drop",
        "Longer ones: leave them out, or split them at stage boundaries.",
        LONGEST,
        why="long chains are most of the data",
    )
    tokenizer: Path | None = told(
        None,
        "A tokenizer.json to count with, and the chat template beside it; else tokens are estimated.",
        "Loss",
        why="lengths as the trainer counts them",
        metavar="FILE",
    )
    validation: float = told(
        0.0,
        "So much of the samples goes into a second file, for validation.",
        SPLIT,
        why="a validation set",
        least=0,
        most=1,
        below=True,
        head=True,
        metavar="SHARE",
    )
    split_by: SplitBy = told(
        "repository",
        "What is never in both files; chain: nor any chain that shares a pull request with it.",
        SPLIT,
        why="few repositories",
        name="by",
    )
    seed: int = told(0, "Of --split, --at-most and --pairs.", "Which", why="another draw")
    duplicates: Duplicates = told(
        "trees",
        "Leave out samples of a chain that end with the same trees; only equal conversations; none.",
        DUPLICATES,
        why="several ways to one result, or not",
        head=True,
    )
    per_chain: PerChain = told(
        "all",
        "shortest: of a chain's trajectories that passed the most stages, the one in which the model said the least.",
        DUPLICATES,
        why="a baseline of the paper (P2T, section 5)",
    )
    at_most: int | None = told(
        None,
        "Only N samples (or pairs), drawn at random of all that would be written.",
        "Which",
        why="sets of equal size",
        least=1,
    )
    overlap: Path | None = told(
        None,
        "Texts that no sample should hold, say a benchmark's: JSON, or a text a line. The card tells which samples "
        "share 13 words in a row.",
        "Split",
        why="contamination",
        metavar="FILE",
    )
    scaffolds: frozenset[str] | None = None
    """Trajectories of these scaffolds alone; None: of all but `DISCLOSED`, whose agents were told a part of a process
    graph."""
    windows: Mapping[str, Any] = field(default_factory=dict)
    """Of curated trajectories those alone whose windows have these values (`trajectories.curation.windows.options`)."""
    recipe: Recipe | None = told(
        None,
        "With the format of the same name: write the papers' training arguments, too, to FILE.recipe.sh.",
        "File",
        why="training as the papers do",
    )
    grounded: bool = told(
        False,
        "With drop: a turn right after such words is under loss only where all paths, names and numbers in it were "
        "shown otherwise.",
        GUIDANCE,
        why="guidance must not teach to guess",
    )
    pairs: PairKind = told(
        "none",
        "Two sets of the same chains in two files: accepted prefixes and what they were extended to; or rollouts as "
        "they came and kept ones, with equal queries.",
        "Which",
        why="the papers' comparisons",
    )
    benchmarks: bool = told(
        False,
        "Also samples of tasks that measure models, imported or mined.",
        "Which",
        why="a benchmark's own trajectories, not for training",
    )
    retell: bool = told(
        False,
        "Accepted prefixes with the overview and the number of stages of the shorter chain, not as their agents read "
        "them.",
        "Which",
        why="a sample that promises no stage which it lacks",
    )
    branches: BranchChoice = told(
        "main",
        "Of agent programs: the conversation that ended an attempt, or a recorded run; or also what was asked beside "
        "it (sub-agents, titles, what a summary replaced), as samples of their own.",
        "Which",
        why="to train on what agents ask beside their task, or not",
    )
    proof: ProofFilter = ProofFilter.ANY
    """What the proofs of the exported stages have to be worth."""
    labels: LabelFilter = LabelFilter.ANY
    """What people have to say of the chain."""

    def __post_init__(self) -> None:
        if not 0 <= self.validation < 1:
            raise UsageError("--split is a share of the samples: 0 or more, and less than 1")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UsageError("--max-tokens must be 1 or more")
        if self.per_chain == "shortest" and not self.outcomes <= KEPT:
            raise UsageError(
                "per_chain=shortest compares trajectories that passed: give no --outcome but "
                f"{' and '.join(sorted(KEPT))}"
            )
        if self.grounded and self.guidance != "drop":
            raise UsageError("grounded is of turns whose guidance is dropped: write --guidance drop:grounded=on")
        if self.at_most is not None and self.at_most < 1:
            raise UsageError("--at-most must be 1 or more")
        if self.pairs != "none":
            self._check_pairs()

    def _check_pairs(self) -> None:
        for flag, given in (
            ("--split", self.validation > 0),
            ("too_long=split", self.too_long == "split"),
            ("per_chain=shortest", self.per_chain == "shortest"),
            ("--outcome", self.outcomes != KEPT),
            ("--branches all", self.branches == "all"),
            ("--retell", self.retell and self.pairs == "rejection-sampling"),
        ):
            if given:
                raise UsageError(f"--pairs writes two sets of whole samples of the same chains: leave out {flag}")

    @property
    def masks_nothing(self) -> bool:
        """Whether every assistant turn is under loss, in every sample."""
        return not self.masks and self.refinements != "mask" and not self.grounded
