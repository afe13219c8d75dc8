"""The tables of rollouts: trajectories, their stages, messages and verdicts; and where those of others are from."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class Trajectory(Base):
    """One agent's run over one chain: sample number `sample` under one set of options. Or one of others, without a
    chain, of which `imported_trajectories` has a row."""

    __tablename__ = "trajectories"
    __table_args__ = (
        Index("ix_trajectories_chain", "chain_id", "sample"),
        CheckConstraint("(chain_id IS NULL) = (scaffold = 'imported')", name="no_chain_is_imported"),
    )

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """Hash of `decided_by`; of a row without it, by an earlier rule. It never changes: `trajectories.identity`. Of an
    import: the beginning of its document's hash."""
    chain_id: Mapped[str | None] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"))
    """Null of an import alone."""
    sample: Mapped[int]
    parent_id: Mapped[str | None] = mapped_column(String(16))
    """The trajectory that it was branched off; null for one that began at the beginning."""
    parent_step: Mapped[int | None]
    """The last step that it shares with its parent."""
    scaffold: Mapped[str] = mapped_column(String(32))
    """``imported`` of one of others, whatever its agent is called."""
    model: Mapped[str] = mapped_column(String(255))
    judge: Mapped[str | None] = mapped_column(String(255))
    """The model that judged; null where the gate asks none."""
    options: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object: every option, also those at their default (`trajectories.options.RolloutOptions`)."""
    options_hash: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the options that are not at their default; of a row without `decided_by`, of all of them."""
    prompts: Mapped[dict[str, Any]] = mapped_column(JsonText(sort_keys=True))
    """JSON object of prompt name to its hash."""
    tools: Mapped[list[Any]] = mapped_column(JsonText())
    """JSON list: the tools as the model was told of them, in OpenAI's form."""
    decided_by: Mapped[dict[str, Any] | None] = mapped_column(JsonText(sort_keys=True))
    """JSON object: all that decides the trajectory (`trajectories.identity.Identity`); null for one that was begun
    before it was kept."""
    outcome: Mapped[str] = mapped_column(String(32))
    """``running``; ``accepted`` (every stage); ``accepted_prefix`` (the first `accepted` stages, enough for a chain);
    ``too_short``; ``rejected``; ``superseded`` (begun under other prompts, and given up for them); ``imported`` (others
    made it); or a failure's name, which the next run may try again. `trajectories.outcomes`."""
    reason: Mapped[str | None] = mapped_column(Text)
    accepted: Mapped[int]
    """How many stages from the first one on were accepted."""
    overview: Mapped[str | None] = mapped_column(Text)
    """The overview as it is told: rewritten for an accepted prefix, else the task's."""
    usd: Mapped[float | None]
    """What its model calls cost, of all purposes; null where a price is not known."""
    tokens_in: Mapped[int]
    tokens_out: Mapped[int]
    steps: Mapped[int]
    seconds: Mapped[float]
    worker: Mapped[str | None] = mapped_column(String(64))
    """Who works on it while it is ``running``: host, process and its start."""
    tries: Mapped[int]
    """How often it was begun again after an infrastructure failure."""
    started_at: Mapped[str] = mapped_column(String(32))
    finished_at: Mapped[str | None] = mapped_column(String(32))


class TrajectoryStage(Base):
    """One stage of a trajectory."""

    __tablename__ = "trajectory_stages"

    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    """``running``, ``accepted``, ``rejected``, ``unscored``, ``state_broken``, ``not_reached``, a failure's name, or
    ``imported``."""
    reason: Mapped[str | None] = mapped_column(Text)
    start_tree: Mapped[str | None] = mapped_column(String(64))
    """S_t."""
    end_tree: Mapped[str | None] = mapped_column(String(64))
    """A_t of the last attempt."""
    conflicts: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of ``{"path", "kind", "hunks", "lost_lines"}``: where the merge took the agent's side."""
    reset_tests: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list: paths of earlier test patches where the agent had something else than M_{t-1}."""
    check: Mapped[dict[str, Any]] = mapped_column(JsonText(unicode=True))
    """JSON object: the fields of `environments.suites.outcomes.StateCheck`; empty where no tests ran on S_t."""
    endings: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list: how each attempt ended (`trajectories.model.Ending`)."""
    attempts: Mapped[int]
    steps: Mapped[int]
    seconds: Mapped[float]


class TrajectoryMessage(Base):
    """One message of a trajectory's conversation, written in the transaction that ends its step."""

    __tablename__ = "trajectory_messages"

    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    """0 is the first message."""
    position: Mapped[int]
    """The stage; the system message and the overview belong to stage 1."""
    attempt: Mapped[int]
    """1 is the first; each refinement begins another."""
    step: Mapped[int]
    """Counts assistant turns over the whole trajectory; 0 before the first. Observations carry their turn's number."""
    kind: Mapped[str] = mapped_column(String(16))
    """One of `trajectories.model.EntryKind`."""
    role: Mapped[str] = mapped_column(String(16))
    content: Mapped[str] = mapped_column(Text)
    reasoning: Mapped[str | None] = mapped_column(Text)
    tool_calls: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list of ``{"id", "name", "arguments"}``; arguments are the raw text, decoded where it was encoded twice."""
    tool_call_id: Mapped[str | None] = mapped_column(String(255))
    tool_name: Mapped[str | None] = mapped_column(String(64))
    error: Mapped[str | None] = mapped_column(String(32))
    """Of an assistant turn: what was wrong with it (`trajectories.model.TurnFault`); of an observation: why the tool
    did not do what was asked. Null where nothing was."""
    details: Mapped[dict[str, Any]] = mapped_column(JsonText(unicode=True))
    """JSON object: for an assistant turn ``finish``, ``refusal``, ``model``, ``dropped`` (messages that the request
    left out to fit the context), ``decoded_twice`` (ids of calls whose arguments were JSON text of JSON text); for an
    observation ``exit_code``, ``timed_out``, ``omitted``, ``limit``, ``view`` (a path that was shown, with its
    lines). Of imports ``copied`` and ``loss``: what the document says of training on the message; of what was recorded
    ``copied`` is ``trained`` where the message is under loss in the trajectory that it was copied from."""
    tokens_in: Mapped[int | None]
    tokens_cached: Mapped[int | None]
    tokens_out: Mapped[int | None]
    usd: Mapped[float | None]
    seconds: Mapped[float]
    """Of an assistant turn: waiting for the model; of an observation: running the tool."""
    tree: Mapped[str | None] = mapped_column(String(64))
    """The tree after this step, on its last observation, where it is not that of the step before."""
    cwd: Mapped[str | None] = mapped_column(String(1024))
    """The session's folder after the step, where the tool set keeps one."""
    at: Mapped[str] = mapped_column(String(32))


class TrajectoryBranch(Base):
    """What an agent program asked beside the conversation that ended its attempt: a summary in place of what was said,
    a sub-agent, a title; or what was said after the place where that conversation left."""

    __tablename__ = "trajectory_branches"

    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """In the order in which the attempt's conversations began; that of the trajectory has no row."""
    parent: Mapped[int | None]
    """Number of the conversation that it left; null of one that shares nothing with another."""
    replies: Mapped[int]
    """Those of its own, which stand nowhere else."""
    exchanges: Mapped[bytes] = mapped_column(LargeBinary)
    """Its requests and replies as they were sent, without secrets, compressed
    (`trajectories.recording.exchanges.packed`)."""


class MessageTokens(Base):
    """The token ids and log-probabilities of a turn, where its endpoint gave them."""

    __tablename__ = "message_tokens"
    __table_args__ = (
        ForeignKeyConstraint(
            ["trajectory_id", "ordinal"],
            ["trajectory_messages.trajectory_id", "trajectory_messages.ordinal"],
            ondelete="CASCADE",
        ),
    )

    trajectory_id: Mapped[str] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    shared: Mapped[int]
    """So many ids of the prompt are the first ones of prompt and reply of the turn before."""
    tokens: Mapped[bytes] = mapped_column(LargeBinary)
    """The other ids of the prompt, those of the reply, and the log-probabilities of these, compressed
    (`trajectories.tokens.packed`)."""


class Verdict(Base):
    """What judge and tests say of one attempt at one stage."""

    __tablename__ = "verdicts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["trajectory_id", "position"],
            ["trajectory_stages.trajectory_id", "trajectory_stages.position"],
            ondelete="CASCADE",
        ),
    )

    trajectory_id: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    tree: Mapped[str] = mapped_column(String(64))
    """A_t that was judged."""
    accepted: Mapped[bool | None]
    """What the gate decided; null for no verdict."""
    gate: Mapped[str] = mapped_column(String(16))
    """``judge``, ``tests``, ``both`` or ``either``; with ``+audit`` behind it where suspicion refuses."""
    score: Mapped[float | None]
    """The judge's, 0 to 1; null: unscored, or not asked."""
    comment: Mapped[str | None] = mapped_column(Text)
    """The judge's words as it wrote them."""
    shown: Mapped[str | None] = mapped_column(Text)
    """The words that went back to the agent, after the leak check; null where none did."""
    findings: Mapped[list[Any]] = mapped_column(JsonText(unicode=True))
    """JSON list: what the leak check says of the comment."""
    judge_error: Mapped[str | None] = mapped_column(String(32))
    """Why there is no score."""
    judge_sees: Mapped[str | None] = mapped_column(String(16))
    """What the judge was shown: ``patches`` (and the query), or ``tests``: their results, too; null: no judge."""
    tests: Mapped[str | None] = mapped_column(String(32))
    """`environments.suites.outcomes.Grade.outcome`; null where no tests ran."""
    grade: Mapped[dict[str, Any]] = mapped_column(JsonText(unicode=True))
    """JSON object: the fields of `environments.suites.outcomes.Grade`; empty where no tests ran."""
    usd: Mapped[float | None]
    seconds: Mapped[float]
    at: Mapped[str] = mapped_column(String(32))


class GradedTree(Base):
    """What a stage's hidden tests say of a tree: an agent's, or B_t with a patch from elsewhere (`prchain evaluate
    --predictions-from FILE`). An equal tree is not graded again."""

    __tablename__ = "graded_trees"

    chain_id: Mapped[str] = mapped_column(ForeignKey("chains.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    tree: Mapped[str] = mapped_column(String(64), primary_key=True)
    """A_t, or B_t with the patch."""
    proof: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Hash of the proved tests that graded it, of what is known of their runner, of the image they ran in, of the check
    of S_t, and of the version of grading: of others it is graded anew."""
    outcome: Mapped[str] = mapped_column(String(32))
    """`environments.suites.outcomes.Grade.outcome`."""
    grade: Mapped[dict[str, Any]] = mapped_column(JsonText(unicode=True))
    """JSON object: the fields of `environments.suites.outcomes.Grade`."""
    graded_for: Mapped[str | None] = mapped_column(String(64))
    """The first attempt that it was made for, as ``TRAJECTORY/POSITION.ATTEMPT``; null of a patch."""
    graded_at: Mapped[str] = mapped_column(String(32))


class ImportedTrajectory(Base):
    """Where a trajectory of others is from, and what its document says of itself."""

    __tablename__ = "imported_trajectories"
    __table_args__ = (Index("ix_imported_trajectories_source", "source"),)

    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.id", ondelete="CASCADE"), primary_key=True)
    content: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the document, whatever the order of its keys and its white space: an equal one adds nothing."""
    form: Mapped[str] = mapped_column(String(32))
    """The version of the format, as the document names it: ``ATIF-v1.7``."""
    source: Mapped[str | None] = mapped_column(String(255))
    """Who published it; null where nobody said."""
    licence: Mapped[str | None] = mapped_column(String(64))
    """Of the document, in its publisher's words; null where nobody said."""
    session: Mapped[str | None] = mapped_column(String(255))
    """The publisher's id of the run."""
    document: Mapped[str | None] = mapped_column(String(255))
    """The publisher's id of the trajectory."""
    agent: Mapped[str] = mapped_column(String(255))
    agent_version: Mapped[str] = mapped_column(String(255))
    repository: Mapped[str | None] = mapped_column(String(255))
    """``owner/name``, where the document tells what the agent worked on."""
    told: Mapped[dict[str, Any]] = mapped_column(JsonText(unicode=True))
    """JSON object: what else it says of itself, where prchain wrote it (`trajectories.provenance.TrajectoryOrigin`)."""
    left_out: Mapped[dict[str, Any]] = mapped_column(JsonText())
    """JSON object: what was not taken, by kind (``images``, ``subagents``, ``token_ids`` ...), and how often."""
    imported_at: Mapped[str] = mapped_column(String(32))
