"""Sheets of stages for somebody who checks by reading whether a stage can be solved."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from prchain.core.code.needs import Need, full_query, interface_of, unmet, verdict_of

EACH = 10
"""Sheets of either verdict."""

_SEED = 17


class ReadStage(NamedTuple):
    """A stage with what its hidden tests need. `words` are the messages of its commits."""

    repository: str
    path: str
    number: int
    base: str
    landed: str
    words: str
    needs: tuple[Need, ...]

    def sheet(self, query: str) -> str:
        """What the reader gets."""
        return (
            f"# {self.repository} #{self.number}\n\n"
            f"git -C {self.path} diff {self.base} {self.landed}\n\n## Query\n\n{query}\n"
        )


def write_sheets(stages: Sequence[ReadStage], folder: Path) -> None:
    """Write the sheets, in no order of verdicts, and `key.csv`; the same ones whenever the stages are the same."""
    chance = random.Random(_SEED)
    lacking = [stage for stage in stages if verdict_of(unmet(stage.words, stage.needs, "paper")) == "not_solvable"]
    taken = chance.sample(lacking, min(EACH, len(lacking)))
    fine = [stage for stage in stages if stage not in taken and not unmet("", stage.needs)]
    fine_parts = [stage for stage in fine if stage.needs], [stage for stage in fine if not stage.needs]
    solvable = [stage for part in fine_parts for stage in chance.sample(part, min(EACH // 2, len(part)))]
    rows = [(stage, stage.words, "not solvable") for stage in taken]
    rows += [(stage, full_query(stage.words, interface_of(stage.needs)), "solvable") for stage in solvable]
    chance.shuffle(rows)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "key.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("sheet", "repository", "number", "verdict", "lacks"))
        for number, (stage, query, verdict) in enumerate(rows, 1):
            (folder / f"{number:02}.md").write_text(stage.sheet(query), encoding="utf-8")
            lacks = "; ".join(need.words() for need in unmet(query, stage.needs, "paper"))
            writer.writerow((f"{number:02}", stage.repository, stage.number, verdict, lacks))
