"""The rules of a process graph that code decides, each with cases on both sides."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.reference import split
from prchain.core.git import parse_patch
from prchain.core.leaks import StageFacts, candidate_names, stage_facts
from trajectories.curation.graphs.gates import LeakGate, abbreviation, form_faults, merge_equal, narrowed, order_faults
from trajectories.curation.graphs.nodes import MILESTONES, Action, ActionTool, Node, NodeKind, canonical, statement_hash

VIEW = Action(ActionTool.VIEW, path="a.py", first=1, last=9)
BASH = Action(ActionTool.BASH, command="grep -n x a.py")
THINK = Action(ActionTool.THINK, thought="So it is.")
CREATE = Action(ActionTool.CREATE, path="b.py", content="x = 1\n")
REPLACE = Action(ActionTool.STR_REPLACE, path="a.py", old="x", new="y")
PROBLEM = Action(ActionTool.VIEW_PROBLEM)


def node(kind: NodeKind, action: Action, statement: str = "The table holds units", name: str = "n") -> Node:
    return Node(name, kind, statement, action)


def fact(statement: str, action: Action = VIEW, name: str = "n") -> Node:
    return node(NodeKind.STATIC_FACT, action, statement, name)


def rules(one: Node) -> list[str]:
    return [fault.rule for fault in form_faults(one)]


@pytest.mark.parametrize(
    "statement",
    [
        "The table holds units.",
        "`parse(text)` returns None for an empty text, e.g. in `a.b.c`",
        "Line 197 of a.py uses self._get_param('Filter')",
        "Version 1.2.3 is the newest, i.e. what setup.cfg names",
        "It raises ValueError: the symbol is not known",
        "The loop skips an entry, whatever `a; b` may say in code",
        "Does the loop end? never",
    ],
)
def test_one_claim_passes(statement: str) -> None:
    assert rules(fact(statement)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "   ",
        "The table holds units. The reader asks it.",
        "The table holds units; the reader asks it",
        "The table holds units\nThe reader asks it",
        "- the table holds units\n- the reader asks it",
        "1. The table holds units 2. The reader asks it",
        "The table holds units and additionally the reader asks it",
        "The table holds units, and also the reader does",
        "x" * 401,
    ],
)
def test_two_claims_in_one_fact_are_refused(statement: str) -> None:
    assert rules(fact(statement)) == ["R1"]


def test_a_plan_may_have_several_sentences_but_not_be_a_book() -> None:
    assert rules(node(NodeKind.FIX_PLAN, THINK, "Check first; then add. Offer both.")) == []
    assert rules(node(NodeKind.FIX_PLAN, THINK, "x" * 401)) == ["R1"]


ALLOWED = {
    NodeKind.STATIC_FACT: {ActionTool.VIEW, ActionTool.VIEW_PROBLEM, ActionTool.BASH},
    NodeKind.DYNAMIC_FACT: {ActionTool.BASH},
    NodeKind.REPRODUCE_SCRIPT: {ActionTool.CREATE, ActionTool.BASH},
    NodeKind.ISSUE_ANALYSIS: {ActionTool.THINK},
    NodeKind.FIX_PLAN: {ActionTool.THINK},
    NodeKind.CODE_EDIT: {ActionTool.CREATE, ActionTool.STR_REPLACE, ActionTool.BASH},
    NodeKind.VALIDATION: {ActionTool.BASH, ActionTool.CREATE},
}


@pytest.mark.parametrize("kind", NodeKind)
@pytest.mark.parametrize("action", [VIEW, PROBLEM, BASH, CREATE, REPLACE, THINK], ids=lambda action: action.tool)
def test_each_kind_has_its_actions(kind: NodeKind, action: Action) -> None:
    assert ("R2" in rules(node(kind, action))) == (action.tool not in ALLOWED[kind])


@pytest.mark.parametrize(
    ("kind", "action", "rule"),
    [
        (NodeKind.STATIC_FACT, Action(ActionTool.VIEW, path="a.py"), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.VIEW, path="a.py", first=9, last=3), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.VIEW, path="a.py", first=0, last=3), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.BASH), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.BASH, command=" "), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.BASH, command="grep -rn foo ..."), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.VIEW, path="src/.../a.py", first=1, last=2), "R3"),
        (NodeKind.STATIC_FACT, Action(ActionTool.VIEW_PROBLEM, command="ls"), "R2"),
        (NodeKind.DYNAMIC_FACT, Action(ActionTool.BASH, command="echo it returns None"), "R4"),
        (NodeKind.VALIDATION, Action(ActionTool.BASH, command=" printf '3 passed'"), "R4"),
        (NodeKind.CODE_EDIT, Action(ActionTool.STR_REPLACE, path="a.py", old="x"), "R3"),
        (NodeKind.REPRODUCE_SCRIPT, CREATE, "R5"),
        (NodeKind.VALIDATION, CREATE, "R5"),
    ],
)
def test_an_action_is_whole_and_can_be_run_again(kind: NodeKind, action: Action, rule: str) -> None:
    assert rules(node(kind, action)) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "go test ./...",
        "def f(): ...",
        "class A:\n    ...",
        'def f():\n    """Say so."""\n    ...',
        "x[...]",
        "Callable[..., int]",
        "Tuple[int, ...]",
        "f(x, ...)",
        "{...props}",
        "fn(...args)",
        "git diff a...b",
        "append(x, ys...)",
        "a..b",
        "....",
        "for i in 0..10",
    ],
)
def test_dots_that_are_code_leave_nothing_out(text: str) -> None:
    assert abbreviation(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "grep -rn foo ...",
        "…",
        "call foo(…)",
        "f(...)",
        "[...]",
        "<...>",
        "'...'",
        "    ...\n    return 1",
        "sed -n '1,5p' /a/.../b.py",
        "# ...",
        "old code ...\nnew",
        "and so on...",
        "x = 1\n...\ny = 2",
    ],
)
def test_dots_that_stand_for_something_are_found(text: str) -> None:
    assert abbreviation(text) is not None


@pytest.mark.parametrize(
    "command", ["echo $(python a.py)", "echo a | python b.py", "echoes", "truely a", "true && make"]
)
def test_a_command_that_runs_something_may_also_print(command: str) -> None:
    assert rules(fact("A claim", Action(ActionTool.BASH, command=command))) == []


@pytest.mark.parametrize("text", ["f(x, ...), " * 20_000, "def f():\n    ...\n" * 20_000, "x[...]" * 20_000])
def test_dots_are_told_apart_in_time_linear_in_an_action(text: str) -> None:
    start = perf_counter()
    assert abbreviation(text) is None
    assert perf_counter() - start < 5, "about 0.1 s; quadratic in a line it would be minutes"


@pytest.mark.parametrize("statement", ["x." + " " * 100_000 + "x", "! " * 50_000 + "x"])
def test_a_statement_that_is_too_long_is_looked_at_no_further(statement: str) -> None:
    start = perf_counter()
    assert rules(fact(statement)) == ["R1"]
    assert perf_counter() - start < 5, "quadratic it would be minutes"


def test_edits_may_hold_any_dots_because_their_bytes_decide() -> None:
    edit = Action(ActionTool.STR_REPLACE, path="a.py", old="# ...", new="# and so on ...")
    assert rules(node(NodeKind.CODE_EDIT, edit)) == []


# ---- H4


def milestones(*kinds: NodeKind) -> list[Node]:
    return [node(kind, THINK, f"Claim {place}", f"n{place}") for place, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("kinds", "fall"),
    [
        ("reproduce_script issue_analysis fix_plan code_edit validation", ""),
        ("issue_analysis fix_plan code_edit", ""),
        ("static_fact", ""),
        ("fix_plan", "fix_plan"),
        ("issue_analysis code_edit", "code_edit"),
        ("issue_analysis fix_plan validation", "validation"),
        ("fix_plan code_edit validation", "fix_plan code_edit validation"),
        ("validation code_edit fix_plan issue_analysis", ""),
    ],
)
def test_milestones_stand_on_those_before_them(kinds: str, fall: str) -> None:
    nodes = milestones(*map(NodeKind, kinds.split()))
    faults = order_faults(nodes)
    assert {str(one.kind) for one in nodes if one.name in faults} == set(fall.split())
    assert {fault.rule for fault in faults.values()} <= {"H4"}


@given(st.lists(st.sampled_from(list(NodeKind)), max_size=12))
def test_what_is_left_after_the_order_rule_has_no_fault(kinds: list[NodeKind]) -> None:
    nodes = milestones(*kinds)
    faults = order_faults(nodes)
    assert order_faults([one for one in nodes if one.name not in faults]) == {}
    assert all(one.kind in MILESTONES for one in nodes if one.name in faults)


# ---- S1 and S2, and the hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The table holds units", "the  table\nholds UNITS."),
        ("`f` returns None", "f returns None"),
        ("\u201cQuoted\u201d text", '"Quoted" text'),
        ("It\u2019s so", "It's so"),
        ("\uff26ull width", "Full width"),
        ("**The table** holds units!", "The table holds units"),
    ],
)
def test_the_same_claim_has_the_same_hash(one: str, other: str) -> None:
    assert statement_hash(one) == statement_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("f returns None", "f returns 0"), ("_x is set", "x is set"), ("a.b is read", "a b is read"), ("x > 1", "x >= 1")],
)
def test_another_claim_has_another_hash(one: str, other: str) -> None:
    assert statement_hash(one) != statement_hash(other)


@given(st.text(max_size=60))
def test_a_hash_is_stable_under_white_space_and_canonicalizing(text: str) -> None:
    assert statement_hash(f"  {text}\n ") == statement_hash(text)
    assert canonical(canonical(text)) == canonical(text)


def test_equal_claims_are_merged_and_the_stronger_evidence_stays() -> None:
    read, run = fact("The table holds units", VIEW, "read"), fact("the table holds units", BASH, "run")
    other, problem = fact("Another claim", VIEW, "other"), fact("The table holds units.", PROBLEM, "problem")
    kept, merged = merge_equal([read, other, run, problem])
    assert [one.name for one in kept] == ["run", "other"]
    assert merged == {"read": "run", "problem": "run"}


def test_milestones_may_share_their_words_and_only_the_same_edit_is_merged() -> None:
    other = Action(ActionTool.STR_REPLACE, path="b.py", old="x", new="y")
    plan, again = node(NodeKind.FIX_PLAN, THINK, name="plan"), node(NodeKind.FIX_PLAN, THINK, name="again")
    edits = [node(NodeKind.CODE_EDIT, action, name=f"e{at}") for at, action in enumerate((REPLACE, other, REPLACE))]
    kept, merged = merge_equal([fact("The table holds units"), plan, again, *edits])
    assert [one.name for one in kept] == ["n", "plan", "e0", "e1"]
    assert merged == {"again": "plan", "e2": "e0"}


@given(st.permutations(["a", "b", "c", "a", "b"]))
def test_merging_leaves_the_same_set_of_claims_in_every_order(claims: list[str]) -> None:
    nodes = [fact(claim, VIEW, f"n{place}") for place, claim in enumerate(claims)]
    kept, merged = merge_equal(nodes)
    assert {one.hash for one in kept} == {one.hash for one in nodes}
    assert len(kept) + len(merged) == len(nodes)
    assert set(merged.values()) <= {one.name for one in kept}


def view_of(count: int) -> str:
    return "\n".join(f"{number:6}\tline {number}" for number in range(1, count + 1))


@pytest.mark.parametrize(
    ("claimed", "lines"),
    [
        ("line 40\nline 41", (40, 41)),
        ("    40\tline 40", (40, 40)),
        ("line 12\n\nline 90", (12, 90)),
        ("line 500", (1, 100)),
    ],
)
def test_a_wide_view_is_narrowed_to_its_evidence(claimed: str, lines: tuple[int, int]) -> None:
    wide = Action(ActionTool.VIEW, path="a.py", first=1, last=100)
    action = narrowed(wide, view_of(100), claimed)
    assert (action.first, action.last) == lines


def test_a_narrow_view_stays() -> None:
    action = Action(ActionTool.VIEW, path="a.py", first=1, last=20)
    assert narrowed(action, view_of(20), "line 4") == action


# ---- leaks: 30 made cases

PATCH = """diff --git a/measures/units.py b/measures/units.py
index 1111111..2222222 100644
--- a/measures/units.py
+++ b/measures/units.py
@@ -1,2 +1,12 @@
 def find_unit(symbol):
     return _UNITS[symbol]
+
+
+class UnitTaken(ValueError):
+    pass
+
+
+def register_unit(symbol, conversion_factor):
+    if symbol in _UNITS: raise UnitTaken(symbol + " is a unit already, choose another")
+    _UNITS[symbol] = conversion_factor
+    audit_trail.append((symbol, conversion_factor))
diff --git a/measures/audit_log.py b/measures/audit_log.py
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/measures/audit_log.py
@@ -0,0 +1,2 @@
+def write_entry(audit_event):
+    return audit_event.as_line()
diff --git a/tests/test_own_units.py b/tests/test_own_units.py
new file mode 100644
index 0000000..4444444
--- /dev/null
+++ b/tests/test_own_units.py
@@ -0,0 +1,3 @@
+def test_own_unit_is_found():
+    register_unit("ft", 3)
+    assert check_registry_is_sane()
"""
QUERY = "Let callers add a unit by `register_unit`, which raises an error of its own where the symbol is taken."


def gate(known: str = QUERY, at_start: frozenset[str] = frozenset()) -> LeakGate:
    reference = split(parse_patch(PATCH))
    names = candidate_names(reference.source, reference.test)
    standing = {"find_unit", "_UNITS", "symbol", "ValueError"} | at_start
    facts: StageFacts = stage_facts(4, ("a" * 40,), reference.source, reference.test, names & standing)
    hidden = frozenset({"measures/audit_log.py", "tests/test_own_units.py"})
    here = frozenset({"measures/units.py", "measures/__init__.py"})
    return LeakGate(facts, hidden, here, known, roots=("/testbed",), source_paths=frozenset({"measures/audit_log.py"}))


def bash(command: str) -> dict[str, Any]:
    return {"action": Action(ActionTool.BASH, command=command)}


LEAKS = [
    (NodeKind.STATIC_FACT, "The error UnitTaken does not exist yet", {}, "H1"),
    (NodeKind.STATIC_FACT, "`audit_trail` is not kept anywhere", {}, "H1"),
    (NodeKind.STATIC_FACT, "No parameter is called `conversion_factor`", {}, "H1"),
    (NodeKind.STATIC_FACT, "Nothing here writes an audit_event", {}, "H1"),
    (NodeKind.STATIC_FACT, "The module lacks `write_entry`", {}, "H1"),
    (NodeKind.STATIC_FACT, "The fix is to raise before the unit is added", {}, "H1"),
    (NodeKind.STATIC_FACT, "The patch adds a check to find_unit", {}, "H1"),
    (NodeKind.STATIC_FACT, "The change replaces the lookup", {}, "H1"),
    (NodeKind.STATIC_FACT, "The solution would check the symbol first", {}, "H1"),
    (NodeKind.STATIC_FACT, "Nothing stands there", bash("grep -rn UnitTaken measures"), "H1"),
    (NodeKind.STATIC_FACT, "Nothing stands there", bash("grep -n audit_trail measures/units.py"), "H1"),
    (NodeKind.STATIC_FACT, "There is no such file", bash("ls measures/audit_log.py"), "H2"),
    (NodeKind.STATIC_FACT, "The hidden tests ask for a name", {}, "H2"),
    (NodeKind.STATIC_FACT, "The golden patch touches one file", {}, "H2"),
    (NodeKind.STATIC_FACT, "The upstream fix is one line long", {}, "H2"),
    (NodeKind.DYNAMIC_FACT, "It fails at runtime", bash("python -c 'import m; m.UnitTaken'"), "H1"),
    (NodeKind.DYNAMIC_FACT, "It fails at runtime", bash("pytest tests/test_own_units.py"), "H2"),
    (NodeKind.DYNAMIC_FACT, "It fails at runtime", bash("pytest ./tests//test_own_units.py"), "H2"),
    (NodeKind.DYNAMIC_FACT, "It fails at runtime", bash("pytest /testbed/tests/./test_own_units.py::x"), "H2"),
    (NodeKind.DYNAMIC_FACT, "It fails at runtime", bash("cd tests && pytest test_own_units.py"), "H2"),
    (NodeKind.STATIC_FACT, "There is none", bash("find . -name audit_log.py"), "H2"),
    (NodeKind.DYNAMIC_FACT, "It fails at runtime", bash("python -c 'check_registry_is_sane()'"), "H1"),
    (NodeKind.DYNAMIC_FACT, "The reference solution passes", bash("true"), "H2"),
    (NodeKind.REPRODUCE_SCRIPT, "A unit cannot be added", bash("python -c 'from m import UnitTaken'"), "H1"),
    (NodeKind.REPRODUCE_SCRIPT, "A unit cannot be added", bash("pytest -k test_own_unit_is_found"), "H1"),
    (NodeKind.REPRODUCE_SCRIPT, "The F2P tests fail", bash("true"), "H2"),
    (NodeKind.ISSUE_ANALYSIS, "UnitTaken is missing", {}, "H1"),
    (NodeKind.ISSUE_ANALYSIS, "So", {"action": Action(ActionTool.THINK, thought="The fix should check it.")}, "H1"),
    (NodeKind.ISSUE_ANALYSIS, "The change introduces a check", {}, "H1"),
    (NodeKind.ISSUE_ANALYSIS, "Nothing adds to audit_trail", {}, "H1"),
    (NodeKind.VALIDATION, "The hidden test passes", bash("true"), "H2"),
    (NodeKind.VALIDATION, "It passes", bash("pytest tests/test_own_units.py"), "H2"),
    (NodeKind.VALIDATION, "It passes", bash("cd tests; pytest -q test_own_units.py"), "H2"),
]


@pytest.mark.parametrize(("kind", "statement", "fields", "rule"), LEAKS)
def test_what_only_the_reference_brings_in_is_refused(
    kind: NodeKind, statement: str, fields: dict[str, Any], rule: str
) -> None:
    found = gate()(Node("n", kind, statement, fields.get("action", VIEW)))
    assert rule in {fault.rule for fault in found}


def test_a_node_that_repeats_the_whole_reference_is_told_of_few_leaks() -> None:
    asked: list[str] = []

    def stands(said: str) -> bool:
        asked.append(said)
        return False

    patch = "\n".join(f"`{line.removeprefix('+')}`" for line in PATCH.split("\n"))
    found = replace(gate(known=""), stands=stands).leaks(patch)
    assert len(found) == 8 and len(asked) <= 8


def test_a_line_of_the_reference_is_refused_in_a_fact() -> None:
    thought = Action(ActionTool.THINK, thought="_UNITS[symbol] = conversion_factor")
    assert {fault.rule for fault in gate()(node(NodeKind.ISSUE_ANALYSIS, thought))} == {"H1"}
    scripted = Action(
        ActionTool.CREATE, path="r.py", content="import measures\nmeasures.UnitTaken\n", command="python r.py"
    )
    assert {fault.rule for fault in gate()(node(NodeKind.REPRODUCE_SCRIPT, scripted))} == {"H1"}


@pytest.mark.parametrize(
    ("kind", "statement", "fields"),
    [
        (NodeKind.STATIC_FACT, "`find_unit` reads `_UNITS` alone", {}),
        (NodeKind.STATIC_FACT, "The request asks for `register_unit`", {"action": PROBLEM}),
        (NodeKind.REPRODUCE_SCRIPT, "A unit cannot be added", bash("python -c 'import m; m.register_unit(1, 2)'")),
        (NodeKind.FIX_PLAN, "Add UnitTaken, and raise it in register_unit", {"action": THINK}),
        (NodeKind.CODE_EDIT, "The module measures/audit_log.py writes entries", {"action": CREATE}),
        (NodeKind.VALIDATION, "The error is raised", bash("python -c 'from m import UnitTaken'")),
        (NodeKind.VALIDATION, "Entries are written", bash("python measures/audit_log.py")),
        (NodeKind.DYNAMIC_FACT, "Another file is there", bash("ls other/tests/test_own_units.py.bak my_audit_log.py")),
    ],
)
def test_what_the_query_tells_and_what_comes_after_the_analysis_is_no_leak(
    kind: NodeKind, statement: str, fields: dict[str, Any]
) -> None:
    assert gate()(Node("n", kind, statement, fields.get("action", VIEW))) == []


def test_a_name_that_stands_in_the_tree_is_no_secret() -> None:
    assert gate(at_start=frozenset({"audit_trail"}))(fact("`audit_trail` is a list")) == []


def test_a_query_that_speaks_of_its_reference_tests_may_be_quoted() -> None:
    assert gate("The upstream fix was reverted; do it again.")(fact("The upstream fix was reverted", PROBLEM)) == []
