"""The rules of a process graph that code decides (P2T, appendix D): R1, R2, R3, H1 in part, H2, H4, S1 and S2.

What needs a sandbox (R4, R5, H3) is in `replay` beside this module; edits (R6, H6) are in `edits` and `reference`. H5,
S3 and the rest of H1 are the critic's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from prchain.core.code.identifiers import is_code_name
from prchain.core.leaks import StageFacts, check
from trajectories.curation.graphs.masking import shown_lines
from trajectories.curation.graphs.nodes import FACTS, MILESTONES, Action, ActionTool, Node, NodeKind

LONGEST_STATEMENT = 400
"""Characters of one claim."""

_MOST_LEAKS = 8
"""Leaks of one node that are told."""

_BESIDE_DOTS = 200
"""Characters before and behind dots, of their line, that are looked at: a line may be as long as an answer."""

WIDE_VIEW = 60
"""Lines from which on a view is narrowed to those that its evidence quotes (S2)."""

ALLOWED: Mapping[NodeKind, tuple[ActionTool, ...]] = {
    NodeKind.STATIC_FACT: (ActionTool.VIEW, ActionTool.VIEW_PROBLEM, ActionTool.BASH),
    NodeKind.DYNAMIC_FACT: (ActionTool.BASH,),
    NodeKind.REPRODUCE_SCRIPT: (ActionTool.CREATE, ActionTool.BASH),
    NodeKind.ISSUE_ANALYSIS: (ActionTool.THINK,),
    NodeKind.FIX_PLAN: (ActionTool.THINK,),
    NodeKind.CODE_EDIT: (ActionTool.CREATE, ActionTool.STR_REPLACE, ActionTool.BASH),
    NodeKind.VALIDATION: (ActionTool.BASH, ActionTool.CREATE),
}
"""Kind to the tools of its actions (R2, H2)."""

RUNS = frozenset({NodeKind.REPRODUCE_SCRIPT, NodeKind.VALIDATION})
"""Kinds whose action has to run something (R5)."""

BEFORE: Mapping[NodeKind, NodeKind] = {
    NodeKind.FIX_PLAN: NodeKind.ISSUE_ANALYSIS,
    NodeKind.CODE_EDIT: NodeKind.FIX_PLAN,
    NodeKind.VALIDATION: NodeKind.CODE_EDIT,
}
"""Kind to the kind that has to be in the graph with it (H4)."""

NAMES_HIDDEN_IN = frozenset(
    {NodeKind.STATIC_FACT, NodeKind.DYNAMIC_FACT, NodeKind.REPRODUCE_SCRIPT, NodeKind.ISSUE_ANALYSIS}
)
"""Kinds that come before the fix: no name that only the reference introduces stands in them (H1)."""


class NodeFault(NamedTuple):
    """A rule of P2T's appendix D that a node breaks, and words for the model."""

    rule: str
    words: str


_SENTENCE_END = re.compile(r"(?<![.\d])[.!?](?=[\s\"'\u201d\u2019)]+\W*[A-Z\d`_])|[;\n]|(?:^|\s)(?:[-*•]|\(?\d+[.)])\s")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|no)\.", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]*`")
_JOINED = re.compile(
    r"\b(?:and|but) (?:also|additionally|furthermore)\b|\badditionally\b|\bfurthermore\b", re.IGNORECASE
)

SECRET_WORDS = re.compile(
    r"\b(?:golden|gold|reference|oracle|upstream|hidden|official|merged|developers?'?s?)[ _-]?"
    r"(?:patch(?:es)?|fix|solution|diff|tests?|answer)\b|\btest[ _-]patch\b|\bF2P\b|\bfail[ _-]to[ _-]pass\b"
    r"|\bground[ _-]truth\b|\bhidden hints?\b",
    re.IGNORECASE,
)
_TELLS_THE_FIX = re.compile(
    r"\bthe (?:(?:fix|patch|solution) (?:is|was|will|would|should|must)|(?:fix|patch|solution|change) (?:adds?|"
    r"changes?|replaces?|removes?|calls?|introduces?|makes?|uses?))\b",
    re.IGNORECASE,
)

_ONLY_PRINTS = re.compile(r"\s*(?:echo|printf|true|:)(?!\S)[^|;&`$<>\n]*")
"""A command that prints what stands in itself: evidence of nothing."""

_OF_THE_CODE = frozenset({"introduced_name", "code_line"})
"""Kinds of findings whose evidence is a word or a line of code."""

_DOTS = re.compile(r"…|(?<!\.)\.\.\.(?!\.)")
_CODE_BEFORE = re.compile(r"\./\Z|\w\[\Z|[\[(,]\s*\Z|:[ \t]*\Z|^[ \t]*\Z")
"""What stands before dots that may be code, up to the beginning of the line: ``./...``, ``x[...``, ``[..., int]``,
``f(x, ...)``, ``def f(): ...``, and a body on a line of its own."""


def form_faults(node: Node) -> list[NodeFault]:
    """What is wrong with a node by itself: R1, R2, R3."""
    return [*_claim_faults(node), *_action_faults(node)]


def _claim_faults(node: Node) -> Iterable[NodeFault]:
    statement = node.statement.strip()
    if not statement:
        yield NodeFault("R1", "the statement is empty")
        return
    if len(statement) > LONGEST_STATEMENT:
        yield NodeFault(
            "R1", f"the statement has {len(statement)} characters; one claim has {LONGEST_STATEMENT} at most"
        )
        return  # the search for a second claim takes time quadratic in a run of signs
    if node.kind not in FACTS:
        return
    plain = _ABBREVIATION.sub("", _CODE.sub("x", statement))
    if _SENTENCE_END.search(plain) or _JOINED.search(plain):
        yield NodeFault("R1", "the fact makes more than one claim; make a node of each")


def _action_faults(node: Node) -> Iterable[NodeFault]:
    action, kind = node.action, node.kind
    if action.tool not in ALLOWED[kind]:
        tools = ", ".join(ALLOWED[kind])
        yield NodeFault("R2", f"a {kind} has no action {action.tool}, but one of: {tools}")
        return
    if action.missing:
        yield NodeFault("R3", f"the action {action.tool} needs {', '.join(action.missing)}")
        return
    if action.superfluous:
        yield NodeFault("R2", f"the action {action.tool} takes no {', '.join(action.superfluous)}")
    if kind in RUNS and not action.command:
        yield NodeFault("R5", f"a {kind} has to run something: give the command")
    if kind in {*FACTS, *RUNS} and _ONLY_PRINTS.fullmatch(action.command or "x"):
        yield NodeFault("R4", "the command prints what it says itself; take one that shows what the repository does")
    if action.tool is ActionTool.VIEW and not 1 <= (action.first or 0) <= (action.last or 0):
        yield NodeFault("R3", f"lines {action.first} to {action.last} are no range of lines")
    texts = {"command": action.command, "thought": action.thought, "path": action.path}
    if kind is not NodeKind.CODE_EDIT:  # of edits the bytes decide
        texts |= {"content": action.content}
    for name, text in texts.items():
        if text is not None and not text.strip():
            yield NodeFault("R3", f"the action's {name} is empty")
        elif text is not None and (place := abbreviation(text)) is not None:
            yield NodeFault("R3", f"the action's {name} is abbreviated: {place!r}; write it out")


def abbreviation(text: str) -> str | None:
    """The line of an action in which dots stand for what was left out; None where there is none.

    Dots that are code are none: Python's ``...`` as a body, as a subscript and beside a comma, rest and spread of
    JavaScript, Go and Rust, ``./...`` and git's ``a...b``; nor is any number of dots but three.
    """
    first, end = 0, -1
    for match in _DOTS.finditer(text):
        while end <= match.start():  # the line of these dots; each line is looked for once
            first, end = end + 1, text.find("\n", end + 1)
            end = end if end >= 0 else len(text)
        begin = max(match.start() - _BESIDE_DOTS, first)
        line = text[begin : min(match.end() + _BESIDE_DOTS, end)]
        above = text[max(first - _BESIDE_DOTS, 0) : first]
        if match[0] == "…" or not _is_code(above, line, match.start() - begin, match.end() - begin):
            return text[first:end].strip()[:80]
    return None


def _is_code(above: str, line: str, start: int, end: int) -> bool:
    """Whether the three dots of a line are code; `above` is the end of the text before it."""
    before, after = line[:start], line[end:]
    following = after.lstrip()[:1]
    if re.match(r"[\w\[{(*&$]", after):  # spread, rest, a...b
        return True
    if not before.strip():  # a body on a line of its own
        return not after.strip() and above.rstrip().endswith((":", '"""', "'''"))
    match = _CODE_BEFORE.search(before)
    if match is None:
        return before[-1:].isalnum() and following == ")"  # Go's f(args...)
    sign = match[0].strip()[-1:]
    if sign == "/":
        return not after.startswith("/")
    if sign == ":":
        return not after.strip()
    if sign == ",":
        return following in {",", ")", "]"} and following != ""
    # After a bracket: x[...] and f(..., 1); but f(...) and [...] leave something out.
    return following == "," or (following == "]" and re.search(r"\w\[\s*\Z", before) is not None)


@dataclass(frozen=True)
class LeakGate:
    """Finds what a node must not say: names and lines that only the reference has, hidden tests, and the reference
    itself (H1 in part, H2). `known` is the query as the agent reads it: what stands there is no secret. Nor is what
    `stands` in the tree that the agent starts on, a word or a line: the reference may repeat it, or have it in another
    spelling (``import json``, ``__getattr__`` beside ``getattr``)."""

    facts: StageFacts
    hidden_paths: frozenset[str]
    paths_at_start: frozenset[str]
    known: str = ""
    stands: Callable[[str], bool] = lambda said: False
    roots: tuple[str, ...] = ()
    """The folders in which the repository may lie."""
    source_paths: frozenset[str] = frozenset()
    """Of the hidden ones those that edits make: a validation, which comes after them, may name them."""

    def __call__(self, node: Node) -> list[NodeFault]:
        """The faults of a node."""
        return list(self._faults(node))

    def _faults(self, node: Node) -> Iterable[NodeFault]:
        said = f"{node.statement}\n{node.action.text}"
        if (match := SECRET_WORDS.search(said)) and match[0].lower() not in self.known.lower():
            yield NodeFault("H2", f"it speaks of what no agent knows of: {match[0]!r}")
        if node.kind in {NodeKind.CODE_EDIT, NodeKind.FIX_PLAN}:
            return
        made = self.source_paths if node.kind is NodeKind.VALIDATION else frozenset[str]()
        for path in sorted(self.hidden_paths - made):
            for name in self._own_names(path):
                if _names_path(said, name, self.roots) and not _names_path(self.known, name, self.roots):
                    yield NodeFault("H2", f"it names {name}, which only the reference has")
                    break
        if node.kind not in NAMES_HIDDEN_IN:
            return
        if match := _TELLS_THE_FIX.search(f"{node.statement}\n{node.action.thought or ''}"):
            yield NodeFault("H1", f"it tells the fix ({match[0]!r}) instead of a property of the code before it")
        yield from (NodeFault("H1", words) for words in self.leaks(said))

    def _own_names(self, path: str) -> Iterable[str]:
        """How a text names a hidden path: in full; and by the file's name, where no other file has it and it is no
        word that any file might be called by."""
        yield path
        name = posixpath.basename(path)
        if name not in self._names_at_start and is_code_name(name.partition(".")[0].strip("_")):
            yield name

    @cached_property
    def _names_at_start(self) -> frozenset[str]:
        return frozenset(map(posixpath.basename, self.paths_at_start))

    def leaks(self, text: str) -> list[str]:
        """What a text has of the reference alone, in words."""
        found = check(text, [self._own_facts], 1, kind="issue", paths_at_base=self.paths_at_start)
        leaks = (finding for finding in found if finding.severity == "leak")
        secret = (it for it in leaks if it.kind not in _OF_THE_CODE or not self.stands(it.evidence))
        # Each takes a search of the tree, and is told to the proposer.
        return list(dict.fromkeys(finding.words() for finding in islice(secret, _MOST_LEAKS)))

    @property
    def _own_facts(self) -> StageFacts:
        told = frozenset(name for name in self.facts.introduced if _names_word(self.known, name))
        return replace(self.facts, interface=self.facts.interface | told)


def _names_path(text: str, path: str, roots: Collection[str]) -> bool:
    """Whether a text names a path: as it is, below a root, or behind dots; not where it is the end of another one."""
    name = posixpath.basename(path)
    if name not in text:
        return False
    spelt = "/+(?:\\./+)*".join(map(re.escape, path.split("/")))
    above = "|".join([r"\.{1,2}", *(re.escape(root.rstrip("/")) for root in roots)])
    return re.search(rf"(?<![\w/.-])(?:(?:{above})/+(?:\.{{1,2}}/+)*+)?{spelt}(?![\w/-])", text) is not None


def _names_word(text: str, word: str) -> bool:
    return word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def order_faults(nodes: Sequence[Node]) -> dict[str, NodeFault]:
    """Name of each node whose kind needs one that is not among the nodes, and the fault (H4); followed to its end: an
    edit whose plan falls, falls."""
    present = {node.kind for node in nodes}
    faults: dict[str, NodeFault] = {}
    for kind in MILESTONES:
        needed = BEFORE.get(kind)
        if needed is None or needed in present:
            continue
        words = f"a {kind} stands without a {needed} before it"
        faults |= {node.name: NodeFault("H4", words) for node in nodes if node.kind is kind}
        present.discard(kind)
    return faults


_STRENGTH = {ActionTool.BASH: 3, ActionTool.VIEW: 2, ActionTool.VIEW_PROBLEM: 1}


def stronger(one: Node, other: Node) -> Node:
    """Of two nodes with the same claim, the one with the stronger evidence (S1): what was run before what was read,
    the code before the problem statement; else the first."""
    strength = [_STRENGTH.get(node.action.tool, 0) for node in (one, other)]
    return other if strength[1] > strength[0] else one


def merge_equal(nodes: Sequence[Node]) -> tuple[list[Node], dict[str, str]]:
    """The nodes without those that repeat a claim (S1), and name of each that fell to the name that stays. A node that
    stays keeps the first one's place."""
    kept: dict[tuple[str, ...], Node] = {}
    merged: dict[str, str] = {}
    for node in nodes:
        held = kept.get(node.claim)
        if held is None:
            kept[node.claim] = node
            continue
        winner = stronger(held, node)
        loser = node if winner is held else held
        kept[node.claim] = winner
        merged = {name: winner.name if stays == loser.name else stays for name, stays in merged.items()}
        merged[loser.name] = winner.name
    return list(kept.values()), merged


def narrowed(action: Action, shown: str, claimed: str, *, wide: int = WIDE_VIEW) -> Action:
    """A view of `wide` lines or more, narrowed to the lines that the claimed evidence quotes of what it shows (S2)."""
    if action.tool is not ActionTool.VIEW or action.first is None or action.last is None:
        return action
    if action.last - action.first + 1 < wide:
        return action
    covered = shown_lines(shown, claimed, numbered=True)
    if not covered:
        return action
    return replace(action, first=action.first + covered[0], last=action.first + covered[-1])
