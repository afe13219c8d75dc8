"""The table of hand-made texts, read, checked and scored."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from prchain.core.leaks import Finding, Kind, StageFacts, check
from prchain.core.shares import wilson

FOLDER = Path(__file__).parent
SPLITS = ("tuned", "seen", "held_out", "disguised_tuned", "disguised_held_out", "reviewed")
FACTS = FOLDER / "facts.json"


@dataclass(frozen=True)
class Text:
    """One text of the table. `leaks` are the kinds of leak that a reader finds in it; none in a clean text."""

    id: str
    chain: str
    stage: int
    kind: Kind
    leaks: tuple[str, ...]
    text: str
    hard: bool = False


class ChainFacts(NamedTuple):
    """The facts of a chain's stages, and the paths at the base of each that its texts may mean."""

    stages: tuple[StageFacts, ...]
    paths: tuple[frozenset[str], ...]


@dataclass
class Score:
    """The results of a split: texts by their label and by the verdict of the check."""

    caught: list[Text] = field(default_factory=list)
    missed: list[Text] = field(default_factory=list)
    blamed: list[tuple[Text, list[Finding]]] = field(default_factory=list)
    cleared: list[Text] = field(default_factory=list)
    kinds: dict[str, list[bool]] = field(default_factory=dict)
    """For each kind of leak in the labels, whether the check names that kind, text by text."""

    @property
    def precision(self) -> tuple[int, int]:
        """(leaking texts, all texts) among those that the check refuses."""
        return len(self.caught), len(self.caught) + len(self.blamed)

    @property
    def recall(self) -> tuple[int, int]:
        """(refused texts, all texts) among those that leak."""
        return len(self.caught), len(self.caught) + len(self.missed)


def read_toml(name: str) -> dict[str, Any]:
    """One of the table's files."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def read_texts(split: str) -> list[Text]:
    """The texts of a split."""
    return [Text(**entry | {"leaks": tuple(entry["leaks"])}) for entry in read_toml(split)["texts"]]


def read_facts() -> dict[str, ChainFacts]:
    """The committed facts by chain."""
    values = json.loads(FACTS.read_text(encoding="utf-8"))
    return {
        name: ChainFacts(
            tuple(StageFacts.from_json(json.dumps(stage)) for stage in chain["stages"]),
            tuple(map(frozenset, chain["paths"])),
        )
        for name, chain in values.items()
    }


def judge(text: Text, facts: Mapping[str, ChainFacts]) -> list[Finding]:
    """The findings of the check in a text; an overview is checked against the tree that the chain begins with."""
    chain = facts[text.chain]
    paths = chain.paths[max(text.stage - 1, 0)]
    return check(text.text, chain.stages, text.stage, kind=text.kind, paths_at_base=paths)


def score(texts: Iterable[Text], facts: Mapping[str, ChainFacts]) -> Score:
    """Check texts, each as a whole: it leaks or it does not."""
    result = Score()
    for text in texts:
        leaks = [finding for finding in judge(text, facts) if finding.severity == "leak"]
        named = {finding.kind for finding in leaks}
        if text.leaks:
            (result.caught if leaks else result.missed).append(text)
            for kind in text.leaks:
                result.kinds.setdefault(kind, []).append(kind in named)
        elif leaks:
            result.blamed.append((text, leaks))
        else:
            result.cleared.append(text)
    return result


def share(hits: int, total: int) -> str:
    """A share with its 95 % Wilson interval."""
    if not total:
        return "none"
    low, high = wilson(hits, total)
    return f"{hits}/{total} = {hits / total:.1%} [{low:.1%}, {high:.1%}]"
