"""The tables of the store.

Facts are keyed by what they are (repository, pull request number, commit sha, path, node id), not by surrogate
numbers, so that two runs over the same sources write the same keys and a rerun replaces a row instead of adding one.
Only `Repository` has a surrogate id, because its name can change.

Conventions:

- A time is text, UTC, ISO 8601 with seconds: ``2024-05-01T12:30:00Z``. It sorts as it reads, on every database.
- A text column never holds NUL or a lone surrogate (`prchain.core.storable.clean_text`); PostgreSQL refuses both.
- A path is UTF-8; bytes that are not are written as ``\\xNN``.
- ``landed_pull_requests``, ``citation_edges``, ``lineage_edges``, ``review_comments``, ``chosen_stages``,
  ``task_queries``, ``stage_proofs`` and ``rollout_stages`` are views made by the migrations. Their columns are a
  promise to users.
"""

from __future__ import annotations

from sql.tables.asked import LlmCall
from sql.tables.base import Base
from sql.tables.chained import Candidate, Chain, ChainBuild, ChainStage, Dependency, Selection, Task, TaskStage
from sql.tables.curated import (
    CurationCandidate,
    CurationWindow,
    Establishment,
    GraphEdge,
    GraphMessage,
    GraphNode,
    GraphRow,
)
from sql.tables.guided import PrmFinding, PrmWindow
from sql.tables.imported import ImportedTask
from sql.tables.labelled import ChainLabel
from sql.tables.lined import Lineage, LineageLanding, LineageWalk
from sql.tables.mined import (
    ArchivedPage,
    Citation,
    ClosingReference,
    Commit,
    Cursor,
    IncompletePart,
    Issue,
    Label,
    Landing,
    LandingFile,
    MineRun,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    RefusedClaim,
    Repository,
    RepositoryAlias,
    ReviewThread,
    TimelineEvent,
)
from sql.tables.proved import BuiltImage, ReferenceRun, StageTests, Validation
from sql.tables.rolled import (
    GradedTree,
    ImportedTrajectory,
    MessageTokens,
    Trajectory,
    TrajectoryBranch,
    TrajectoryMessage,
    TrajectoryStage,
    Verdict,
)

__all__ = [
    "ArchivedPage",
    "Base",
    "BuiltImage",
    "Candidate",
    "Chain",
    "ChainBuild",
    "ChainLabel",
    "ChainStage",
    "Citation",
    "ClosingReference",
    "Commit",
    "CurationCandidate",
    "CurationWindow",
    "Cursor",
    "Dependency",
    "Establishment",
    "GradedTree",
    "GraphEdge",
    "GraphMessage",
    "GraphNode",
    "GraphRow",
    "ImportedTask",
    "ImportedTrajectory",
    "IncompletePart",
    "Issue",
    "Label",
    "Landing",
    "LandingFile",
    "Lineage",
    "LineageLanding",
    "LineageWalk",
    "LlmCall",
    "MessageTokens",
    "MineRun",
    "PrmFinding",
    "PrmWindow",
    "PullRequest",
    "PullRequestCommit",
    "PullRequestText",
    "ReferenceRun",
    "RefusedClaim",
    "Repository",
    "RepositoryAlias",
    "ReviewThread",
    "Selection",
    "StageTests",
    "Task",
    "TaskStage",
    "TimelineEvent",
    "Trajectory",
    "TrajectoryBranch",
    "TrajectoryMessage",
    "TrajectoryStage",
    "Validation",
    "Verdict",
]
