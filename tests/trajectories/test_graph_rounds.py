"""Rounds of a process graph: what becomes of nodes, and when the rounds end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.stages import Stage
from prchain.core.git.trees import TreeStore
from prchain.core.llm.replies import UnfitReply
from tests.prchain.treeworld import Content, new_store, plant
from trajectories.curation.graphs.candidates import NodeCandidate, NodeVerdict, hashes, kept_nodes, unused_name
from trajectories.curation.graphs.distill import Distiller
from trajectories.curation.graphs.edits import FileContents
from trajectories.curation.graphs.graph import ProcessGraph
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.outcomes import CAPPED, CONVERGED, CYCLIC, DRY, INSUFFICIENT
from trajectories.curation.graphs.reference import target_patch
from trajectories.curation.graphs.replay import Replay
from trajectories.curation.graphs.rounds import GraphState, after_round
from trajectories.curation.graphs.shapes import CriticReply, NodeReply, ProposerReply, check_proposal, check_verdicts

QUERY = "Let the till hold the value 2 in src/till.py."
BEFORE: dict[str | bytes, Content] = {"src/till.py": "value = 1\n", "src/other.py": "other = 1\n"}
AFTER: dict[str | bytes, Content] = {"src/till.py": "value = 2\n", "src/other.py": "other = 1\n"}
OPTIONS = GraphOptions(backend="unsafe-local")


@dataclass
class EchoBench:
    """Prints what a command says after ``say``, the lines of a view, and of a validation the till's value."""

    trees: TreeStore
    start: str
    asked: list[Action] = field(default_factory=list)

    def observe(self, action: Action, files: FileContents | None = None) -> Replay:
        self.asked.append(action)
        if action.tool is ActionTool.BASH:
            command = str(action.command)
            if command == "value":
                content = (files or {}).get("src/till.py") or b"value = 1\n"
                return Replay(content.decode())
            return Replay(command.removeprefix("say ")) if command.startswith("say ") else Replay("", "it fails")
        return Replay("made" if action.writes else "")


Proposals = Callable[[GraphState], ProposerReply | None]
Verdicts = Callable[[Sequence[Node]], CriticReply | None]


@dataclass
class ListedCurators:
    """Answers by functions."""

    proposals: Proposals
    verdicts: Verdicts
    mismatches: list[Mapping[str, str]] = field(default_factory=list)

    def propose(self, state: GraphState, mismatch: Mapping[str, str]) -> ProposerReply | None:
        self.mismatches.append(mismatch)
        return self.proposals(state)

    def criticize(self, state: GraphState, nodes: Sequence[Node], mismatch: Mapping[str, str]) -> CriticReply | None:
        return self.verdicts(nodes)


def reply(name: str, kind: str, statement: str, observation: str = "", **action: Any) -> NodeReply:
    return NodeReply.model_validate(
        {"id": name, "kind": kind, "statement": statement, "action": action, "observation": observation}
    )


def fact(name: str, said: str = "") -> NodeReply:
    text = said or f"claim {name}"
    return reply(name, "static_fact", text, text, tool="bash", command=f"say {text}")


ANALYSIS = reply("analysis", "issue_analysis", "The till holds 1", tool="think", thought="It holds 1.")
PLAN = reply("plan", "fix_plan", "Let it hold 2", tool="think", thought="Change the number.")
EDIT = reply(
    "edit", "code_edit", "It holds 2", tool="str_replace", path="src/till.py", old="value = 1", new="value = 2"
)
CHECK = reply("check", "validation", "It holds 2 now", "value = 2", tool="bash", command="value")
WHOLE = (fact("f1"), ANALYSIS, PLAN, EDIT, CHECK)


def keep_all(nodes: Sequence[Node]) -> CriticReply:
    return CriticReply.model_validate({"verdicts": [{"id": node.name, "verdict": "keep"} for node in nodes]})


def verdicts(**others: Mapping[str, Any]) -> Verdicts:
    def answer(nodes: Sequence[Node]) -> CriticReply:
        rows = [{"id": node.name, "verdict": "keep"} | dict(others.get(node.name, {})) for node in nodes]
        return CriticReply.model_validate({"verdicts": rows, "feedback": [{"gap": "g", "look": "l"}]})

    return answer


def proposing(*rounds: Sequence[NodeReply] | None) -> Proposals:
    def answer(state: GraphState) -> ProposerReply | None:
        nodes = rounds[state.rounds] if state.rounds < len(rounds) else ()
        return None if nodes is None else ProposerReply(nodes=tuple(nodes))

    return answer


def distiller(
    folder: Path,
    options: GraphOptions = OPTIONS,
    before: Mapping[str | bytes, Content] = BEFORE,
    after: Mapping[str | bytes, Content] = AFTER,
) -> Distiller:
    store = new_store(folder)
    base, landed = store.commit(plant(store, before)), store.commit(plant(store, after))
    start = store.tree_of(base)
    target = target_patch(store, store, Stage(1, 7, base, landed, "2026-01-01T00:00:00Z"), start)
    bench: Any = EchoBench(store, start)
    return Distiller(store, target, QUERY, bench, options, ("/testbed",))


def run(made: Distiller, curators: ListedCurators) -> GraphState:
    state = GraphState()
    while state.ending is None:
        state = made.round(state, curators)
    return state


def fates(state: GraphState) -> dict[str, str]:
    return {candidate.node.name: str(candidate.verdict) for candidate in state.candidates}


def test_a_round_that_leaves_the_set_as_it_was_ends_the_loop(tmp_path: Path) -> None:
    made = distiller(tmp_path)
    state = run(made, ListedCurators(proposing(WHOLE), keep_all))
    assert (state.ending, state.rounds) == (CONVERGED, 2)
    graph = made.graph(state)
    assert made.outcome(state, graph) == (CONVERGED, None)
    assert [node.name for node in graph.nodes] == ["f1", "analysis", "plan", "edit", "check"]


def test_the_critic_prunes_and_revises_and_its_words_go_back_verbatim(tmp_path: Path) -> None:
    patched = fact("f2", "a better claim").model_dump()
    critic = verdicts(
        f1={"verdict": "prune", "reasons": ["H1: it tells the patch", "it is long"]},
        f2={"verdict": "revise", "reasons": ["S3: run it"], "patched_node": patched},
    )
    made = distiller(tmp_path)
    state = made.round(GraphState(), ListedCurators(proposing([*WHOLE, fact("f2")]), critic))
    assert fates(state) == {
        "f1": "prune",
        "analysis": "keep",
        "plan": "keep",
        "edit": "keep",
        "check": "keep",
        "f2": "revise",
        "f2.2": "keep",
    }
    pruned = next(it for it in state.candidates if it.node.name == "f1")
    assert [(fault.rule, fault.words) for fault in pruned.reasons] == [
        ("H1", "it tells the patch"),
        ("critic", "it is long"),
    ]
    assert state.feedback[-1] == "g Next: l"


def test_the_proposer_is_told_of_a_claim_that_is_there_already(tmp_path: Path) -> None:
    again = fact("f2", "claim f1")
    state = distiller(tmp_path).round(GraphState(), ListedCurators(proposing([fact("f1"), again]), keep_all))
    assert fates(state) == {"f1": "keep", "f2": "merged"}
    assert state.feedback[0] == "f2 (claim f1) was left out: S1, f1 makes the same claim"


def test_a_revised_node_keeps_its_evidence_where_its_action_stays(tmp_path: Path) -> None:
    patched = fact("f1").model_dump() | {"statement": "a truer claim", "observation": ""}
    critic = verdicts(f1={"verdict": "revise", "reasons": ["H3: so"], "patched_node": patched})
    state = distiller(tmp_path).round(GraphState(), ListedCurators(proposing([fact("f1")]), critic))
    assert fates(state) == {"f1": "revise", "f1.2": "keep"}
    assert state.feedback[0] == "f1 (claim f1) was replaced by the critic: H3, so"


def test_a_revised_edit_stays_before_those_that_stand_on_it(tmp_path: Path) -> None:
    made_file = reply("new", "code_edit", "Add new", tool="create", path="src/new.py", content="a = 1\n")
    onto = reply("onto", "code_edit", "Let a be 2", tool="str_replace", path="src/new.py", old="a = 1", new="a = 2")
    patched = made_file.model_dump() | {"statement": "Add the file src/new.py"}
    critic = verdicts(new={"verdict": "revise", "reasons": ["R1: so"], "patched_node": patched})
    made = distiller(tmp_path, after=AFTER | {"src/new.py": "a = 2\n"})
    state = run(made, ListedCurators(proposing([ANALYSIS, PLAN, made_file, onto, EDIT]), critic))
    assert [node.name for node in kept_nodes(state.candidates)] == ["analysis", "plan", "new.2", "onto", "edit"]
    assert made.outcome(state, made.graph(state)) == (CONVERGED, None)


def test_an_observation_that_the_action_does_not_print_is_refused_and_the_proposer_is_told(tmp_path: Path) -> None:
    wrong = reply("f9", "static_fact", "A claim", "other words", tool="bash", command="say real words")
    broken = reply("f8", "static_fact", "Another", "x", tool="bash", command="cat nothing")
    silent = reply("f7", "static_fact", "A third", "", tool="bash", command="say real words")
    state = distiller(tmp_path).round(GraphState(), ListedCurators(proposing([wrong, broken, silent]), keep_all))
    assert set(fates(state).values()) == {"refused"}
    assert {fault.rule for it in state.candidates for fault in it.reasons} == {"R4"}
    assert "real words" in state.feedback[0] and state.feedback[0].startswith("f9 (A claim) was refused: R4")
    assert state.ending is None, "an empty set is no fixed point"


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        ("getattr(till, name)", "keep"),
        ("import warnings", "keep"),
        ("from decimal import Decimal", "refused"),
        ("till.__getattr__", "refused"),
        ("till.__getattr__ and getattr", "refused"),
    ],
)
def test_words_and_lines_of_the_reference_that_stand_in_the_tree_are_no_secret(
    tmp_path: Path, said: str, fate: str
) -> None:
    other = "  import  warnings\nfound = getattr(value, 'old')\n"
    new = "import warnings\nfrom decimal import Decimal\n\ndef __getattr__(name):\n    return Decimal(name)\n"
    before = BEFORE | {"src/other.py": other}
    made = distiller(tmp_path, before=before, after=before | {"src/till.py": new})
    script = reply(
        "script", "reproduce_script", "It fails", "made", tool="create", path="r.py", content=f"{said}\n", command="r"
    )
    assert fates(made.round(GraphState(), ListedCurators(proposing([script]), keep_all))) == {"script": fate}


def test_validations_run_on_the_tree_with_all_edits_and_fall_where_an_edit_falls(tmp_path: Path) -> None:
    critic = verdicts(edit={"verdict": "prune", "reasons": ["H1: so"]})
    state = distiller(tmp_path).round(GraphState(), ListedCurators(proposing(WHOLE), critic))
    assert fates(state)["edit"] == "prune" and fates(state)["check"] == "refused"
    [fault] = next(it for it in state.candidates if it.node.name == "check").reasons
    assert fault.rule == "H3" and "value = 1" in fault.words


def test_edits_that_are_told_in_the_words_of_the_plan_or_of_each_other_stay(tmp_path: Path) -> None:
    said = PLAN.statement
    first = EDIT.model_copy(update={"statement": said})
    other = reply("other", "code_edit", said, tool="str_replace", path="src/other.py", old="1", new="2")
    made = distiller(tmp_path, after={"src/till.py": "value = 2\n", "src/other.py": "other = 2\n"})
    state = run(made, ListedCurators(proposing([ANALYSIS, PLAN], [first], [other]), keep_all))
    assert fates(state) == dict.fromkeys(("analysis", "plan", "edit", "other"), "keep")
    assert made.outcome(state, made.graph(state)) == (CONVERGED, None)


def test_milestones_fall_with_those_that_they_stand_on(tmp_path: Path) -> None:
    critic = verdicts(analysis={"verdict": "prune", "reasons": ["H1: so"]})
    state = distiller(tmp_path).round(GraphState(), ListedCurators(proposing(WHOLE), critic))
    assert fates(state) == {"f1": "keep", "analysis": "prune", "plan": "refused", "edit": "refused", "check": "refused"}


def test_an_edit_that_does_not_apply_is_refused_byte_for_byte(tmp_path: Path) -> None:
    wrong = reply("edit", "code_edit", "It holds 2", tool="str_replace", path="src/till.py", old="value  = 1", new="2")
    state = distiller(tmp_path).round(GraphState(), ListedCurators(proposing([ANALYSIS, PLAN, wrong]), keep_all))
    [fault] = next(it for it in state.candidates if it.node.name == "edit").reasons
    assert fault.rule == "R6" and "does not stand in src/till.py byte for byte" in fault.words


def test_what_the_edits_lack_is_told_in_each_round_and_ends_insufficient(tmp_path: Path) -> None:
    made = distiller(tmp_path)
    curators = ListedCurators(proposing([fact("f1")]), keep_all)
    state = run(made, curators)
    assert curators.mismatches[0] == {"src/till.py": "no edit changes it"}
    assert "The edits are not the patch yet: src/till.py: no edit changes it" in state.feedback
    outcome, reason = made.outcome(state, made.graph(state))
    assert outcome == INSUFFICIENT and "src/till.py" in str(reason)


def test_two_rounds_without_a_proposal_end_dry(tmp_path: Path) -> None:
    state = run(distiller(tmp_path), ListedCurators(proposing(), keep_all))
    assert (state.ending, state.rounds) == (DRY, 2)


def test_the_last_round_that_is_allowed_ends_capped(tmp_path: Path) -> None:
    made = distiller(tmp_path, GraphOptions(backend="unsafe-local", rounds=3))
    state = run(made, ListedCurators(lambda state: ProposerReply(nodes=(fact(f"f{state.rounds}"),)), keep_all))
    assert (state.ending, state.rounds) == (CAPPED, 3)


def test_a_dropped_round_changes_nothing_and_is_no_fixed_point(tmp_path: Path) -> None:
    made = distiller(tmp_path)
    answers = iter([keep_all, None, keep_all])

    def criticize(nodes: Sequence[Node]) -> CriticReply | None:
        answer = next(answers)
        return None if answer is None else answer(nodes)

    curators = ListedCurators(proposing(WHOLE, [fact("f2")], None, [fact("f3")]), criticize)
    state = run(made, curators)
    assert (state.dropped_rounds, state.rounds, state.ending) == (2, 5, CONVERGED)
    assert fates(state)["f2"] == "dropped" and fates(state)["f3"] == "keep"


def test_a_graph_of_which_too_many_edges_are_dropped_is_cyclic(tmp_path: Path) -> None:
    made = distiller(tmp_path, GraphOptions(backend="unsafe-local", most_dropped=0))
    state = run(made, ListedCurators(proposing(WHOLE), keep_all))
    graph = made.graph(state)
    assert made.outcome(state, graph)[0] == CONVERGED
    outcome, reason = made.outcome(state, ProcessGraph(graph.nodes, graph.edges, graph.edges[:1]))
    assert outcome == CYCLIC and str(reason).startswith("1 edge would close a cycle")


def test_names_of_nodes_stay_unique_over_the_rounds(tmp_path: Path) -> None:
    state = run(distiller(tmp_path), ListedCurators(proposing(WHOLE, [fact("f1", "another claim")]), keep_all))
    assert fates(state)["f1.2"] == "keep"
    assert unused_name("a", {"a", "a.2", "a.3"}, 2) == "a.4"


# ---- what a schema cannot say


def test_a_proposal_with_odd_or_double_ids_or_too_many_nodes_is_told_so() -> None:
    nodes = (fact("f1"), fact("f1", "another"), fact("1f").model_copy(update={"id": "no id"}))
    with pytest.raises(UnfitReply, match="f1 stands 2 times") as fault:
        check_proposal(ProposerReply(nodes=nodes), 60)
    assert "'no id' is no id" in fault.value.words
    with pytest.raises(UnfitReply, match="too many"):
        check_proposal(ProposerReply(nodes=(fact("a"), fact("b"))), 1)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "a", "verdict": "keep"}], "b has no verdict"),
        (
            [{"id": "a", "verdict": "keep"}, {"id": "b", "verdict": "keep"}, {"id": "c", "verdict": "keep"}],
            "no candidate c",
        ),
        ([{"id": "a", "verdict": "keep"}, {"id": "a", "verdict": "keep"}, {"id": "b", "verdict": "keep"}], "a has 2"),
        ([{"id": "a", "verdict": "revise"}, {"id": "b", "verdict": "keep"}], "no patched_node"),
        ([{"id": "a", "verdict": "prune", "reasons": [" "]}, {"id": "b", "verdict": "keep"}], "without a reason"),
    ],
)
def test_verdicts_are_one_for_each_candidate_with_what_they_need(rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(UnfitReply, match=words):
        check_verdicts(CriticReply.model_validate({"verdicts": rows}), ["a", "b"])


def test_nodes_that_stand_need_no_verdict_and_may_have_one() -> None:
    rows = [{"id": "a", "verdict": "keep"}, {"id": "old", "verdict": "prune", "reasons": ["H1: so"]}]
    check_verdicts(CriticReply.model_validate({"verdicts": rows}), ["a"], ["old", "older"])


# ---- properties

CLAIMS = [f"claim {letter}" for letter in "abcdef"]


@given(
    st.lists(st.lists(st.sampled_from(CLAIMS), max_size=4), max_size=6),
    st.sets(st.sampled_from(CLAIMS)),
    st.sets(st.sampled_from(CLAIMS)),
)
@settings(max_examples=40, deadline=None)
def test_what_is_kept_was_proposed_or_revised_and_a_fixed_point_ends_the_loop(
    rounds: list[list[str]], pruned: set[str], revised: set[str]
) -> None:
    proposals = [[fact(f"n{place}", claim) for place, claim in enumerate(claims)] for claims in rounds]

    def criticize(nodes: Sequence[Node]) -> CriticReply:
        rows: list[dict[str, Any]] = []
        for node in nodes:
            row: dict[str, Any] = {"id": node.name, "verdict": "keep"}
            if node.statement in pruned:
                row |= {"verdict": "prune", "reasons": ["H1: so"]}
            elif node.statement in revised:
                patched = fact(node.name.partition(".")[0], f"better {node.statement}").model_dump()
                row |= {"verdict": "revise", "reasons": ["S3: so"], "patched_node": patched}
            rows.append(row)
        return CriticReply.model_validate({"verdicts": rows})

    with TemporaryDirectory() as folder:
        made = distiller(Path(folder))
        state, before = GraphState(), frozenset[tuple[str, ...]]()
        curators = ListedCurators(proposing(*proposals), criticize)
        while state.ending is None:
            before = hashes(state.candidates)
            state = made.round(state, curators)
    kept = {node.statement for node in kept_nodes(state.candidates)}
    proposed = {claim for claims in rounds for claim in claims}
    assert kept <= (proposed - pruned - revised) | {f"better {claim}" for claim in revised & proposed}
    assert len({node.hash for node in kept_nodes(state.candidates)}) == len(kept_nodes(state.candidates))
    assert len(state.names) == len(state.candidates)
    if state.ending == CONVERGED:
        assert hashes(state.candidates) == before != frozenset()
    assert state.rounds <= OPTIONS.rounds


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=10))
def test_rounds_end_by_the_first_rule_that_holds(rounds: list[tuple[int, bool]]) -> None:
    state = GraphState()
    for number, (proposed, dropped) in enumerate(rounds):
        before = state
        node = Node(f"n{number}", NodeKind.STATIC_FACT, f"claim {number}", Action(ActionTool.VIEW_PROBLEM))
        new = [NodeCandidate(node)] if proposed and not dropped else []
        state = after_round(before, [*before.candidates, *new], (), proposed=proposed, dropped=dropped, options=OPTIONS)
        assert state.rounds == number + 1
        if state.ending is not None:
            break
    if state.ending == CAPPED:
        assert state.rounds == OPTIONS.rounds
    if state.ending == DRY:
        assert state.empty_rounds == OPTIONS.empty_rounds
    assert NodeVerdict.KEEP in {it.verdict for it in state.candidates} or not state.candidates
