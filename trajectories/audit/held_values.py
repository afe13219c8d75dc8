"""What names of JavaScript and TypeScript come to hold: prototypes that are not the file's own, stacks, loaders.

A text's tokens are gone through once, from the first to the last. An expression is what its steps make of its
beginning (``[].constructor.prototype``), whatever it is written with, and a name holds what was given to it last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum, auto
from itertools import accumulate
from typing import NamedTuple

from environments.suites.canaries.jstokens import DECLARING, JsToken, JsTokens, TokenRange, tokens_of
from trajectories.audit.suspicion import ChangedFile, Suspicion, SuspicionRule


class _Kind(Enum):
    """What an expression is, as far as its text tells."""

    UNKNOWN = auto()
    OWN = auto()
    """Of the file itself: ``this``, its classes, what they make, their prototypes."""
    LITERAL = auto()
    """A value whose class is the language's own."""
    NAMED = auto()
    """A built-in by its name, as a polyfill has it."""
    NAMED_PROTOTYPE = auto()
    REACHED = auto()
    """A built-in that is reached by a value, or that got another name."""
    REACHED_PROTOTYPE = auto()
    CLASS = auto()
    """The class of an unknown value, which may be the file's own."""
    UPWARDS = auto()
    """What gives the prototype of its argument."""
    WRITER = auto()
    """What changes its first argument."""
    READER = auto()
    """What reads hidden properties of its first argument."""
    CAPTURE = auto()
    ERROR = auto()
    """An error that the file makes itself: its stack tells who calls."""
    STACK = auto()
    SEARCH = auto()
    """What looks for something in a stack that it is a part of."""
    MATCHER = auto()
    """What looks for something in its first argument."""
    WHOLE = auto()
    REFLECT = auto()
    PROCESS = auto()
    MODULE = auto()
    REQUIRE = auto()
    LOADER = auto()
    INSIDES = auto()
    """Parts of Node and of its loader that are nobody's interface."""


_K = _Kind
_BUILTINS = frozenset(
    [
        *["Object", "Array", "String", "Number", "Boolean", "Function", "Promise", "Map", "Set", "WeakMap", "WeakSet"],
        *["RegExp", "Date", "Error", "TypeError", "RangeError", "Symbol", "JSON", "Math", "Buffer", "Iterator"],
        *["BigInt", "ArrayBuffer", "Uint8Array", "Proxy"],
    ]
)
_WORDS = {
    "this": _K.OWN,
    "super": _K.OWN,
    "Reflect": _K.REFLECT,
    "process": _K.PROCESS,
    "module": _K.MODULE,
    "require": _K.REQUIRE,
    **dict.fromkeys(["globalThis", "global", "window", "self"], _K.WHOLE),
    **dict.fromkeys(_BUILTINS, _K.NAMED),
}
_WRITERS = frozenset({"assign", "defineProperty", "defineProperties", "setPrototypeOf"})
_BY_VALUE_ALONE = frozenset({"assign", "defineProperty", "defineProperties"})
"""With a built-in that is called by its name, as polyfills do, these are left to `trajectories.audit.new_means`."""
_READERS = frozenset({"getOwnPropertyNames", "ownKeys", "getOwnPropertyDescriptor", "getOwnPropertyDescriptors"})
_SEARCHES = frozenset({"includes", "indexOf", "lastIndexOf", "search", "match", "matchAll", "split"})
_OF_FUNCTIONS = {
    "getPrototypeOf": _K.UPWARDS,
    "captureStackTrace": _K.CAPTURE,
    **dict.fromkeys(_WRITERS, _K.WRITER),
    **dict.fromkeys(_READERS, _K.READER),
    **dict.fromkeys(["test", "exec"], _K.MATCHER),
}
_OF_MODULES = {"module": _K.LOADER, "process": _K.PROCESS}
_OTHERS = frozenset({_K.REACHED, _K.REACHED_PROTOTYPE, _K.LOADER})
"""Written to, these change what others use."""
_ASSIGNS = frozenset({"=", "+=", "||=", "&&=", "??="})
_NO_VALUE = frozenset(
    {"===", "!==", "==", "!=", "+", "-", "*", "/", "<", ">", "<=", ">=", "?", "&&", "in", "instanceof"}
)
"""Behind an expression: the whole is something else."""
_CONTROLS = frozenset({"if", "for", "while", "with", "switch", "catch"})
_BEFORE_VALUE = frozenset({"return", "typeof", "delete", "void", "throw", "await", "yield", "else", "do", "in", "of"})
_DEEPEST = 5
_MOST_TOKENS = 40
"""Of what is looked at as one: the words of parameters, of an import, of a key."""
_LONGEST_QUOTE = 200
_MOST_LINES = 20
_WORTH = (
    "prototype",
    "Prototype",
    "__proto__",
    "constructor",
    "tack",
    "Reflect",
    "require",
    "module",
    "inding",
    "roperty",
)


class _StepTaken(NamedTuple):
    """An expression after a step: what it is, what the step was taken of, the name of the step, where that begins, the
    token behind it, and the lines that gave the names in it."""

    kind: _Kind
    base: _Kind
    key: str
    begin: int
    end: int
    since: tuple[int, ...] = ()


class _Held(NamedTuple):
    kind: _Kind
    line: int


def held_suspicions(file: ChangedFile) -> Iterator[Suspicion]:
    """What a file does with what its names hold. Pure, raises nothing, takes time linear in the text."""
    if not any(word in file.after for word in _WORTH):
        return
    tokens = tokens_of(file.after)
    names: dict[str, _Held] = {}
    if tokens is not None:
        yield from _HeldReading(file, tokens, file.after, names, 1).found()
        return
    for number, line in enumerate(file.lines, 1):  # groups that do not close, or seem so: each line by itself
        tokens = tokens_of(line) or tokens_of(line + _closing(line))
        if tokens is not None:
            yield from _HeldReading(file, tokens, line, names, number).found()


def _closing(line: str) -> str:
    """What closes the groups that a line leaves open."""
    opened: list[str] = []
    for sign in line:
        if sign in "([{":
            opened.append({"(": ")", "[": "]", "{": "}"}[sign])
        elif opened and sign == opened[-1]:
            opened.pop()
    return "".join(reversed(opened))


def _part(kind: _Kind, key: str) -> _Kind:
    """What a part of something is."""
    match kind, key:
        case _K.OWN, "constructor" | "prototype" | "__proto__":
            return _K.OWN
        case _K.MODULE, "constructor":
            return _K.LOADER
        case _K.UNKNOWN, "constructor":
            return _K.CLASS
        case _, "constructor":
            return _K.REACHED
        case _K.NAMED, "prototype":
            return _K.NAMED_PROTOTYPE
        case ((_K.REACHED | _K.CLASS | _K.LOADER), "prototype"):
            return _K.REACHED_PROTOTYPE
        case _, "prototype":
            return _K.OWN
        case _, "__proto__":
            return _K.REACHED_PROTOTYPE
        case _K.ERROR, "stack":
            return _K.STACK
        case _K.STACK, _ if key in _SEARCHES:
            return _K.SEARCH
        case _K.WHOLE, _:
            return _WORDS.get(key, _K.UNKNOWN)
        case _K.REFLECT, "set":
            return _K.WRITER
        case _K.REFLECT, "get":
            return _K.READER
        case (_K.PROCESS, "binding" | "_linkedBinding") | (_K.REQUIRE, "cache"):
            return _K.INSIDES
        case _K.LOADER, _:
            return _K.INSIDES if key.startswith("_") else _K.LOADER if key in {"Module", "default"} else _K.UNKNOWN
    return _OF_FUNCTIONS.get(key, _K.UNKNOWN)


class _HeldReading:
    """One way through the tokens of a text."""

    def __init__(
        self, file: ChangedFile, tokens: JsTokens, text: str, names: dict[str, _Held], first_line: int
    ) -> None:
        self._file, self._tokens, self._text, self._names = file, tokens, text, names
        self._begins = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._first_line = first_line
        self._undone: list[tuple[str, _Held | None]] = []
        self._blocks: list[int] = []
        self._coming: dict[int, list[tuple[str, _Kind]]] = {}
        """By the token that opens a block: what its function's parameters hold."""
        self._suspected: list[Suspicion] = []

    def found(self) -> list[Suspicion]:
        """The suspicions, in the order of the tokens."""
        for number in range(len(self._tokens.all)):
            self._names_change(number)
            if self._begins_value(number):
                self._judge(number)
        return self._suspected

    def _at(self, number: int) -> JsToken:
        every = self._tokens.all
        return every[number] if 0 <= number < len(every) else JsToken("", len(self._text), "sign")

    def _line(self, number: int) -> int:
        return self._first_line - 1 + bisect_right(self._begins, self._at(number).begin)

    def _begins_after(self, place: int) -> int:
        """Where the line ends that a place is in."""
        number = bisect_right(self._begins, place)
        return self._begins[number] if number < len(self._begins) else len(self._text)

    # What names hold.

    def _names_change(self, number: int) -> None:
        token, before = self._at(number), self._at(number - 1)
        if token.kind == "word":
            self._declared(number)
        elif token.text in ("{", "${"):
            self._blocks.append(len(self._undone))
            for name, kind in self._coming.pop(number, ()):
                self._hold(name, kind, number, inner=True)
        elif token.text == "}" and self._blocks:
            begin = self._blocks.pop()
            for name, held in reversed(self._undone[begin:]):
                if held is None:
                    self._names.pop(name, None)
                else:
                    self._names[name] = held
            del self._undone[begin:]
        elif token.text == "(" and (body := self._body(number)) is not None:
            self._coming[body] = list(self._parameters(self._tokens.inside(number)))
        elif token.text == "=>" and before.kind == "word" and self._at(number + 1).text == "{":
            self._coming[number + 1] = [(before.text, _K.UNKNOWN)]
        elif token.text == "=" and before.kind == "word" and self._at(number - 2).text not in (".", "?."):
            self._hold(before.text, self._given(number + 1), number, inner=self._at(number - 2).text in DECLARING)
        elif token.text == "=" and before.text == "}":
            begin = self._tokens.partner[number - 1]
            for name, kind in self._pattern(begin, self._given(number + 1)):
                self._hold(name, kind, number, inner=self._at(begin - 1).text in DECLARING)

    def _declared(self, number: int) -> None:
        word, following = self._at(number).text, self._at(number + 1)
        if word in DECLARING and self._at(number + 2).text == ":":
            value = self._tokens.declared_value(number + 1, min(number + _MOST_TOKENS, len(self._tokens.all)))
            self._hold(following.text, self._given(value) if value else _K.UNKNOWN, number, inner=True)
        elif word in ("class", "function") and following.kind == "word":
            self._hold(following.text, _K.OWN if word == "class" else _K.LITERAL, number, inner=True)
        elif word == "try" and self._at(number + 2).text == "throw":  # thrown to be looked at
            end = self._tokens.partner.get(number + 1, number)
            if self._at(end + 1).text == "catch" and self._at(end + 5).text == "{":
                self._coming[end + 5] = [(self._at(end + 3).text, _K.ERROR)]
        elif word == "import" and following.text != "(":
            words = [self._at(it) for it in range(number + 1, number + _MOST_TOKENS)]
            source = next((it for it in words if it.kind == "text"), None)
            kind = _OF_MODULES.get(source.text[1:-1].removeprefix("node:"), _K.UNKNOWN) if source else _K.UNKNOWN
            for it in words[: words.index(source)] if source else ():
                if it.kind == "word":
                    self._hold(it.text, kind, number, inner=False)

    def _hold(self, name: str, kind: _Kind, number: int, *, inner: bool) -> None:
        if name not in _WORDS:  # another name for it
            kind = {_K.NAMED: _K.REACHED, _K.NAMED_PROTOTYPE: _K.REACHED_PROTOTYPE}.get(kind, kind)
        if kind is _K.INSIDES:
            self._suspect(SuspicionRule.RUNNER_REACHED, number, _StepTaken(kind, kind, "", number, number + 1))
        if inner and self._blocks:
            self._undone.append((name, self._names.get(name)))
        self._names[name] = _Held(kind, self._line(number))

    def _given(self, number: int) -> _Kind:
        value = self._value(number)
        following = self._at(value.end)
        if following.text == "=>":  # a function, which may give the prototype of what it is given
            given = self._value(value.end + 1, 1).kind
            return _K.UPWARDS if given is _K.REACHED_PROTOTYPE else _K.UNKNOWN
        return _K.UNKNOWN if following.text in _NO_VALUE else value.kind

    def _body(self, number: int) -> int | None:
        """The token that opens the body of the function whose parameters these are."""
        end, before = self._tokens.partner[number], self._at(number - 1)
        if self._at(end + 1).text == "=>":
            return end + 2
        is_function = before.kind == "word" and before.text not in _CONTROLS - {"catch"}
        return end + 1 if is_function and self._at(end + 1).text == "{" and end + 1 not in self._coming else None

    def _parameters(self, part: TokenRange) -> Iterator[tuple[str, _Kind]]:
        for number in self._tokens.outer(TokenRange(part.begin, min(part.end, part.begin + _MOST_TOKENS))):
            if self._at(number).text == "{":
                yield from self._pattern(number, _K.UNKNOWN)
            elif self._at(number).kind == "word":
                yield self._at(number).text, _K.UNKNOWN

    def _pattern(self, opening: int, kind: _Kind, depth: int = 0) -> Iterator[tuple[str, _Kind]]:
        """The names that a pattern gives to parts of something."""
        for part in self._tokens.parted(self._tokens.inside(opening)) if depth < _DEEPEST else ():
            key, behind = self._key(part.begin)
            value = behind + 1 if self._at(behind).text == ":" else part.begin
            if self._at(value).text == "{" and value < part.end:
                yield from self._pattern(value, _part(kind, key), depth + 1)
            elif self._at(value).kind == "word":
                yield self._at(value).text, _part(kind, key)

    def _key(self, number: int) -> tuple[str, int]:
        """A key of an object, empty where it is computed, and the token behind it."""
        token = self._at(number)
        if token.text != "[" or token.kind != "sign":
            return (token.text[1:-1] if token.kind == "text" else token.text), number + 1
        part = self._tokens.inside(number)
        return self._joined(part), part.end + 1

    def _joined(self, part: TokenRange) -> str:
        """A text that is written in one piece or in several; empty for anything else."""
        pieces = [self._at(it) for it in range(part.begin, min(part.end, part.begin + _MOST_TOKENS))]
        is_text = all(it.kind == "text" if at % 2 == 0 else it.text == "+" for at, it in enumerate(pieces))
        return "".join(it.text[1:-1] for it in pieces[::2]) if is_text else ""

    # What expressions are.

    def _begins_value(self, number: int) -> bool:
        token, before = self._at(number), self._at(number - 1)
        if before.text in (".", "?.", "as") or token.text in ("{", "${", "as"):
            return False
        if token.kind != "sign":
            return True
        if before.text == ")":  # behind a condition
            return token.text in ("(", "[") and self._at(self._tokens.partner[number - 1] - 1).text in _CONTROLS
        ends_value = before.text == "]" or (before.kind != "sign" and before.text not in _BEFORE_VALUE)
        return token.text in ("(", "[") and not ends_value

    def _value(self, number: int, depth: int = 0) -> _StepTaken:
        """The expression that begins at a token."""
        *_, whole = self._steps(number, depth)
        return whole

    def _steps(self, number: int, depth: int = 0) -> Iterator[_StepTaken]:
        """The expression that begins at a token: its beginning, and what each step makes of it."""
        kind, end, since = self._beginning(number, depth)
        begin, base, key = number, _K.UNKNOWN, ""
        while True:
            yield _StepTaken(kind, base, key, begin, end, since)
            if depth > _DEEPEST:
                return
            while self._at(end).text == "as" or (
                self._at(end).text in ("!", "?.") and self._at(end + 1).text in (".", "[", "(", ")", ";", ",", "=")
            ):
                is_type, end = self._at(end).text == "as", end + 1
                while is_type and (self._at(end).kind == "word" or self._at(end).text == "."):
                    end += 1
            begin, token = end, self._at(end)
            if token.text in (".", "?.") and self._at(end + 1).kind == "word":
                base, key, end = kind, self._at(end + 1).text, end + 2
                kind = _part(base, key)
            elif token.text == "[" and token.kind == "sign":
                base = kind
                key, end = self._key(end)
                kind = _part(base, key)
            elif token.text == "(":
                base, kind = kind, self._answer(kind, end, depth)
                end = self._tokens.partner[end] + 1
            else:
                return

    def _beginning(self, number: int, depth: int) -> tuple[_Kind, int, tuple[int, ...]]:
        token = self._at(number)
        if depth > _DEEPEST:
            return _K.UNKNOWN, number + 1, ()
        if token.text in ("[", "{", "`") and token.kind == "sign":
            return _K.LITERAL, self._tokens.partner.get(number, number) + 1, ()
        if token.text == "(":
            end = self._tokens.partner[number] + 1
            if self._at(end).text == "=>":
                return _K.LITERAL, end, ()
            inner = self._value(number + 1, depth + 1)
            is_whole = self._at(inner.end).text not in _NO_VALUE
            return inner.kind if is_whole else _K.UNKNOWN, end, inner.since
        if token.kind in ("text", "number", "regex"):
            return _K.LITERAL, number + 1, ()
        if token.text in ("await", "async") and self._at(number + 1).text != "=>":
            return self._beginning(number + 1, depth + 1)
        if token.text == "new":
            made, end, since = self._beginning(number + 1, depth + 1)
            if made is _K.NAMED:
                made = _K.ERROR if self._at(number + 1).text.endswith("Error") else _K.LITERAL
            else:
                made = _K.LITERAL if made is _K.REACHED else _K.OWN
            return made, self._tokens.partner[end] + 1 if self._at(end).text == "(" else end, since
        if token.text == "function":
            for opening in range(number + 1, number + _MOST_TOKENS):
                if self._at(opening).text == "(":
                    end = self._tokens.partner[opening] + 1
                    return _K.LITERAL, self._tokens.partner[end] + 1 if self._at(end).text == "{" else end, ()
        if self._at(number + 1).text == "=>":
            return _K.LITERAL, number + 1, ()
        if held := self._names.get(token.text):
            return held.kind, number + 1, (held.line,)
        default = _OF_FUNCTIONS.get(token.text, _K.UNKNOWN)
        return _WORDS.get(token.text, default if default is not _K.MATCHER else _K.UNKNOWN), number + 1, ()

    def _answer(self, kind: _Kind, opening: int, depth: int) -> _Kind:
        """What a call gives."""
        match kind:
            case _K.UPWARDS:
                own = self._value(opening + 1, depth + 1).kind is _K.OWN
                return _K.OWN if own else _K.REACHED_PROTOTYPE
            case _K.NAMED if self._at(opening - 1).text.endswith("Error"):
                return _K.ERROR
            case _K.REQUIRE:
                name = self._at(opening + 1).text[1:-1].removeprefix("node:")
                return _OF_MODULES.get(name, _K.UNKNOWN)
        return _K.UNKNOWN

    # What is suspected.

    def _judge(self, number: int) -> None:
        """Look at each step of the expression that begins at a token."""
        is_deleted = self._at(number - 1).text == "delete"
        for step in self._steps(number):
            if self._at(step.begin).text == "(" and step.begin > number:
                self._judge_call(number, step)
                continue
            following = self._at(step.end).text
            is_written = following in _ASSIGNS or is_deleted or step.key.startswith("__define")
            if step.begin == number:
                named = self._at(number).text.strip("'\"`")
                if named == "prepareStackTrace" and following in {*_ASSIGNS, ":", ",", "("}:
                    self._suspect(SuspicionRule.RUNNER_REACHED, number, step)
            elif step.kind is _K.INSIDES or (is_written and step.key == "prepareStackTrace"):
                self._suspect(SuspicionRule.RUNNER_REACHED, number, step)
            elif is_written and step.base in _OTHERS:
                self._suspect(SuspicionRule.MACHINERY_REPLACED, number, step)
            elif self._at(step.begin).text == "[" and not is_written and self._is_veiled(step):
                self._suspect(SuspicionRule.RUNNER_REACHED, number, step)

    def _is_veiled(self, step: _StepTaken) -> bool:
        """Whether a key in brackets hides that it asks for a stack."""
        inside = self._tokens.inside(step.begin)
        if any(self._at(it).text in _READERS for it in range(*inside)[:_MOST_TOKENS]):
            return True
        return (step.key == "stack" and inside.end - inside.begin > 1) or (not step.key and step.base is _K.ERROR)

    def _judge_call(self, number: int, step: _StepTaken) -> None:
        if step.base is _K.SEARCH:
            self._suspect(SuspicionRule.RUNNER_ASKED, number, step)
        if step.base not in (_K.WRITER, _K.READER, _K.MATCHER, _K.CAPTURE):
            return
        arguments = self._tokens.inside(step.begin)
        first, parts = self._value(arguments.begin), self._tokens.parted(arguments)
        step = step._replace(end=step.begin, since=(*step.since, *first.since))
        match step.base, first.kind:
            case _K.CAPTURE, kind if kind is not _K.OWN and first.end == arguments.begin + 1:
                self._hold(self._at(arguments.begin).text, _K.ERROR, number, inner=False)
            case _K.READER, kind if kind is _K.ERROR or "stack" in map(self._joined, parts[1:2]):
                self._suspect(SuspicionRule.RUNNER_REACHED, number, step)
            case _K.MATCHER, _K.STACK:
                self._suspect(SuspicionRule.RUNNER_ASKED, number, step)
            case _K.WRITER, kind if kind in _OTHERS:
                self._suspect(SuspicionRule.MACHINERY_REPLACED, number, step)
            case _K.WRITER, _K.NAMED | _K.NAMED_PROTOTYPE if step.key not in _BY_VALUE_ALONE:
                self._suspect(SuspicionRule.MACHINERY_REPLACED, number, step)

    def _suspect(self, rule: SuspicionRule, number: int, whole: _StepTaken) -> None:
        first = self._line(whole.begin)
        lines = range(first, min(self._line(whole.end - 1) + 1, first + _MOST_LINES))
        line = next((it for it in (self._line(number), *lines, *whole.since) if it in self._file.added), None)
        if line is not None:
            begin, end = self._at(number).begin, self._begins_after(self._at(whole.end - 1).end)
            quote = self._text[begin : min(end, begin + _LONGEST_QUOTE)].strip()
            self._suspected.append(Suspicion(rule, self._file.path, line, self._file.lines[line - 1].strip(), (quote,)))
