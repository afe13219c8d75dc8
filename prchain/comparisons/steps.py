"""The commands of a paper's main comparison, in order. All of them are what a user types; each can be run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prchain.comparisons.rows import (
    AGENCY,
    ERROR_MASKED,
    EXPERT_PRM,
    FULL,
    OPEN_PRM,
    SINGLE,
    SIZE_MATCHED,
    TEMPORAL,
    TEST_PASS,
)


@dataclass(frozen=True, slots=True)
class ComparisonStep:
    """A command (its words after ``prchain``), with what is printed before it."""

    title: str
    words: str
    command: Sequence[str]
    at_most: Path | None = None
    """The file whose number of samples the command's ``--at-most`` takes."""
    go_on: bool = False
    """Whether the run goes on even where the command is refused: a set that nothing was made for has no file."""


@dataclass(frozen=True, slots=True)
class ComparisonChoice:
    """What a comparison works on."""

    folder: Path
    """Where its files go."""
    pool: Path | None = None
    """A list of repositories, or a published data set; None: what the database holds."""
    scaffold: str = "react"
    """Of the teacher's rollouts."""
    images: bool = False
    """Whether tasks may be taken out of their publishers' images."""
    expert: bool = False
    """Whether another model guides than the one that works."""
    policies: str = "agent"
    """Purposes whose models are guided, as `prm sweep` takes them."""


def steps_of(paper: str, choice: ComparisonChoice) -> list[ComparisonStep]:
    """The steps of a paper, one of `prchain.papers.PAPERS`."""
    table = ["papers", "table", paper, "--folder", str(choice.folder)]
    return [*_MADE_BY[paper](choice), ComparisonStep("The table", "", table)]


def _davinci(choice: ComparisonChoice) -> Iterator[ComparisonStep]:
    if choice.pool is not None:
        yield ComparisonStep(
            "Mine", "The pull requests of the repositories, and what they cite.", ["mine", str(choice.pool)]
        )
    sets = (
        ("reference", AGENCY, "daVinci-Agency", "Chains of pull requests that cite each other."),
        ("temporal", TEMPORAL, "TemporalChain", "The same pull requests in chains of those that landed in turn."),
        ("single", SINGLE, "SinglePR", "The same pull requests, each alone."),
    )
    for strategy, name, title, words in sets:
        of = ["--strategy", strategy]
        yield ComparisonStep(title, words, _as("davinci", "chains", "build", *of, "--side-by-side"))
        yield ComparisonStep("", "", _as("davinci", "tasks", "build", *of))
        yield ComparisonStep("", "", _as("davinci", "rollouts", "run", *of))
        yield ComparisonStep("", "", _as("davinci", "export", *of, *_to(choice, name)))


def _p2t(choice: ComparisonChoice) -> Iterator[ComparisonStep]:
    of = ["--strategy", "imported"]
    yield from _imported(choice)
    yield ComparisonStep(
        "Rejection sampling", "The teacher works alone; tests say what passes.", _as("p2t", "rollouts", "run", *of)
    )
    yield ComparisonStep("Curation", "Process graphs of the reference patches.", _as("p2t", "curate", "graphs", *of))
    yield ComparisonStep("", "Trajectories that grow along them, window by window:", _as("p2t", "curate", "run", *of))
    plain, curated = ["--scaffold", choice.scaffold], ["--scaffold", "curated:commit=shortest,ground=on"]
    masks = ["--mask", "tool_errors,command_errors"]
    sets = (
        ("Test-Pass RS", "Rollouts whose tests passed.", plain, TEST_PASS),
        (
            "SWE-Lego",
            "The same, without turns whose tool or command failed under loss.",
            [*plain, *masks],
            ERROR_MASKED,
        ),
        ("Full", "Curated trajectories.", curated, FULL),
        ("Size-Matched", "As many of these as rejection sampling gave.", curated, SIZE_MATCHED),
    )
    for title, words, flags, name in sets:
        as_many = choice.folder / f"{TEST_PASS}.jsonl" if name == SIZE_MATCHED else None
        command = _as("p2t", "export", *of, *flags, *_to(choice, name))
        yield ComparisonStep(title, words, command, as_many, go_on=True)
    yield ComparisonStep("", "What each of them is made of, and cost:", ["curate", "study", "baselines"])


def _swe_prm(choice: ComparisonChoice) -> Iterator[ComparisonStep]:
    yield from _imported(choice)
    variants = ",".join(("base", *(EXPERT_PRM if choice.expert else OPEN_PRM)))
    words = (
        "Another model guides (table 3): one rollout a task under each of the paper's variants, and one under none."
        if choice.expert
        else "Each model guides itself (table 2): one rollout a task under each variant, and one under none. A model "
        "of its own in [purposes.prm] makes it table 3."
    )
    sweep = _as("swe-prm", "prm", "sweep", "--strategy", "imported")
    guides = "prm" if choice.expert else "self"
    of = ["--policies", choice.policies, "--guides", guides]
    yield ComparisonStep("Rollouts", words, [*sweep, *of, "--variants", variants])
    if choice.expert:
        alone = [*sweep, "--policies", "prm", "--variants", "base"]
        yield ComparisonStep("", "And of the model that guides, alone.", alone)
    yield ComparisonStep("", "All figures, also by difficulty, with intervals:", ["prm", "report"])


def _imported(choice: ComparisonChoice) -> Iterator[ComparisonStep]:
    if choice.pool is not None:
        images = ["--images"] if choice.images else []
        yield ComparisonStep("Tasks", "As their publisher wrote them.", ["tasks", "import", str(choice.pool), *images])
    yield ComparisonStep(
        "Proofs",
        "Those whose reference passes its tests here are worked on.",
        ["environments", "validate", "--strategy", "imported"],
    )


def _as(paper: str, *words: str) -> list[str]:
    return ["--as-paper", paper, *words]


def _to(choice: ComparisonChoice, name: str) -> list[str]:
    return ["--out", str(choice.folder / f"{name}.jsonl"), "--force"]


_MADE_BY = {"davinci": _davinci, "p2t": _p2t, "swe-prm": _swe_prm}


def with_shared(step: Sequence[str], known: Mapping[str, object], shared: Mapping[str, str | bool | None]) -> list[str]:
    """The words of a command with those flags of `shared` that it knows and that have a value; of a flag that takes
    none, whether it is given."""
    words = list(step)
    for flag, value in shared.items():
        if flag in known and value not in (None, False):
            words += [flag] if value is True else [flag, str(value)]
    return words
