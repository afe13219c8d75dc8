"""Tests of Python that are made false by a value, a name or an order that is as plausible as the true one. Pure."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

from environments.suites.canaries.falsify import (
    OPPOSITES,
    FirstAssertion,
    LiteralText,
    Patch,
    PlausibleDice,
    assertion,
    constants,
)
from environments.suites.canaries.plausible import Around, known_words
from environments.suites.canaries.pythontests import Function, called

_Option = list[Patch]
_Place = tuple[ast.expr | ast.stmt, Callable[[], list[_Option]]]
"""What a falsehood changes, and the ways in which it can."""
_TRUTH = re.compile(r"(?:is|has|can|should|was|needs)_?\w*|callable|issubclass|any|all|exists|startswith|endswith")
"""Names of what answers yes or no."""
_ASKING = frozenset({"startswith", "endswith"})
"""Methods whose argument is what is asked for."""
_SMALL = (str, int)
_READ = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)


@dataclass(frozen=True)
class PlausibleFile:
    """A file's tests, as far as values that look true are made of them."""

    tree: ast.AST
    source: LiteralText
    functions: Sequence[Function]

    @cached_property
    def literals(self) -> list[object]:
        """All small literals."""
        return [it.value for it in _small(self.tree)]

    @cached_property
    def asked(self) -> dict[int, tuple[str, object]]:
        """What assertions ask for: by the literal's identity of what, and its value."""
        found = [it for node in self.functions for it in _assertions(node)]
        return {id(it): (_looked_at(one), it.value) for one in found for it in _asked(one)}

    @cached_property
    def known(self) -> dict[str, int]:
        """How often each word is said."""
        names = [it.id for it in ast.walk(self.tree) if isinstance(it, ast.Name)]
        names += [it.attr for it in ast.walk(self.tree) if isinstance(it, ast.Attribute)]
        return known_words([*self.literals, *names])

    @cached_property
    def lines(self) -> Counter[str]:
        """How often each line stands in the file."""
        return self.source.counted()

    @cached_property
    def kinds(self) -> list[str]:
        """What the file asks objects to be instances of."""
        found = [
            it.args[1]
            for it in ast.walk(self.tree)
            if isinstance(it, ast.Call) and called(it) in ("isinstance", "assertIsInstance") and len(it.args) == 2
        ]
        return sorted({it.id for it in found if isinstance(it, ast.Name)})

    def falsehood(
        self,
        node: Function,
        asserted: Iterable[FirstAssertion],
        by_helpers: Iterable[ast.Constant],
        order: PlausibleDice,
    ) -> list[Patch]:
        """What makes a test false: of its assertions one that asks for a literal, else for a name, else for the truth.
        Empty where none does; `by_helpers` are literals that calls which assert ask for."""
        known = [turned(it) for it in asserted]
        literals = [
            it for it in (*(one for found in known for one in _asked(found)), *by_helpers) if self.source.is_simple(it)
        ]
        places: list[_Place] = [(it, partial(self._values, node, literals, it, order)) for it in literals]
        ways: list[Callable[[FirstAssertion], list[_Option]]] = [self._orders, partial(self._truths, order)]
        places += [(it.statement, partial(way, it)) for way in ways for it in known if way(it)]
        names, answers = (
            [(it.statement, partial(way, it)) for it in known if way(it)]
            for way in (partial(self._names, node), partial(self._answers, order))
        )
        # Of a truth that is turned round B_t often is an example.
        values = [[*places, *names]] if order.news else [places, names]
        kinds = [it for it in (*values, answers) if it]
        if not kinds:
            return []
        place, found = order.place.choice(self._chosen(kinds, order))
        options = found()
        is_ordered = order.signs and isinstance(place, ast.Constant)
        return order.taken(options if is_ordered else order.place.sample(options, len(options)))

    def _chosen(self, kinds: Sequence[Sequence[_Place]], order: PlausibleDice) -> Sequence[_Place]:
        """The places among which one is drawn, of the first of some kinds that has some; with `news` of the first that
        has some in lines that B_t has not. A line that stands elsewhere, too, is seen to be true."""

        def line(place: _Place) -> str:
            return self.source.line(place[0])

        alone = [[it for it in kind if self.lines[line(it)] == 1] for kind in kinds]
        new = [[it for it in kind if line(it).strip() not in order.known] for kind in alone]
        if order.news and any(new):
            return next(filter(None, new))
        return new[0] or alone[0] or kinds[0]

    def _values(
        self, node: Function, literals: Sequence[ast.Constant], literal: ast.Constant, order: PlausibleDice
    ) -> list[_Option]:
        asked_here = {id(it) for it in literals}
        given = [it.value for it in _small(node) if id(it) not in asked_here]
        others = [it for known, it in self.asked.items() if known != id(literal)]
        of, _ = self.asked.get(id(literal), ("", None))
        other = self.literals.copy()
        if literal.value in other:
            other.remove(literal.value)
        peers = [value for one, value in others if one == of]
        asked = [value for _, value in others]
        around = Around(literal.value, given, asked, other, self.known, peers, order.signs)
        return [[self.source.with_value(literal, it)] for it in around.others(order.place)]

    def _orders(self, asserted: FirstAssertion) -> list[_Option]:
        """A list or tuple whose neighbours have changed places, or that says one part twice, or lacks its last one."""
        wanted = asserted.wanted
        if not asserted.is_equality or not isinstance(wanted, ast.List | ast.Tuple) or len(wanted.elts) < 2:
            return []
        parts = wanted.elts
        if not all(isinstance(it, ast.Constant) and self.source.is_simple(it) for it in parts):
            return []
        if len({it.lineno for it in parts}) > 1:
            return []
        swapped = [
            [_in_place(one, self.source.text(two)), _in_place(two, self.source.text(one))]
            for one, two in pairwise(parts)
            if self.source.text(one) != self.source.text(two)
        ]
        before, last = parts[-2:]
        twice = [[_in_place(last, self.source.text(before))]] if swapped else []
        is_list = isinstance(wanted, ast.List) or len(parts) > 2
        less = [[Patch(last.lineno, before.end_col_offset or 0, last.end_col_offset or 0, "")]] if is_list else []
        return [*swapped, *twice, *less]

    def _truths(self, order: PlausibleDice, asserted: FirstAssertion) -> list[_Option]:
        match asserted.wanted:
            case ast.Constant(value=bool(value)) as wanted:
                return [[_in_place(wanted, repr(not value))]]
        sides = (asserted.wanted, asserted.value) if order.turns and asserted.is_equality else ()
        for side in sides:
            match side:
                case ast.Compare(left=left, ops=[op], comparators=[right]) if left.end_lineno == right.lineno:
                    begin, end = self.source.operator(left, right)
                    return [[Patch(right.lineno, begin, end, OPPOSITES[type(op)])]]
        return []

    def _names(self, node: Function, asserted: FirstAssertion) -> list[_Option]:
        """A name of the test's in the place of another, or of a call, that is asked for."""
        wanted = asserted.wanted
        if not asserted.is_equality or not isinstance(wanted, _READ) or wanted.lineno != wanted.end_lineno:
            return []
        kept = [it.arg for it in node.args.args if it.arg not in ("self", "cls")]
        inner = [it for statement in node.body for it in ast.walk(statement) if isinstance(it, ast.Name)]
        kept += [it.id for it in inner if isinstance(it.ctx, ast.Store) and it.lineno < wanted.lineno]
        own = {it.id for it in (wanted, asserted.value) if isinstance(it, ast.Name)}
        return [[_in_place(wanted, it)] for it in dict.fromkeys(kept) if it not in own]

    def _answers(self, order: PlausibleDice, asserted: FirstAssertion) -> list[_Option]:
        """A yes where there was a no, or the other way round, and another class for an instance."""
        test = asserted.statement.test if isinstance(asserted.statement, ast.Assert) else None
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Name(id=name) as kind]):
                if others := [[_in_place(kind, it)] for it in self.kinds if it != name]:
                    return others
        if order.news:
            match test:
                case ast.UnaryOp(op=ast.Not(), operand=value) if test.lineno == value.lineno:
                    return [[Patch(test.lineno, test.col_offset, value.col_offset, "")]]
        is_plain = isinstance(test, ast.Call | ast.Attribute | ast.Name)
        if test is not None and is_plain and (order.news or _TRUTH.fullmatch(called(test))):
            return [[Patch(test.lineno, test.col_offset, test.col_offset, "not ")]]
        return []


def turned(asserted: FirstAssertion) -> FirstAssertion:
    """The same, where what is asked for stands first."""
    wanted = asserted.wanted
    if wanted is None or not asserted.is_equality or not _is_literal(asserted.value) or _is_literal(wanted):
        return asserted
    return replace(asserted, value=wanted, wanted=asserted.value)


def _is_literal(node: ast.expr) -> bool:
    parts = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.USub, ast.Load)
    return all(isinstance(it, parts) for it in ast.walk(node))


def _asked(asserted: FirstAssertion) -> Iterator[ast.Constant]:
    """The literals that an assertion asks for: what a value equals, what is in it, or how it begins."""
    if asserted.is_equality and asserted.wanted is not None:
        yield from constants(asserted.wanted)
        return
    test = asserted.statement.test if isinstance(asserted.statement, ast.Assert) else None
    match test:
        case ast.Compare(left=ast.Constant() as left, ops=[ast.In()]):
            yield from constants(left)
        case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant() as first]) if name in _ASKING:
            yield from constants(first)
    if asserted.method is not None and asserted.method.attr == "assertIn":
        yield from constants(asserted.value)


def _looked_at(asserted: FirstAssertion) -> str:
    """What an assertion asks, as it is written."""
    return ast.unparse(asserted.value if asserted.is_equality or asserted.wanted is None else asserted.wanted)


def _assertions(node: Function) -> Iterator[FirstAssertion]:
    for it in ast.walk(node):
        if isinstance(it, ast.stmt) and (found := assertion(it)) is not None:
            yield turned(found)


def _small(node: ast.AST) -> Iterator[ast.Constant]:
    """The short texts and whole numbers below a node."""
    for it in ast.walk(node):
        if isinstance(it, ast.Constant) and type(it.value) in _SMALL:
            value = it.value
            if not isinstance(value, str) or (0 < len(value) < 80 and value.isprintable()):
                yield it


def _in_place(node: ast.expr, text: str) -> Patch:
    return Patch(node.lineno, node.col_offset, node.end_col_offset or 0, text)
