"""The line of an exported task, as a shape: `docs/tasks.schema.json` is made of it.

A change that takes a field away or gives it another meaning raises `SCHEMA_VERSION`; a new field does not.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from prchain.core.code.needs import Interface, NeedKind, Verdict
from sql.strength import Worth

SCHEMA_VERSION = 3
"""What every line carries."""


Standing = Literal["selected", "retired"]
"""Whether a strategy still chooses a chain."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RepositoryRecord(_Record):
    """The repository that the chain is of."""

    host: str
    name: str = Field(description="OWNER/NAME")
    location: str | None = Field(description="clone URL it was mined from; null where it was mined from a local path")


class FindingRecord(_Record):
    """What the leak check or the reviewer says of a text."""

    text: str = Field(description="where it was found: query, overview, or issue OWNER/NAME#N (a passage left out)")
    kind: str
    severity: Literal["leak", "warning"]
    evidence: str
    stage: int | None = Field(description="the 1-based stage that is given away")
    by: Literal["check", "review"] = Field(default="check", description="the leak check, or the reviewer of --review")
    why: str | None = Field(default=None, description="what the reviewer says of it")


class CitationRecord(_Record):
    """One place where the stage's pull request cites that of the stage before."""

    field: str = Field(description="title, body, comment, review, review_comment, commit, landing, branch, event, ...")
    relation: str
    syntax: str
    snippet: str
    confidence: float


class SignRecord(_Record):
    """One sign for or against the link to the stage before."""

    sign: str
    weight: float
    detail: str


class EvidenceRecord(_Record):
    """Why the stage follows the one before."""

    relation: str | None
    confidence: float | None
    signs: tuple[SignRecord, ...]
    citations: tuple[CitationRecord, ...]


class NeedRecord(_Record):
    """A name or text that hidden tests need and that B_t does not have, or a file of them that is not read."""

    kind: NeedKind
    text: str = Field(description="the name, the text, or the path of what is unseen")
    owner: str = Field(default="", description="the function of a parameter, the class of a method or an attribute")
    path: str = Field(default="", description="where the tests look for it, or where M_t defines it")
    tests: tuple[str, ...] = Field(
        default=(), description="the tests that use it: PATH::NAME, or PATH for all of a file"
    )
    withheld: str = Field(default="", description="why an agent is not told of it; empty for a part of the interface")


class StrengthRecord(_Record):
    """What the proof of the stage's tests is worth."""

    worth: Worth = Field(description="in one word: not_measured, import_only, unknown, weak or strong")
    own_f2p: int | None = Field(
        default=None, description="F2P tests that no import alone has hidden; null where that is not known"
    )
    changed_f2p: int = Field(default=0, description="those of them that the pull request adds or changes")
    hidden_by_import: int = Field(default=0, description="F2P tests that pass before with the tests of before")
    failing: int = Field(default=0, description="tests that the pull request adds or changes and that fail after it")
    guards: int = Field(default=0, description="P2P tests of the modules that the stage touches")
    caught: int = Field(default=0, description="undone parts of the reference that tests noticed")
    valid: int = Field(default=0, description="undone parts of the reference, as far as tests could run")
    invalid: int = Field(default=0, description="undone parts that did not build, or with which no test was found")
    why_none: str | None = Field(default=None, description="why none is valid, where none is: docs/outcomes.md")


class TestsRecord(_Record):
    """The tests that prove the stage, and where they were run."""

    f2p: tuple[str, ...] = Field(description="tests that fail at B_t and pass at M_t: a solution makes them pass")
    p2p: tuple[str, ...] = Field(description="tests that pass at both: a solution keeps them passing")
    runner: str | None
    command: str | None = Field(description="what runs them; null where files were picked")
    image: str | None = Field(description="null where they ran without an image")


class StageRecord(_Record):
    """One stage."""

    position: int = Field(ge=1, description="1 is the first")
    number: int = Field(description="of the pull request")
    title: str
    url: str
    branch: str
    base_sha: str = Field(description="B_t: the commit that the work begins on")
    landed_sha: str = Field(description="M_t: B_t with the reference patch")
    landed_at: str = Field(description="UTC, ISO 8601")
    source_patch: str = Field(
        description="from B_t to M_t as git prints it, without the test patch; docs, lock files and the like included"
    )
    test_patch: str = Field(description="the part of the reference patch that is tests, with fixtures and snapshots")
    lossy: bool = Field(description="a patch holds bytes that are no UTF-8 and were replaced: take it from git instead")
    files: tuple[str, ...] = Field(description="paths that solve the stage: source, configuration and data")
    test_files: tuple[str, ...]
    outcome: str
    query: str | None = Field(description="what an agent is told; null unless the stage is ready")
    interface: tuple[NeedRecord, ...] = Field(
        description="what hidden tests need and an agent is told below the query; empty with --interface paper"
    )
    unmet: tuple[NeedRecord, ...] = Field(
        description="what hidden tests need and neither query nor interface tells; with the kind unseen, tests whose "
        "needs are not known: they are in a language or a form that is not read"
    )
    verdict: Verdict = Field(description="solvable: nothing is unmet; unseen: only what is not known is")
    needs_of: Literal["f2p", "patch"] = Field(
        description="which tests count: those proved as F2P, or, before a validation, those that the patch touches"
    )
    tests: TestsRecord | None = Field(default=None, description="null where its tests are not proved")
    proof: StrengthRecord | None = Field(default=None, description="null where its tests are not proved")
    evidence: EvidenceRecord | None = Field(description="null for the first stage")
    findings: tuple[FindingRecord, ...]


class CostRecord(_Record):
    """What the model calls for this task took, rejected texts included."""

    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None = Field(description="null where a price is not known")
    unanswered: int = Field(
        default=0,
        description="calls without a stored reply, as of runs that were killed; they count as what they may cost",
    )


class TaskRecord(_Record):
    """One chain with its task; one line of the export."""

    schema_version: Literal[3] = 3
    chain_id: str
    outcome: str
    repository: RepositoryRecord
    language: str | None
    licence: str | None = Field(description="SPDX id at the last stage")
    benchmark: bool = Field(default=False, description="a task of it is there to measure models")
    strategy: str = Field(description="how the chain was chosen: reference, lineage, evidence, temporal or single")
    selection: Standing = Field(description="retired: chains were chosen anew, without this one")
    score: float = Field(description="the sum of the confidences of its links")
    overview: str | None = Field(description="stands before the first query; null unless the task is ready")
    findings: tuple[FindingRecord, ...] = Field(description="of the overview")
    interface_mode: Interface
    verdict: Verdict = Field(description="the worst of its stages: solvable, unseen or not_solvable")
    stages: tuple[StageRecord, ...]
    cost: CostRecord
    prompts: dict[str, str] = Field(
        description="prompt name to hash, of the run that ended the task; queries of earlier runs may be of others"
    )
    model: str | None = Field(description="that writes queries, of the run that ended the task")
    created: str = Field(description="UTC, ISO 8601")


def schema_text() -> str:
    """The JSON schema of a line, as `docs/tasks.schema.json` holds it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **TaskRecord.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
