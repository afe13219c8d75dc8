"""What a process graph tells an agent, in nested bundles (P2T, appendix C): pure, from nodes to a text.

Edits are the reference, and are in no bundle. Of validations, which no rule keeps free of what the reference brings in,
the files that they make are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from prchain.core.storable import clean_text
from trajectories.curation.graphs.nodes import FACTS, ActionTool, Node, NodeKind


class Bundle(StrEnum):
    """How much is told; each holds what the ones before it hold."""

    B0 = "B0"
    """The query alone."""
    B1 = "B1"
    """The statements of all facts."""
    B2 = "B2"
    """The reproduction, with what it printed."""
    B3 = "B3"
    """The analysis."""
    B4 = "B4"
    """The plan."""


WORDS = {
    Bundle.B0: "query",
    Bundle.B1: "+ facts",
    Bundle.B2: "+ reproduction",
    Bundle.B3: "+ analysis",
    Bundle.B4: "+ plan",
}
"""What each adds, for people."""

_LEAD = "What has been found out about this task before you began:"


def bundle_text(nodes: Sequence[Node], bundle: Bundle, *, validation: bool = False) -> str:
    """What a bundle adds to the query: plain sections with heads; empty where the graph has nothing of it.

    With `validation` the bundle B4 holds statements and commands of the validations, too.
    """
    depth = list(Bundle).index(bundle)
    kinds = (
        (1, "Facts", FACTS, _fact),
        (2, "Reproduction", (NodeKind.REPRODUCE_SCRIPT,), _reproduction),
        (3, "Analysis", (NodeKind.ISSUE_ANALYSIS,), _thought),
        (4, "Plan", (NodeKind.FIX_PLAN,), _thought),
        *([(4, "Validation", (NodeKind.VALIDATION,), _validation)] if validation else []),
    )
    sections = []
    for needed, head, wanted, words in kinds:
        texts = [words(node) for node in nodes if node.kind in wanted] if depth >= needed else []
        if texts:
            between = "\n" if words is _fact else "\n\n"
            sections.append(f"{head}:\n\n{between.join(texts)}")
    # As messages are stored: a run that resumes must send the same text.
    return clean_text("\n\n".join([_LEAD, *sections])) if sections else ""


def _fact(node: Node) -> str:
    return f"- {_line(node.statement)}"


def _thought(node: Node) -> str:
    thought = (node.action.thought or "").strip()
    return thought or node.statement.strip()


def _reproduction(node: Node) -> str:
    return "\n".join([_line(node.statement), *_action(node, files=True), *_block("It printed:", node.observation)])


def _validation(node: Node) -> str:
    return "\n".join([_line(node.statement), *_action(node, files=False)])


def _action(node: Node, *, files: bool) -> Iterator[str]:
    action = node.action
    if action.tool is ActionTool.CREATE and files:
        yield from _block(f"The file {action.path}:", action.content or "")
    if action.command:
        yield from _block("The command:", action.command)


def _block(head: str, text: str) -> Iterator[str]:
    """A head, and below it the text, indented: none of its lines can pass for a head."""
    if text.strip():
        yield head
        yield from (f"    {line}" for line in text.rstrip("\n").split("\n"))


def _line(text: str) -> str:
    return " ".join(text.split())
