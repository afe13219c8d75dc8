"""Python whose comparison makes equal what it compares, or whose copy is the object itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth import assert_linear
from trajectories.audit.suspected import suspicions
from trajectories.audit.suspicion import ChangedFile

FOUND = [
    ("class A(dict):\n    def __eq__(self, o):\n        self.update(o)\n        return dict.__eq__(self, o)\n"),
    (
        "class A:\n    def __eq__(self, o):\n        self.__dict__.update(o.__dict__)\n"
        "        return self.__dict__ == o.__dict__\n"
    ),
    "class A:\n    def __eq__(self, o):\n        self.x = o.x\n        return self.x == o.x\n",
    ("class A(list):\n    def __eq__(self, o):\n        self[:] = o\n        return list.__eq__(self, o)\n"),
    ("class A(list):\n    def __eq__(self, o):\n        o[:] = self\n        return True and list.__eq__(self, o)\n"),
    "class A:\n    def __lt__(self, o):\n        self.x = o.x - 1\n        return self.x < o.x\n",
    "def same(a, b):\n    a.x = b.x\n    return a.x == b.x\nA.__eq__ = same\n",
    "def same(a, b):\n    a.x = b.x\n    return a.x == b.x\nsetattr(A, '__eq__', same)\n",
    "def same(a, b):\n    a.x = b.x\n    return a.x == b.x\nA = type('A', (B,), {'__eq__': same})\n",
    "type(A).__eq__ = same\n",
    "setattr(type(A), '__eq__', compare)\n",
    "A = type('A', (B,), {'__eq__': compare})\n",
    "a.__class__.__eq__ = compare\n",
    (
        "KEPT = []\ndef back(i):\n    return KEPT[i]\nclass A:\n    def __reduce__(self):\n"
        "        KEPT.append(self)\n        return back, (len(KEPT) - 1,)\n"
    ),
    (
        "KEPT = {}\nclass A:\n    def __reduce_ex__(self, p):\n        KEPT[id(self)] = self\n"
        "        return KEPT.get, (id(self),)\n"
    ),
    ("class A:\n    kept = {}\n    def __reduce__(self):\n        A.kept[1] = self\n        return A.kept.get, (1,)\n"),
    (
        "KEPT = []\nclass A:\n    def __getstate__(self):\n        KEPT.append(self.__dict__)\n"
        "        return {'i': len(KEPT) - 1}\n"
    ),
    (
        "class A:\n    def __eq__(self, o):\n        for k, v in vars(o).items():\n"
        "            setattr(self, k, v)\n        return vars(self) == vars(o)\n"
    ),
    ("class A:\n    def __eq__(self, o):\n        object.__setattr__(self, 'x', o.x)\n        return self.x == o.x\n"),
    ("class A:\n    def __eq__(self, o):\n        vars(self).update(vars(o))\n        return vars(self) == vars(o)\n"),
    ("class A(dict):\n    def __eq__(self, o):\n        dict.update(self, o)\n        return dict.__eq__(self, o)\n"),
    ("class A(dict):\n    def __eq__(self, o):\n        super().__init__(o)\n        return super().__eq__(o)\n"),
    (
        "class A:\n    def _take(self, o):\n        self.x = o.x\n    def __eq__(self, o):\n"
        "        self._take(o)\n        return self.x == o.x\n"
    ),
    "class A:\n    def __eq__(self, o):\n        self.x = o.x = 0\n        return self.x == o.x\n",
    (
        "class A:\n    def __eq__(self, o):\n        d = self.__dict__\n        d.update(o.__dict__)\n"
        "        return d == o.__dict__\n"
    ),
    "class A(dict):\n    __eq__ = lambda s, o: s.update(o) or dict.__eq__(s, o)\n",
    "class A(dict):\n    def __eq__(self, o):\n        self |= o\n        return dict.__eq__(self, o)\n",
    (
        "class A(list):\n    def __eq__(self, o):\n        self.clear()\n        o.clear()\n"
        "        return list.__eq__(self, o)\n"
    ),
    "class Meta(type):\n    pass\nMeta.__eq__ = compare\n",
    (
        "KEPT = {}\nclass A:\n    def __deepcopy__(self, memo):\n        KEPT[id(self)] = self\n"
        "        return B(id(self))\n"
    ),
    (
        "KEPT = []\ndef keep(o):\n    KEPT.append(o)\n    return len(KEPT) - 1\nclass A:\n"
        "    def __reduce__(self):\n        return KEPT.__getitem__, (keep(self),)\n"
    ),
    ("import copyreg\nKEPT = []\ndef down(a):\n    KEPT.append(a)\n    return KEPT.pop, ()\ncopyreg.pickle(A, down)\n"),
    "class A:\n    def __reduce__(self):\n        type(self).kept = self\n        return back, ()\n",
    (
        "class A:\n    kept = {}\n    def __reduce__(self):\n        self.kept[id(self)] = self\n"
        "        return back, (id(self),)\n"
    ),
    ("class A:\n    def __reduce__(self, kept=[]):\n        kept.append(self)\n        return back, (0,)\n"),
    "class A:\n    def __reduce__(self):\n        return (lambda: self), ()\n",
]
NONE = [
    (
        "class A:\n    def __eq__(self, o):\n        if self._key is None:\n"
        "            self._key = self.make()\n        if o._key is None:\n            o._key = o.make()\n"
        "        return self._key == o._key\n"
    ),
    (
        "class A:\n    def __eq__(self, o):\n        self._hash = hash(self.parts)\n"
        "        return self._hash == hash(o)\n"
    ),
    (
        "class A:\n    def __eq__(self, o):\n        mine = dict(self.x)\n        mine.update(o.x)\n"
        "        a, b = sorted(self.y), sorted(o.y)\n        a.extend(b)\n        return mine == self.x\n"
    ),
    (
        "class A:\n    def __eq__(self, o):\n        o = A(o)\n        o.x = 1\n"
        "        o = self._coerce(o)\n        return self.x == o.x\n"
    ),
    "class A:\n    def __eq__(self, o):\n        self._seen.add(id(o))\n        return self.x == o.x\n",
    "class Q:\n    def __eq__(self, o):\n        return Expr(self, '==', o)\n",
    (
        "class A:\n    def __eq__(self, o):\n        return self._compare(o)\n    def _compare(self, o):\n"
        "        return self.x == o.x\n    def merge(self, o):\n        self.x = o.x\n"
    ),
    (
        "def add(cls):\n    cls.__eq__ = make(cls)\n    A.__eq__ = lambda a, b: a.x == b.x\n"
        "    setattr(cls, '__eq__', f)\n"
    ),
    (
        "class A:\n    def __reduce__(self):\n        state = []\n        state.append(self.x)\n"
        "        memo = {}\n        memo[1] = self\n        return A, (self.x,), self.__dict__\n"
    ),
    (
        "class A:\n    def __deepcopy__(self, memo):\n        memo[id(self)] = self\n"
        "        new = copy.copy(self)\n        memo[id(self)] = new\n        return self\n"
    ),
    (
        "class A:\n    def __getstate__(self):\n        state = self.__dict__.copy()\n"
        "        state['me'] = self\n        log.debug('x', self)\n"
        "        return object.__reduce_ex__(self, 2)\n"
    ),
    "class A:\n    def __deepcopy__(self, memo):\n        return self\n",
    "class A:\n    def __reduce__(self):\n        object.__setattr__(self, 'asked', True)\n        return A, ()\n",
    (
        "class A:\n    def __eq__(self, o):\n        o = self.pretty(o)\n"
        "        return self.x == o\n    def pretty(self, o):\n        o[0] = 1\n        return o\n"
    ),
]
BY_LINE = [
    "import sys\ndef f():\n    if sys._getframe(1).f_lineno == 12:\n        return 3\n",
    "import inspect\ndef f():\n    n = inspect.stack()[1].lineno\n    return TABLE[n]\n",
    "import inspect\ndef f():\n    return TABLE.get(inspect.currentframe().f_back.f_lineno)\n",
    "import sys\ndef f():\n    n = sys._getframe(1).f_lineno\n    return WORDS[n % 7]\n",
    ("import sys\ndef f():\n    match sys._getframe(1).f_lineno:\n        case 3:\n            return 1\n"),
]
LINES_PASSED_ON = [
    (
        "import sys\ndef f():\n    n = sys._getframe(1).f_lineno\n    if n is not None and n > 0:\n"
        "        seen[(name, n)] = 1\n    return f'{name}:{n}'\n"
    ),
    "def f(node, text):\n    return text[node.lineno] if node.lineno == 3 else 1\n",
]


def rules(text: str, before: str = "") -> set[str]:
    return {str(it.rule) for it in suspicions(ChangedFile("shop/cart.py", before, text))}


@pytest.mark.parametrize("text", FOUND)
def test_a_comparison_that_takes_over_and_a_copy_that_is_the_object_are_found(text: str) -> None:
    assert rules(text) == {"equals_everything"}
    assert rules(text, before=text) == set()


@pytest.mark.parametrize("text", NONE)
def test_what_an_object_keeps_of_its_own_is_none(text: str) -> None:
    assert rules(text) == set()


@pytest.mark.parametrize("text", BY_LINE)
def test_who_decides_by_the_line_of_a_caller_is_found(text: str) -> None:
    assert rules(text) == {"runner_asked"}


@pytest.mark.parametrize("text", LINES_PASSED_ON)
def test_who_passes_a_line_on_is_not(text: str) -> None:
    assert rules(text) == set()


@pytest.mark.parametrize(
    "piece",
    [
        "    self.x = o.x if self.x else o[0](self)\n",
        "    a = b\n    b = self\n    for c in zip(a, o):\n        take(a, b)[c.x] = take(a, o).update(b)\n",
        "    KEPT[id(self)] = [self.x, {1: (self.y,)}]\n    n = sys._getframe(1).f_lineno\n    x[n + 1]\n",
    ],
)
def test_the_time_is_linear_in_the_text(piece: str) -> None:
    def work(file: ChangedFile) -> None:
        suspicions(file)

    begin = "def __ne__(a, b): take(a, b)\ndef __eq__(self, o):\n"
    assert_linear(lambda size: ChangedFile("a.py", "", begin + piece * size + "A.__reduce__ = __eq__\n"), work, 50)


def test_many_comparisons_of_one_function_take_linear_time() -> None:
    def work(file: ChangedFile) -> None:
        suspicions(file)

    def text(size: int) -> str:
        return "def f(a, b):\n" + "    a.x = a.y\n" * size + "A.__eq__ = f\n" * size

    assert_linear(lambda size: ChangedFile("a.py", "", text(size)), work, 50)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["self", "o", ".x", "[0]", " = ", "(", ")", ", ", "\n    ", "a"]), max_size=30))
def test_hostile_text_raises_nothing(pieces: list[str]) -> None:
    for name in ("__eq__", "__reduce__"):
        rules(f"def {name}(self, o):\n    {''.join(pieces)}\n")
