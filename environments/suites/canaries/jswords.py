"""What the assertions of JavaScript are called, and what else stands in its tests. Pure."""

from __future__ import annotations

import re


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPARING = words(
    """equal equals isEqual strictEqual strictEquals deepEqual deepEquals deepStrictEqual looseEqual deepLooseEqual same
    strictSame is eq eql sameValue like partialDeepStrictEqual propEqual assertEqual assertEquals assertStrictEquals"""
)
"""Methods that compare their first two arguments."""
COMPARING_ALONE = words(
    """equal strictEqual deepEqual deepStrictEqual eq assertEqual assertEquals assertStrictEquals isDeepStrictEqual
    isEqual"""
)
"""Those that are functions, too."""
HOLDING = words("ok assert true truthy isTrue assertTrue")
"""Ask whether a condition holds."""
AWAITING = words("throws rejects")
THROWING = AWAITING | {"throwsAsync"}
MATCHING = words("match regex matches")
VALUE = words("toBe toEqual toStrictEqual toMatchObject equal equals eq eql eqls deepEqual exactly is")
"""Compare the value of a chain with their first argument."""
SIZES = {
    "toHaveLength": ("length",),
    "lengthOf": ("length",),
    "length": ("length",),
    "toHaveBeenCalledTimes": ("mock", "calls", "length"),
    "toBeCalledTimes": ("mock", "calls", "length"),
}
"""Compare a part of that value."""
PROPERTIES = words("toHaveProperty property ownProperty")
CALLS = words(
    """toHaveBeenCalledWith toBeCalledWith toHaveBeenLastCalledWith lastCalledWith toHaveBeenNthCalledWith nthCalledWith
    toHaveReturnedWith toHaveLastReturnedWith toHaveBeenCalledExactlyOnceWith toHaveBeenExactlyOnceCalledWith"""
)
"""Compare with calls of a mock: their masks are asymmetric matchers."""
NEAR = {"toBeCloseTo": "digits", "closeTo": "delta", "approximately": "delta"}
"""Ask for a number that is near another, by a rule of `environments.suites.canaries.nearness`."""
DEFAULT_DIGITS = "2"
"""Of `toBeCloseTo`: https://jestjs.io/docs/expect#tobeclosetonumber-numdigits"""
CONTAINING = words("toContain toMatch include includes contain contains")
ERRORS = words("toThrow toThrowError throw throws rejectedWith")
SNAPSHOTS = words("toMatchInlineSnapshot toMatchSnapshot")
"""Compare that value with a text that stands there, or in a file beside the test's."""
SUBJECT_STAYS = words("a an instanceof instanceOf include contain match ok above below")
"""Calls of a chain after which it is still about the same value."""
WAITING = words("resolves rejects eventually")
CONSTANTS = words("true false null")
PARTIAL = words("like partialDeepStrictEqual toMatchObject")
"""Ask for some of the parts of a value."""
WRITTEN = words("[ ] { } , : - +")
"""Signs of a list or an object of literals."""
MODIFIERS = words("only serial concurrent")
NO_CALLEES = words("await return typeof new delete void yield in of throw case")
NO_STATEMENT = words("( , [ = + - * / % ? . ?. ! & | ^ < > == === != !== <= >= ... ${")
"""What stands before a part of an expression."""
IMPRECISE = words("? || ?? | & ^ , = => += -=")
"""Bind less than a comparison."""
CALLBACKS = words("done cb callback next fn end")
SHOWN_AS_IT_IS = re.compile(r"0|[1-9][0-9]{0,14}")
NUMBER = re.compile(r"[-+]?(?:0[xXoObB][0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+)")
"""A number that is written as Python writes it."""
LONGEST_CHAIN = 60
"""Members and calls of a chain that are looked at."""
SAME_REGEX = re.compile(
    r"(?:[^\\(){}\[\]]|\\[^\W\dkpPuUxXcAZzGNaegRvhHoQE_]|\\[^\w]|\((?!\?)|\(\?:|[){}]|\[[^\\\[\]&|~]+\])+"
)
"""A regular expression that means the same in JavaScript and in Python."""
