"""The candidates of a window: blinded seeds, and of each a variant with one rewritten step (P2T, section 4.2 and
appendix F)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from environments.sandboxes.sandbox import Sandbox
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.model import Reply, ToolCall, Usage
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import AttemptSpec, Observer, StageAccess
from trajectories.agents.scaffolds.turns import named_calls, read_turn
from trajectories.agents.steps.conversation import steps_of, transcript
from trajectories.curation.graphs.graph import ProcessGraph, defined_names_at
from trajectories.curation.windows.candidates import (
    DROPPED,
    MALFORMED,
    NO_PLACE,
    NO_REPLY,
    UNGROUNDED,
    WindowCandidate,
    entries_before,
    length_of,
    standings,
    tree_after,
)
from trajectories.curation.windows.checkpoints import Checkpoints
from trajectories.curation.windows.establishing import EstablishedNode, LlmVerifier, Verifier
from trajectories.curation.windows.grounding import RewriteFault, form_faults, unshown
from trajectories.curation.windows.judging import ClaimJudge, LlmClaimJudge
from trajectories.curation.windows.options import Pick, WindowOptions
from trajectories.curation.windows.progress import StepProgress
from trajectories.curation.windows.rewriting import Curator, Place, ScoredSeed, pick_by_rule
from trajectories.curation.windows.rolling import Continuation, Roller
from trajectories.curation.windows.rows import StoredWindow
from trajectories.curation.windows.shown import Shown, observed
from trajectories.model import Entry, EntryKind


@dataclass(frozen=True)
class WindowBeginning:
    """A window, the conversation that it follows, and how many steps its candidates have."""

    window: StoredWindow
    entries: Sequence[Entry]
    steps: int


class CandidateMaker:
    """Makes the candidates of one stage's windows. Raises `LlmError`, `SandboxError`, `GitError`."""

    def __init__(
        self,
        gateway: Gateway,
        agent: ReactScaffold,
        options: WindowOptions,
        graph: ProcessGraph,
        checkpoints: Checkpoints,
        spec: AttemptSpec,
        workdir: str,
        observers: Sequence[Observer] = (),
    ) -> None:
        assert spec.stage is not None
        self._agent = agent
        self._options = options
        self._graph = graph
        self._checkpoints = checkpoints
        self._spec = spec
        self._access: StageAccess = spec.stage
        self._roots = (workdir,)
        self._defined: dict[str, bool] = {}
        """Whether S_t defines a name, of those that were asked for: git goes through all files for each question."""
        self._roller = Roller(gateway, agent, spec, observers)
        self._curator = Curator(gateway, agent.tools, sample=spec.sample)
        self._judge: ClaimJudge = LlmClaimJudge(gateway, sample=spec.sample)
        self._verifier: Verifier = LlmVerifier(gateway, options.est, sample=spec.sample, roots=self._roots)

    def seed(self, start: WindowBeginning, number: int) -> WindowCandidate:
        """A blinded continuation."""
        subject = self._subject(start, number)
        steps = start.steps

        def roll(branch: Sandbox) -> Continuation:
            return self._roller.roll(
                branch, start.entries, subject, steps, tree=self._checkpoints.tree, snapshot=self._checkpoints.base()
            )

        rolled = self._checkpoints.in_copy(self._checkpoints.base, roll)
        return self._scored(start, WindowCandidate(number, number, rolled.outcome, rolled.reason), rolled, ())

    def variant(self, start: WindowBeginning, number: int, made: Mapping[int, WindowCandidate]) -> WindowCandidate:
        """A seed with one rewritten step, and the blinded agent's steps after it. Variants of one seed are of
        different nodes."""
        seed = made[number % self._options.seeds]
        subject = self._subject(start, number)
        variant = WindowCandidate(number, seed.number, NO_PLACE)
        tried = {
            (other.place, other.target)
            for other in made.values()
            if other.outcome in DROPPED and other.place is not None and other.target is not None
        }
        own_targets = {it.target for it in made.values() if it.seed == seed.number and it.target is not None}
        tried |= {(at, target) for at in range(len(seed.steps)) for target in own_targets}
        place, usd, reason = self._picked(start, seed, subject, tried)
        if place is None:
            return replace(variant, usd=usd, reason=reason)
        at, target = place
        variant = replace(variant, place=at, target=target)
        step = seed.steps[at]
        own = entries_before(seed.entries, step.number)
        before = [*start.entries, *own]
        node = next(node for node in self._graph.nodes if node.name == target)
        rewrite = self._curator.rewrite(subject, self._access.query, before, step, node)
        usd = _sum(usd, rewrite.usd)
        if rewrite.reply is None:
            return replace(variant, outcome=NO_REPLY, reason=rewrite.reason, usd=usd)
        # The curator's thoughts are its own: they may speak of the target.
        reply = replace(rewrite.reply, reasoning=None, usage=Usage())
        calls = named_calls(reply, step.number)
        text = {"text": reply.text, "calls": [{"name": it.name, "arguments": it.arguments} for it in calls]}
        variant = replace(variant, rewrite=text)
        outcome, faults, cost = self._examined(subject, before, reply, calls, seed, at)
        usd = _sum(usd, cost)
        if faults:
            words = "; ".join(f"{fault.rule}: {fault.words}" for fault in faults)
            return replace(
                variant,
                outcome=outcome,
                reason=words,
                faults=tuple(faults),
                grounded=False if outcome == UNGROUNDED else None,
                usd=usd,
            )
        details = {"curated": {"window": start.window.key.number, "candidate": number}}

        def begin() -> str:
            return self._checkpoints.after(seed, seed.steps[at - 1].number) if at else self._checkpoints.base()

        def roll(branch: Sandbox) -> Continuation:
            return self._roller.roll(
                branch,
                before,
                subject,
                start.steps - at,
                tree=tree_after(own, self._checkpoints.tree),
                snapshot=begin(),
                given=reply,
                details=details,
            )

        rolled = self._checkpoints.in_copy(begin, roll)
        grounded = True if self._options.ground else None
        variant = replace(variant, outcome=rolled.outcome, reason=rolled.reason, grounded=grounded, usd=usd)
        shared = Continuation(
            (*own, *rolled.entries),
            rolled.outcome,
            rolled.reason,
            {**self._checkpoints.of(seed.number), **rolled.snapshots},
            {**dict(zip((it.number for it in seed.steps[:at]), seed.leftovers, strict=False)), **rolled.leftovers},
            rolled.records,
            rolled.advice_usd,
        )
        known = tuple(it for it in seed.established if it.step < step.number)
        return self._scored(start, variant, shared, known, at)

    def _picked(
        self, start: WindowBeginning, seed: WindowCandidate, subject: str, tried: set[Place]
    ) -> tuple[Place | None, float | None, str | None]:
        """The step and the node of a variant, what the choice cost, and why there is none."""
        steps = seed.steps
        if not steps:
            return None, 0.0, "the seed has no step"
        places, progress = standings(
            self._graph, start.window.standing, steps, seed.established, self._options.premature
        )
        scored = ScoredSeed(steps, places, progress)
        query = self._access.query
        if self._options.pick is Pick.MODEL:
            return self._curator.pick(subject, query, start.entries, scored, self._graph, tried)

        def shown_before(at: int) -> Shown:
            return self._observed([*start.entries, *entries_before(seed.entries, steps[at].number)])

        place = pick_by_rule(self._graph, scored, tried, shown_before, self._roots)
        return place, 0.0, None if place else "no step without progress has a node to go for"

    def _defined_of(self, words: Iterable[str]) -> set[str]:
        asked = set(words)
        new = asked - self._defined.keys()
        found = defined_names_at(self._access.trees, self._access.start, new) if new else set()
        self._defined |= {word: word in found for word in new}
        return {word for word in asked if self._defined[word]}

    def _examined(
        self,
        subject: str,
        before: Sequence[Entry],
        reply: Reply,
        calls: tuple[ToolCall, ...],
        seed: WindowCandidate,
        at: int,
    ) -> tuple[str, list[RewriteFault], float | None]:
        """What is wrong with a rewritten step, by code and then by the judge; and what the judge cost."""
        toolset = self._agent.toolset
        parsed = read_turn(reply, calls, toolset.tools, toolset.ending)
        if parsed.fault is not None and not parsed.calls:
            return MALFORMED, [RewriteFault("C5", f"it is no step: {parsed.fault}")], 0.0
        faults = form_faults(reply.text, parsed.calls, seed.steps[at])
        if faults:
            return MALFORMED, faults, 0.0
        if not self._options.ground:
            return UNGROUNDED, [], 0.0
        shown = self._observed(before)
        faults = unshown(reply.text, parsed.calls, shown, self._defined_of, self._roots)
        if faults:
            return UNGROUNDED, faults, 0.0
        entry = Entry(
            0, self._spec.position, 1, seed.steps[at].number, EntryKind.TURN, "assistant", reply.text, tool_calls=calls
        )
        verdict = self._judge.judge(subject, self._access.query, before, transcript([entry]))
        return UNGROUNDED, list(verdict.faults), verdict.usd

    def _observed(self, entries: Sequence[Entry]) -> Shown:
        return observed(self._access.query, entries, self._roots)

    def _scored(
        self,
        start: WindowBeginning,
        candidate: WindowCandidate,
        rolled: Continuation,
        known: tuple[EstablishedNode, ...],
        given: int | None = None,
    ) -> WindowCandidate:
        """The candidate with what its steps established and came to. `known` is what is found already of the steps
        before the one with the number `given`."""
        steps = steps_of(rolled.entries)
        found = list(known)
        notes: list[str] = []
        calls = 0
        fresh = steps if given is None else steps[given:]
        usd = _sum(candidate.usd, rolled.advice_usd)
        for step in fresh:
            usd = _sum(usd, step.turn.usd)
        if self._options.scores(start.window.frontier):
            subject = self._subject(start, candidate.number)
            for step in fresh:
                places, _ = standings(self._graph, start.window.standing, steps, found, self._options.premature)
                seen = places[steps.index(step)].seen
                asked = [node for node in self._graph.nodes if node.name not in seen]
                if not asked:
                    break
                before = [*start.entries, *entries_before(rolled.entries, step.number)]
                findings = self._verifier.established(subject, self._access.query, before, step, asked)
                found += findings.established
                notes += findings.notes
                calls += findings.calls
                usd = _sum(usd, findings.usd)
        progress: Sequence[StepProgress] = ()
        if self._options.scores(start.window.frontier):
            _, progress = standings(self._graph, start.window.standing, steps, found, self._options.premature)
        self._checkpoints.keep(candidate.number, rolled.snapshots)
        return replace(
            candidate,
            entries=rolled.entries,
            progress=tuple(progress),
            established=tuple(found),
            effectiveness=sum(step.progress for step in progress),
            length=length_of(steps, self._options.length),
            tree=tree_after(rolled.entries, self._checkpoints.tree),
            notes=tuple(notes),
            verifier_calls=calls,
            leftovers=tuple(rolled.leftovers.get(step.number, 0) for step in steps),
            records=rolled.records,
            usd=usd,
        )

    def _subject(self, start: WindowBeginning, number: int) -> str:
        return f"{self._spec.subject}/{start.window.key.number}/{number}"


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
