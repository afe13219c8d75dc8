"""Every prompt that models are asked with: whose it is, what it is for, and what it wants back."""

from __future__ import annotations

from typing import NamedTuple

TASKS, GUIDANCE, SCAFFOLDS = "chains.tasks", "trajectories.agents.guidance", "trajectories.agents.scaffolds"
VERDICTS, CURATION = "trajectories.verdicts", "trajectories.curation"

TEXT, TURNS = "plain text", "tool calls, until `submit`"


class KnownPrompt(NamedTuple):
    """A prompt that ships."""

    package: str
    name: str
    role: str
    """Who is asked, and for what."""
    reply: str | None
    """The import path of the reply's shape, or words; None where another prompt asks for it."""


PROMPTS = (
    KnownPrompt(TASKS, "screen", "a reader: whether a chain is worth a task", "chains.tasks.screening:Screening"),
    KnownPrompt(TASKS, "material", "who writes tasks: the pull request; what is to be written follows", None),
    KnownPrompt(TASKS, "plan", "after material: a plan of the stage's work", "chains.tasks.query:PlanReply"),
    KnownPrompt(TASKS, "query", "after material: the stage's query", "chains.tasks.query:QueryReply"),
    KnownPrompt(TASKS, "names", "after query, with `--names interface`: the names that it may say", None),
    KnownPrompt(TASKS, "withheld", "after query, with `--names withheld`: that nothing stands below it", None),
    KnownPrompt(TASKS, "overview", "who writes tasks: the chain's overview", "chains.tasks.query:OverviewReply"),
    KnownPrompt(TASKS, "again", "after a query or an overview that leaks: the same text without the leak", None),
    KnownPrompt(TASKS, "review", "a reader: what a query gives away", "chains.tasks.review:ReviewReply"),
    KnownPrompt("environments.images", "repair", "who mends a recipe", "environments.images.repair:Proposal"),
    KnownPrompt(SCAFFOLDS, "system_full", "the agent with all tools: how it works", TURNS),
    KnownPrompt(SCAFFOLDS, "system_bash", "the agent with bash alone: how it works", TURNS),
    KnownPrompt(SCAFFOLDS, "system_swe-agent", "the agent with SWE-agent's tools: how it works", TURNS),
    KnownPrompt(SCAFFOLDS, "system_shell", "the agent with SWE-agent's tools and `shell=swe-agent`: the same", TURNS),
    KnownPrompt(SCAFFOLDS, "query", "the agent: the task of a stage", TURNS),
    KnownPrompt(SCAFFOLDS, "comment", "the agent: what the judge says of its work", TURNS),
    KnownPrompt(SCAFFOLDS, "text_calls", "the agent with `calls=text`: how calls are written, and the tools", None),
    KnownPrompt(SCAFFOLDS, "observation", "the agent with `shell=swe-agent`: what a tool did", None),
    KnownPrompt(VERDICTS, "judge", "the judge: a verdict on a patch", "trajectories.verdicts.judge:VerdictReply"),
    KnownPrompt(
        VERDICTS,
        "audit",
        "the auditor: whether work only seems to be done",
        "trajectories.verdicts.auditor:AuditReply",
    ),
    KnownPrompt(
        VERDICTS,
        "comment_again",
        "the judge: its comment without a leak",
        "trajectories.verdicts.comments:CommentReply",
    ),
    KnownPrompt(
        "trajectories.rollouts",
        "prefix",
        "who writes tasks: the overview of a chain that was cut",
        "trajectories.rollouts.prefix:PrefixReply",
    ),
    KnownPrompt(
        CURATION,
        "proposer",
        "the proposer: nodes of a process graph",
        "trajectories.curation.graphs.shapes:ProposerReply",
    ),
    KnownPrompt(
        CURATION, "critic", "the critic: a verdict on each node", "trajectories.curation.graphs.shapes:CriticReply"
    ),
    KnownPrompt(
        CURATION, "pick", "the curator: the step to rewrite", "trajectories.curation.windows.rewriting:PickReply"
    ),
    KnownPrompt(CURATION, "curator", "the curator: the step anew", "one turn, with one tool call"),
    KnownPrompt(
        CURATION,
        "ground",
        "the claim judge: whether a step is grounded",
        "trajectories.curation.windows.judging:GroundReply",
    ),
    KnownPrompt(
        CURATION,
        "establish",
        "the verifier: what a step establishes",
        "trajectories.curation.windows.establishing:VerifierReply",
    ),
    KnownPrompt(
        CURATION,
        "establish_prefix",
        "the verifier with `est=prefix`: what the session has established",
        "trajectories.curation.windows.establishing:MatchedReply",
    ),
    KnownPrompt(
        GUIDANCE, "taxonomy", "the process reward model, by its taxonomy", "as `style` and `format` of `--prm`"
    ),
    KnownPrompt(
        GUIDANCE,
        "listings",
        "the process reward model with `rules=paper`: the same",
        "as `style` and `format` of `--prm`",
    ),
    KnownPrompt(GUIDANCE, "simple", "the process reward model, by its own sense", TEXT),
    KnownPrompt(GUIDANCE, "advice", "the agent: what the process reward model passes on", None),
)

KNOWN = tuple((one.package, one.name) for one in PROMPTS)
