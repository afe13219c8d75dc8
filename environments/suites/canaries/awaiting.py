"""Canaries about awaited errors: what a test does where an error is awaited, and what has to raise where none is.

Work that raises wherever an error is awaited, whatever it was given, passes the first; work that raises only there
passes the others. Who wants to pass the tests and none of these has to know which values are right, as the work does.
Pure.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Self

from environments.suites.canaries.blockbodies import Body
from environments.suites.canaries.blockstyle import BlockStyle
from environments.suites.canaries.jstokens import JsTokens, TokenRange, tokens_of

MOST = 6
"""Canaries of a file."""
_ENDS_RUN = re.compile(r"KeyboardInterrupt|BaseException|\bExit\b|\bexit\b")
"""Of what is awaited: a runner that meets it ends."""
_LONGEST = 1 << 20
_BEHIND = 4
"""Lines from one on where an error is awaited: what has to throw stands there."""
_WORD = re.compile(r"[A-Za-z_]\w+")
_RAISING = re.compile(r"(?P<before>(?:\w+\.)*)(?P<name>raises|assertRaises|assertRaisesRegexp?)")
_MOST_EXCEPTIONS = 6
"""A file that awaits more different ones says little by them."""


@dataclass(frozen=True, slots=True)
class PythonAwaits:
    """How the tests of a file await errors: the functions by which a ``with`` does, those that are given what has to
    raise, and the exceptions, as they are written."""

    withs: tuple[str, ...]
    calls: tuple[str, ...]
    exceptions: str

    @classmethod
    def of(cls, tree: ast.AST) -> Self | None:
        """None where nothing is awaited, or too much."""
        heads = {
            id(item.context_expr)
            for node in ast.walk(tree)
            if isinstance(node, ast.With | ast.AsyncWith)
            for item in node.items
        }
        withs, calls, exceptions = set[str](), set[str](), set[str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and (function := _awaiting(node)):
                first = node.args[0]
                awaited = first.elts if isinstance(first, ast.Tuple) else [first]
                is_named = all(isinstance(it, ast.Name | ast.Attribute) for it in awaited)
                if is_named and (id(node) in heads or len(node.args) > 1):
                    (withs if id(node) in heads else calls).add(function)
                    exceptions.update(map(ast.unparse, awaited))
        if not 0 < len(exceptions) <= _MOST_EXCEPTIONS:
            return None
        some = sorted(exceptions)
        return cls(tuple(sorted(withs)), tuple(sorted(calls)), some[0] if len(some) == 1 else f"({', '.join(some)})")

    def ways(self, *, has_self: bool) -> list[AwaitingWay]:
        """Those of a test that is, or is not, a method."""
        every = [*(AwaitingWay(it, self.exceptions, is_call=False) for it in self.withs)]
        every += [AwaitingWay(it, self.exceptions, is_call=True) for it in self.calls]
        return [it for it in every if has_self or not it.function.startswith("self.")]


class AwaitingWay(NamedTuple):
    """One way in which tests of Python await errors."""

    function: str
    exceptions: str
    is_call: bool

    def around(self, body: Sequence[str], indent: str, step: str, word: str) -> list[str]:
        """The lines of a test's body, which begin with `indent`, where an error is awaited of them; `word` is a name
        that the file has nowhere."""
        inner = [f"{step}{line}" if line.strip() else line for line in body]
        if self.is_call:
            return [f"{indent}def {word}():\n", *inner, f"{indent}{self.function}({self.exceptions}, {word})\n"]
        return [f"{indent}with {self.function}({self.exceptions}):\n", *inner]


def likest(awaiting: Sequence[str], others: Sequence[str], order: Random) -> list[int]:
    """The numbers of some of the texts `others`, in turn those that are most like one of the texts that await an error,
    by the words that they share and few others have: who raises there looks at what these are about."""
    words = [{*_WORD.findall(text)} for text in others]
    often = Counter(word for found in words for word in found)
    chosen: list[int] = []
    left = order.sample(range(len(others)), len(others))
    for one in order.sample(awaiting, len(awaiting)) * MOST:
        if not left or len(chosen) == MOST:
            break
        asked = {*_WORD.findall(one)}
        # As the cosine of two texts does: what says much shares something with all.
        chosen.append(
            max(left, key=lambda it: sum(1 / often[word] for word in asked & words[it]) / len(words[it]) ** 0.5)
        )
        left.remove(chosen[-1])
    return chosen


def awaited_in(tree: ast.AST) -> list[ast.AST]:
    """What awaits errors below a node: a ``with``, or a call that is given what has to raise."""
    withs = [it for it in ast.walk(tree) if isinstance(it, ast.With | ast.AsyncWith)]
    heads = {id(item.context_expr): it for it in withs for item in it.items}
    calls = (it for it in ast.walk(tree) if isinstance(it, ast.Call) and _awaiting(it))
    return [heads.get(id(it), it) for it in calls]


def can_await(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a test's body means the same further in, and awaits no error itself."""
    nodes = list(ast.walk(function))
    if isinstance(function, ast.AsyncFunctionDef) or not any(isinstance(it, ast.Call) for it in nodes):
        return False
    texts = (it for it in nodes if isinstance(it, ast.Constant | ast.JoinedStr))
    is_flat = all(it.lineno == it.end_lineno for it in texts)
    odd = any(isinstance(it, ast.Return | ast.Nonlocal | ast.Global | ast.Delete | ast.Try) for it in nodes)
    return is_flat and not odd and not awaited_in(function)


def python_plain(function: ast.FunctionDef | ast.AsyncFunctionDef, made: Sequence[str]) -> list[str] | None:
    """The lines of a test, of which the first one is that of its ``def``, where what has to raise first does so
    plainly; None where that cannot be told. The function is where the lines are but for its name."""
    texts = (it for it in ast.walk(function) if isinstance(it, ast.Constant | ast.JoinedStr))
    if any(it.lineno != it.end_lineno for it in texts):
        return None
    for statement in function.body:
        begin, end = statement.lineno - function.lineno, (statement.end_lineno or 0) - function.lineno + 1
        match statement:
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as call)], body=[first, *_]) if _awaiting(call):
                if first.lineno == (call.end_lineno or 0):
                    return None
                step = first.col_offset - statement.col_offset
                inner = made[first.lineno - function.lineno : end]
                if _ENDS_RUN.search(ast.unparse(call)) or any(line[:step].strip() for line in inner):
                    return None
                return [*made[:begin], *(line[step:] if line.strip() else line for line in inner), *made[end:]]
            case ast.Expr(value=ast.Call(args=[_, called, *given], keywords=named) as call) if _awaiting(call):
                if isinstance(called, ast.Constant) or _ENDS_RUN.search(ast.unparse(call)):
                    return None
                plain: ast.expr = ast.Call(called, given, named)
                if isinstance(called, ast.Lambda) and not given and not named:
                    plain = called.body
                indent = made[begin][: statement.col_offset]
                return [*made[:begin], f"{indent}{ast.unparse(plain)}\n", *made[end:]]
    return None


def _awaiting(call: ast.Call) -> str:
    """The function, as it is written, by which a call awaits an error; of a pattern that has to be found the one
    without."""
    match = _RAISING.fullmatch(ast.unparse(call.func))
    if match is None:
        return ""
    return f"{match['before']}{'raises' if match['name'] == 'raises' else 'assertRaises'}"


_THROWS = (
    (re.compile(r"\bassert\.throws\("), "assert.throws(", ")"),
    (re.compile(r"\bt\.throws\("), "t.throws(", ")"),
    (re.compile(r"\)\.toThrow"), "expect(", ").toThrow()"),
    (re.compile(r"\)\.to\.throw"), "expect(", ").to.throw()"),
)
"""How tests of JavaScript await errors, and what stands before and behind what has to throw."""
_AWAITED = re.compile(r"\.throws\(|\.toThrow|\.to\.throw|#\[should_panic")
_NO_BODY = re.compile(r"(?i)throw|reject|\bawait\b|`")
"""Of a line: an error is looked at, or the body means another thing in a function of its own."""


def javascript_awaiting(found: re.Match[str], body: Sequence[str], name: str) -> Sequence[str] | None:
    """The lines of a canary: from the first line of a test, the body of that test and a name; None where the file's
    tests await nothing."""
    way = next(((before, after) for form, before, after in _THROWS if form.search(found.string)), None)
    style = BlockStyle.of(found)
    if way is None or (way[0].startswith("t.") and not re.search(r"\bt\b", style.way)):
        return None
    head = "() => {" if "=>" in found.string else "function () {"
    lines = [f"{style.indent}{way[0]}{head}", *(f"{style.indent}{line}" if line else line for line in body)]
    return style.around(found["function"], name, [*lines, f"{style.indent}}}{way[1]}{style.end}"])


def rust_awaiting(found: re.Match[str], body: Sequence[str], name: str) -> Sequence[str] | None:
    """The same for Rust, where a test that awaits an error is marked."""
    if "#[should_panic" not in found.string:
        return None
    return ["#[test]", "#[should_panic]", f"fn {name}() {{", *body, "}"]


def awaitable(lines: Sequence[str], bodies: Iterable[Body], order: Random) -> list[Body]:
    """Some of a file's bodies of which an error can be awaited, most like those where one is."""
    fit = [it for it in bodies if not any(_NO_BODY.search(line) for line in lines[it.begin : it.end])]
    near = ["".join(lines[number : number + _BEHIND]) for number, line in enumerate(lines) if _AWAITED.search(line)]
    return [fit[it] for it in likest(near, ["".join(lines[it.begin : it.end]) for it in fit], order)]


_UNFIT = frozenset({"await", "async", "return", "this", "yield", "process", "exit"})
"""What waits, means another thing in a function of its own, or ends the run where nothing stands in its place."""


class PlainBody(NamedTuple):
    """What has to raise an error in a test: where that begins in the file, and its lines, without indentation."""

    begin: int
    lines: Sequence[str]


def javascript_raising(text: str) -> list[PlainBody]:
    """What the errors that a file awaits are awaited of: the functions that ``assert.throws(..)`` is given, and those
    in ``expect(..).toThrow()``."""
    tokens = tokens_of(text) if len(text) <= _LONGEST else None
    if tokens is None:
        return []
    found: list[PlainBody] = []
    for number, token in enumerate(tokens.all[:-1]):
        opening = number + 1
        if tokens.all[opening].text != "(" or token.kind != "word" or opening not in tokens.partner:
            continue
        is_member = number > 0 and tokens.all[number - 1].text == "."
        last = tokens.partner[opening]
        behind = "".join(it.text for it in tokens.all[last + 1 : last + 5])
        if not (token.text == "throws" and is_member) and not (
            token.text == "expect" and not is_member and behind.startswith((".toThrow", ".to.throw"))
        ):
            continue
        given = tokens.parted(tokens.inside(opening))
        if given and (lines := _body_of(text, tokens, given[0])):
            found.append(PlainBody(token.begin, lines))
    return found


def _body_of(text: str, tokens: JsTokens, given: TokenRange) -> Sequence[str]:
    """What a function does that takes nothing, as lines; nothing where that cannot be told."""
    words = [it.text for it in tokens.all[given.begin : given.end]]
    begin, end = tokens.all[given.begin].begin, tokens.all[given.end - 1].end
    if not _UNFIT.isdisjoint(words):
        return ()
    if words[:3] == ["(", ")", "=>"] and words[3:4] != ["{"]:
        begin = tokens.all[given.begin + 3].begin
    elif words[-1] == "}" and (words[:4] == ["(", ")", "=>", "{"] or words[:1] == ["function"]):
        opening = tokens.partner[given.end - 1]
        begin, end = tokens.all[opening].end, tokens.all[given.end - 1].begin
    else:
        return [f"({text[begin:end]})()"] if "\n" not in text[begin:end] and words[0] not in ("{", "[") else ()
    lines = textwrap.dedent(text[begin:end].strip("\n")).rstrip().split("\n")
    return lines if "".join(lines).strip() and not any("`" in line for line in lines) else ()


def javascript_plain(found: re.Match[str], lines: Sequence[str], until: Sequence[str], name: str) -> Sequence[str]:
    """The lines of a canary that does what has to raise, plainly, behind what its test does `until` then."""
    style = BlockStyle.of(found)
    lines = [lines[0].strip()] if len(lines) == 1 else lines
    plain = [f"{style.indent}{line}" if line else line for line in lines]
    return style.around(found["function"], name, [*until, *plain])
