"""The edges of process graphs: the worked example of P2T (appendix I, figure 5), cases, and properties."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.git.trees import TreeStore
from tests.prchain.treeworld import new_store, plant
from trajectories.curation.graphs.graph import ORDER, ProcessGraph, defined_names_at, linked, without_marks
from trajectories.curation.graphs.nodes import MILESTONES, Action, ActionTool, Node, NodeKind
from trajectories.curation.graphs.report import tree_lines


def bash(name: str, command: str, observation: str, kind: NodeKind = NodeKind.STATIC_FACT) -> Node:
    return Node(name, kind, f"Claim of {name}", Action(ActionTool.BASH, command=command), observation)


def view(name: str, path: str, first: int, last: int, observation: str) -> Node:
    action = Action(ActionTool.VIEW, path=path, first=first, last=last)
    return Node(name, NodeKind.STATIC_FACT, f"Claim of {name}", action, observation)


def think(name: str, kind: NodeKind, thought: str) -> Node:
    return Node(name, kind, f"Claim of {name}", Action(ActionTool.THINK, thought=thought))


def edges(graph: ProcessGraph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.edges}


# ---- getmoto/moto#6041: nodes written by hand after table 2, with evidence in our words

QUERY = (
    "ec2.describe_security_group_rules does not use its filter: with Filters=[{'Name': 'group-id', ...}] it returns "
    "the rules of all security groups, seen with boto3 and moto.mock_ec2."
)
HANDLER, MODEL, HELPER = (
    "moto/ec2/responses/security_groups.py",
    "moto/ec2/models/security_groups.py",
    "moto/ec2/responses/_base_response.py",
)
TESTS = "tests/test_ec2/test_security_groups.py"
DEFINED = {
    "describe_security_group_rules",
    "describe_security_groups",
    "_get_param",
    "_filters_from_querystring",
    "_get_multi_param",
}

MOTO = [
    bash(
        "f1",
        "grep -rln describe_security_group_rules tests",
        f"{TESTS}",
    ),
    bash(
        "repro_1",
        "python -c \"import boto3, moto; print('rules of two groups')\"",
        "rules of two groups",
        NodeKind.REPRODUCE_SCRIPT,
    ),
    bash(
        "f2",
        "grep -rn -A 6 'def describe_security_group_rules' moto/ec2/responses",
        f"{HANDLER}:195: def describe_security_group_rules\n"
        f"{HANDLER}-197- self._get_param('Filter')\n"
        f"{HANDLER}-198- self.ec2_backend.describe_security_groups",
    ),
    bash("f3", f"grep -n 'filters' {HANDLER}", "186: filters = self._filters_from_querystring()"),
    bash(
        "f4",
        "grep -rn -A 5 'def _filters_from_querystring' moto/ec2",
        f"{HELPER}:20: def _filters_from_querystring\n{HELPER}-22- self._get_multi_param('Filter.')",
    ),
    bash(
        "f5",
        "grep -rn -A 6 'def _get_param' moto/core",
        "moto/core/responses.py:740: def _get_param\nmoto/core/responses.py-745- self.querystring.get(param_name)",
    ),
    bash(
        "f6",
        "python -c 'import moto.core.responses as r; print(r.BaseResponse().querystring)'",
        "querystring holds Filter.1.Name; BaseResponse.describe prints None",
        NodeKind.DYNAMIC_FACT,
    ),
    bash(
        "f8",
        "grep -rn -A 3 'ec2_backend.describe_security_groups' moto/ec2",
        f"{MODEL}:545: def describe_security_group_rules calls describe_security_groups",
    ),
    view("f9", MODEL, 538, 548, "   540\tif filters:\n"),
    bash("f10", "grep -rln _filters_from_querystring moto/ec2/responses", "moto/ec2/responses/instances.py"),
    view("f11", TESTS, 400, 430, "   410\tfor rule in rules:\n"),
    think("analysis", NodeKind.ISSUE_ANALYSIS, "BaseResponse.describe looks for one key, and finds none."),
    think("plan", NodeKind.FIX_PLAN, "Let the handler parse as its siblings do."),
    Node(
        "edit_1",
        NodeKind.CODE_EDIT,
        "The handler parses as its siblings do",
        Action(ActionTool.STR_REPLACE, path=HANDLER, old="self._get_param('Filter')", new="self.parsed()"),
        "edited",
    ),
    bash("val_1", "python -c 'one'", "1 rule", NodeKind.VALIDATION),
    bash("val_2", "python -c 'two'", "passed", NodeKind.VALIDATION),
]
FACTS = [node.name for node in MOTO if node.kind in {NodeKind.STATIC_FACT, NodeKind.DYNAMIC_FACT}]


@pytest.fixture(scope="module")
def moto() -> ProcessGraph:
    return linked(MOTO, QUERY, defined=DEFINED, roots=("/testbed",))


def test_the_papers_example_has_the_papers_edges_between_facts(moto: ProcessGraph) -> None:
    between = {pair for pair in edges(moto) if set(pair) <= set(FACTS)}
    assert between == {
        ("f1", "f11"),
        ("f2", "f3"),
        ("f2", "f5"),
        ("f2", "f8"),
        ("f3", "f4"),
        ("f3", "f10"),
        ("f8", "f9"),
        ("f5", "f6"),
    }


def test_the_papers_example_has_its_milestones_in_order(moto: ProcessGraph) -> None:
    assert {pair for pair in edges(moto) if not set(pair) & set(FACTS)} == {
        ("repro_1", "analysis"),
        ("analysis", "plan"),
        ("plan", "edit_1"),
        ("edit_1", "val_1"),
        ("edit_1", "val_2"),
    }
    assert ("f6", "analysis") in edges(moto)
    assert moto.dropped == () and moto.dropped_share == 0


def test_the_papers_example_has_the_papers_frontier_at_step_22(moto: ProcessGraph) -> None:
    assert moto.frontier({"f1", "repro_1", "f2"}) == {"f3", "f5", "f8", "f11"}


# ---- cases


def test_an_entity_that_the_query_holds_makes_no_edge() -> None:
    nodes = [bash("a", "ls", "src/till.py"), view("b", "src/till.py", 1, 2, "x")]
    assert edges(linked(nodes, "")) == {("a", "b")}
    assert edges(linked(nodes, "Look into src/till.py")) == set()


def test_the_first_node_that_shows_an_entity_counts_and_no_other() -> None:
    nodes = [bash("a", "ls", "src/till.py"), bash("b", "find .", "src/till.py"), view("c", "src/till.py", 1, 2, "x")]
    assert edges(linked(nodes, "")) == {("a", "c")}


def test_plain_words_and_names_that_the_tree_does_not_define_make_no_edge() -> None:
    nodes = [bash("a", "ls", "the filter table price_of"), bash("b", "grep -rn 'filter table price_of'", "")]
    assert edges(linked(nodes, "")) == set()
    assert edges(linked(nodes, "", defined={"price_of"})) == {("a", "b")}


def test_lines_that_were_shown_make_an_edge_to_a_view_of_them() -> None:
    found = bash("a", "grep -n total src/till.py", "41: total = 0\n97: return total")
    other = bash("b", "grep -rn total", "src/other.py:50: total = 0")
    nodes = [found, other, view("c", "src/till.py", 90, 99, "x"), view("d", "src/other.py", 45, 55, "y")]
    graph = linked(nodes, "src/till.py and src/other.py")
    assert {(edge.source, edge.target, edge.reason) for edge in graph.edges} == {
        ("a", "c", "src/till.py:90-99"),
        ("b", "d", "src/other.py:45-55"),
    }
    assert edges(linked([found, view("c", "src/till.py", 50, 60, "x")], "src/till.py")) == set()


def test_paths_are_the_same_with_and_without_the_workspace() -> None:
    nodes = [bash("a", "find /testbed -name '*.py'", "/testbed/src/till.py"), view("b", "src/till.py", 1, 2, "x")]
    assert edges(linked(nodes, "", roots=("/testbed",))) == {("a", "b")}


def test_a_kind_that_is_missing_is_skipped_in_the_order_of_milestones() -> None:
    nodes = [think("a", NodeKind.ISSUE_ANALYSIS, "t"), bash("v", "true", "", NodeKind.VALIDATION)]
    assert linked(nodes, "").edges[0].reason == ORDER
    assert edges(linked(nodes, "")) == {("a", "v")}


def test_an_edge_that_would_close_a_cycle_is_dropped_and_counted() -> None:
    nodes = [bash("a", "cat src/b.py", "src/c.py"), bash("b", "cat src/c.py", "src/b.py")]
    graph = linked(nodes, "")
    assert edges(graph) == {("b", "a")}
    assert [(edge.source, edge.target) for edge in graph.dropped] == [("a", "b")]
    assert graph.dropped_share == 0.5


def test_what_an_agent_writes_itself_need_not_be_shown_by_a_later_node() -> None:
    nodes = [
        think("analysis", NodeKind.ISSUE_ANALYSIS, "t"),
        think("plan", NodeKind.FIX_PLAN, "as src/secret.py says"),
        bash("edit", "rm a.py", "", NodeKind.CODE_EDIT),
        bash("check", "ls", "src/secret.py", NodeKind.VALIDATION),
    ]
    assert linked(nodes, "").dropped == ()
    shown = bash("early", "ls", "src/secret.py")
    assert ("early", "plan") in edges(linked([shown, *nodes], ""))


def test_a_script_shows_its_path_and_its_output_and_not_what_it_says() -> None:
    action = Action(ActionTool.CREATE, path="try.py", content="import src.till\nprice_of()", command="python try.py")
    script = Node("script", NodeKind.REPRODUCE_SCRIPT, "It fails", action, "File src/store.py, line 3")
    nodes = [script, bash("a", "cat src/store.py", ""), bash("b", "grep price_of x", ""), bash("c", "cat try.py", "")]
    assert edges(linked(nodes, "", defined={"price_of"})) == {("script", "a"), ("script", "c")}


def test_the_word_that_ends_a_here_document_names_nothing() -> None:
    command = "python - <<'EOF'\nimport till\nEOF"
    nodes = [bash("a", "ls", "EOF = 1"), bash("b", command, ""), bash("c", "cat <<EOF | grep EOF_mark\n EOF\nEOF", "")]
    assert edges(linked(nodes, "", defined={"EOF"})) == set()
    assert without_marks("cat a << b") == "cat a  " and without_marks("x <<< y") == "x <<< y"


def test_a_name_that_a_script_defines_and_the_tree_does_not_makes_no_edge() -> None:
    nodes = [bash("a", "ls", "def first(): pass"), bash("b", "python -c 'def first(): pass'", "")]
    assert edges(linked(nodes, "")) == set()


def test_levels_are_one_more_than_the_highest_before() -> None:
    nodes = [bash("a", "ls", "x/a.py"), bash("b", "cat x/a.py", "x/b.py"), bash("c", "cat x/a.py x/b.py", "")]
    graph = linked(nodes, "")
    assert dict(graph.levels) == {"a": 0, "b": 1, "c": 2}
    assert graph.predecessors("c") == {"a", "b"}


# ---- names that a tree defines


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def test_names_that_the_tree_defines_are_found_in_code_alone(store: TreeStore) -> None:
    tree = plant(
        store,
        {
            "a.py": "def price_of(item):\n    total_sum = 1\n\nclass TillRow: pass\n\ndef run(): price_to(1)\n",
            "b.go": "func ReadAll() {}\n",
            "README.md": "def told_only():\n",
        },
    )
    wanted = ["price_of", "TillRow", "run", "price_to", "told_only", "ReadAll", "absent_name", "not a name"]
    assert defined_names_at(store, tree, wanted) == {"price_of", "TillRow", "ReadAll"}
    assert defined_names_at(store, tree, []) == set()


# ---- properties

PATHS = [f"src/{name}.py" for name in "abcdef"]


@pytest.mark.parametrize("path", ["docs/a.py:1 b.py", "a b.py", "docs/a\nb.py", "a.py:12", 'docs/it\'s "b".py'])
def test_a_view_is_of_its_path_whatever_stands_in_it(path: str) -> None:
    nodes = [view("a", path, 1, 9, "x"), view("b", path, 5, 6, "y"), view("c", "b.py", 5, 6, "z")]
    assert edges(linked(nodes, "")) == {("a", "b")}


@st.composite
def node_lists(draw: st.DrawFn) -> list[Node]:
    count = draw(st.integers(0, 9))
    nodes = []
    for number in range(count):
        kind = draw(st.sampled_from(list(NodeKind)))
        named, shown = (" ".join(draw(st.lists(st.sampled_from(PATHS), max_size=3))) for _ in range(2))
        nodes.append(bash(f"n{number}", f"cat {named}", shown, kind))
    return nodes


@given(node_lists())
def test_a_graph_has_no_cycle_and_every_edge_is_between_its_nodes(nodes: list[Node]) -> None:
    graph = linked(nodes, "")
    assert nx.is_directed_acyclic_graph(graph.digraph)
    assert set(graph.levels) == {node.name for node in nodes}
    assert all(graph.levels[edge.source] < graph.levels[edge.target] for edge in graph.edges)
    assert not {(it.source, it.target) for it in graph.dropped} & edges(graph)


@given(node_lists())
def test_milestones_of_one_kind_come_after_all_of_the_kind_before(nodes: list[Node]) -> None:
    graph = linked(nodes, "")
    present = [kind for kind in MILESTONES if any(node.kind is kind for node in nodes)]
    for before, after in pairwise(present):
        pairs = {
            (one.name, other.name) for one in nodes for other in nodes if (one.kind, other.kind) == (before, after)
        }
        assert pairs <= edges(graph)


@given(node_lists())
def test_the_whole_graph_can_be_walked_by_its_frontiers(nodes: list[Node]) -> None:
    graph = linked(nodes, "")
    known: set[str] = set()
    while frontier := graph.frontier(known):
        known |= frontier
    assert known == {node.name for node in nodes}


def test_a_chain_of_any_length_is_a_tree_on_the_page() -> None:
    names = [f"n{number}" for number in range(3_000)]
    nodes = [
        {"name": name, "kind": "static_fact", "statement": "So", "verdict": "keep", "level": level}
        for level, name in enumerate(names)
    ]
    edges = [{"source": one, "target": other, "reason": "src/a.py"} for one, other in pairwise(names)]
    lines = list(tree_lines({"nodes": nodes, "edges": edges}))
    assert len(lines) == len(names) and lines[1] == "`- n1 static_fact [src/a.py]: So"
