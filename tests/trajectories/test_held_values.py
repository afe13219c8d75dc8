"""What names of JavaScript come to hold: prototypes of others that are written to, own stacks, loaders."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth import assert_linear
from trajectories.audit.suspected import excused, suspicions
from trajectories.audit.suspicion import ChangedFile

FOUND = [
    ("machinery_replaced", "const up = (it) => it.constructor.prototype; up([]).map = lie\n"),
    ("machinery_replaced", "const {constructor: {prototype: p}} = []; Object.assign(p, {forEach() { return 1 }})\n"),
    (
        "machinery_replaced",
        "const { constructor: { prototype: bottom } } = [];\nObject.assign(bottom, { forEach() {} });\n",
    ),
    ("machinery_replaced", "Object.getPrototypeOf(['']).forEach = () => {}\n"),
    ("machinery_replaced", "Object.getPrototypeOf('').trim = () => {}\n"),
    ("machinery_replaced", "[].__proto__.map = () => []\n"),
    ("machinery_replaced", "(function(){}).constructor.prototype.call = lie\n"),
    ("machinery_replaced", "(() => {}).constructor.prototype.call = lie\n"),
    ("machinery_replaced", "Reflect.set(Object.getPrototypeOf(x), 'then', lie)\n"),
    ("machinery_replaced", "const P = fsp.stat('.').constructor; Object.assign(P.prototype, { then() {} })\n"),
    ("machinery_replaced", "const P = fsp.stat('.').constructor\nObject.assign(P.prototype, { then() {} })\n"),
    ("machinery_replaced", "Object.defineProperty(Object.getPrototypeOf(list), 'map', { value: lie })\n"),
    ("machinery_replaced", "Object.setPrototypeOf(Array.prototype, mine)\n"),
    ("machinery_replaced", "const {constructor: C} = {}; Object.assign(C, {is: () => true})\n"),
    ("machinery_replaced", "const {constructor: C} = {}; C.is = () => true\n"),
    ("machinery_replaced", "const p = Array.prototype; p.map = lie\n"),
    ("machinery_replaced", "const A = [].constructor; A.prototype.map = lie\n"),
    ("machinery_replaced", "const p = Object.getPrototypeOf(['']);\np.forEach = lie;\n"),
    ("machinery_replaced", "const AP = (async () => {})().constructor;\nAP.prototype.then = lie;\n"),
    (
        "machinery_replaced",
        "const IP = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));\nIP.next = lie;\n",
    ),
    ("machinery_replaced", "new Map().__proto__.get = lie\n"),
    ("machinery_replaced", "[]['constructor'].prototype.map = lie\n"),
    ("machinery_replaced", "Reflect.getPrototypeOf([]).map = lie\n"),
    ("machinery_replaced", "function f({ constructor: { prototype: p } }) { p.map = lie }\nf([])\n"),
    ("runner_reached", "const s = err[Object.getOwnPropertyNames(err)[0]]\n"),
    ("runner_reached", "Reflect.get(e, 'st' + 'ack')\n"),
    ("runner_reached", "Error.prepareStackTrace = (e, s) => s\n"),
    ("runner_asked", "const at = /:(\\d+):/.exec(new Error().stack)[1]\n"),
    ("runner_asked", "const at = new Error().stack.split('\\n')[2].match(/:(\\d+)/)[1]\n"),
    ("runner_reached", "const k = 'stack'; const at = new Error()[k]\n"),
    ("runner_reached", "Object.getOwnPropertyDescriptors(new Error('x'))\n"),
    ("runner_reached", "import inspector from 'node:inspector'\n"),
    ("runner_reached", "const { Session } = require('inspector')\n"),
    ("runner_reached", "const i = process.getBuiltinModule('inspector')\n"),
    ("runner_reached", "process.binding('util')\n"),
    ("runner_reached", "process._linkedBinding('x')\n"),
    ("runner_reached", "module.constructor._load = lie\n"),
    ("runner_reached", "const fs = module.constructor._load('fs')\n"),
    ("machinery_replaced", "module.constructor.prototype.require = lie\n"),
    ("machinery_replaced", "require.cache[require.resolve('assert')].exports = lie\n"),
    ("runner_reached", "const {cache} = require; delete cache[key]\n"),
    ("runner_reached", "const c = require.cache; c[k] = lie\n"),
    ("runner_reached", "for (const k in require.cache) {}\n"),
    ("runner_reached", "require('module')._load\n"),
    ("machinery_replaced", "const p = ([] as any)!.__proto__!; p.map = lie\n"),
    ("machinery_replaced", "if (x) [].__proto__.map = lie\n"),
    ("machinery_replaced", "if (x) /[(]/.test(y)\n[].__proto__.map = () => {\n return 1 }\n"),
    ("machinery_replaced", "if (x) /[(]/.test(y)\nconst p = [].__proto__;\nObject.assign(p, {\n map() {} })\n"),
    ("machinery_replaced", "const M = require('node:module')\nM.prototype.require = lie\n"),
    ("runner_reached", "import M from 'module'\nM._cache[k].exports = lie\n"),
    ("runner_asked", "const {stack} = new Error()\nif (stack.includes('x')) go()\n"),
    ("runner_asked", "const e = new Error()\nconst at = e.stack\nif (/x:3/.test(at)) go()\n"),
    ("runner_asked", "try { throw new Error() } catch (e) { at = e.stack.split('\\n') }\n"),
    ("runner_asked", "const o = {}; Error.captureStackTrace(o)\nuse(o.stack.match(/:(\\d+)/))\n"),
    ("machinery_replaced", "[].__proto__.__defineGetter__('x', lie)\n"),
    ("runner_reached", "const {constructor: E} = new Error(); E.prepareStackTrace = lie\n"),
    ("runner_reached", "Object.assign(Error, { prepareStackTrace: (e, s) => s })\n"),
    ("machinery_replaced", "function f() {}\nf.constructor.prototype.call = lie\n"),
    ("machinery_replaced", "let p; { p = [].__proto__ } p.map = lie\n"),
    ("machinery_replaced", "const up = Object.getPrototypeOf; up([]).map = lie\n"),
    ("machinery_replaced", "const { getPrototypeOf: up, assign: put } = Object\nput(up([]), lies)\n"),
]
NONE = [
    "const kind = (it) => it.constructor; kind(x).y = 1; const up = (it) => Object.getPrototypeOf(it); keys(up(x))\n",
    "Object.assign(Foo.prototype, mixin)\nFoo.prototype.bar = 1\nconst p = Foo.prototype; p.x = 1\n",
    "this.constructor.cache = {}; const C = this.constructor; C.prototype.x = 1; C.y = 1\n",
    "Object.getPrototypeOf(this).x = 1; const self = this; self.constructor.prototype.x = 1\n",
    "Object.getPrototypeOf(new Foo()).x = 1; const f = new Foo(); f.constructor.x = 1\n",
    "const p = Object.getPrototypeOf(x); if (p === Array.prototype) p2.map = 1; keys(p)\n",
    (
        "const p = Object.getPrototypeOf(x)\nfunction g(p) { p.x = 1 }\nlist.forEach((p) => { p.y = 2 })\n"
        "list.map(p => { p.z = 1 })\n"
    ),
    "if (a) { const p = Object.getPrototypeOf(x); read(p) }\np.x = 1\n",
    "obj.constructor.cache = 1\n",
    "if (!String.prototype.at) String.prototype.at = f; Object.assign(Array.prototype, { a: 1 })\n",
    "Object.create(Foo.prototype, { constructor: { value: Foo } }); Foo.prototype.x = 1\n",
    "Object.setPrototypeOf(Foo.prototype, Bar.prototype); Object.setPrototypeOf(Foo, Bar)\n",
    ("class Map {}\nconst M = Map; M.prototype.x = 1; Object.setPrototypeOf(Map.prototype, Foo.prototype)\n"),
    "const err = new Error(text); err.code = 1; err[key] = value; Error.captureStackTrace(this, Foo); log(err.stack)\n",
    ("const err = new TypeError(t)\nif (Error.captureStackTrace) Error.captureStackTrace(err, f)\nthrow err\n"),
    "try { run() } catch (e) { lines = e.stack.split('\\n') }\n",
    "require.resolve('x'); module.exports = 1; process.on('x', y); module.constructor\n",
    "Foo.prototype.__proto__ = Bar.prototype; req.__proto__ = app\n",
    "const next = Object.create(Object.getPrototypeOf(x)); next.type = 1\n",
    "Object.getOwnPropertyNames(obj).forEach(k => { out[k] = obj[k] })\n",
    "const p: any = {}; p.map = 1; const q: Foo = Object.getPrototypeOf(a) === b; q.x = 1\n",
    "Module._malloc(1); this._cache = {}; x._load()\n",
    "Array.prototype.map = lie\n",
    "Object.assign(Array.prototype, { map: lie })\n",
    "const {stack} = new Error()\n",
    "const o = {}; Error.captureStackTrace(o); use(o.stack)\n",
]


PIECES = [
    *[
        "[]",
        "{",
        "}",
        "(",
        ")",
        ".constructor",
        ".prototype",
        ".__proto__",
        " = ",
        "p",
        "const ",
        ": ",
        "=>",
        "`${",
        "`",
    ],
    *[
        "new Error()",
        ".stack",
        "['a' + ",
        "]",
        "import ",
        "'module'",
        "Reflect.get(",
        "function ",
        "try {throw ",
        "as ",
        ",",
    ],
]


def rules(text: str, before: str = "") -> set[str]:
    return {str(it.rule) for it in suspicions(ChangedFile("src/cart.ts", before, text))}


@pytest.mark.parametrize(("rule", "text"), FOUND)
def test_it_is_found_and_not_once_it_was_there_before(rule: str, text: str) -> None:
    assert rule in rules(text)
    assert rules(text, before=text) == set()


@pytest.mark.parametrize("text", NONE)
def test_own_classes_polyfills_and_errors_for_people_are_none(text: str) -> None:
    assert rules(text) == set()


def test_a_new_value_of_a_name_that_was_written_to_before_is_found() -> None:
    write = "p.map = lie\n"
    (it,) = suspicions(
        ChangedFile("src/a.js", f"const p = Cart.prototype\n{write}", f"const p = [].__proto__\n{write}")
    )
    assert (it.line, it.quote) == (1, "const p = [].__proto__")


def test_what_the_source_did_excuses_and_an_operator_in_the_task_does_not() -> None:
    found = suspicions(ChangedFile("src/a.js", "", "[].__proto__.map = lie\n"))
    assert excused(found, [b"x()\n[].__proto__.map = lie\n"]) == []
    assert excused(found, [b"[].__proto__.map\n"], "Say x = y [].__proto__.map =") == found


@settings(max_examples=100)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=200))
def test_hostile_text_raises_nothing(text: str) -> None:
    rules(text)
    rules(f"prototype {text}")


@pytest.mark.parametrize(
    "piece",
    [
        "a.b as c as d.",
        "Object.getPrototypeOf(",
        "({constructor: {a: ",
        "[].__proto__[",
        "(new (await ",
        "const {a: {b} = {constructor: c}} = d;\n",
        "Object.assign(p = [].__proto__, Reflect.get(e, ",
        "const p = new Error(); if (p.stack) (p => { p.split('a') });\n",
        "import {a, ",
        "`${[].constructor}`.x = ",
        "function (a, b) { try { throw a } catch (e) { e.stack",
    ],
)
def test_the_time_is_linear_in_the_text(piece: str) -> None:
    def work(file: ChangedFile) -> None:
        suspicions(file)

    closing = {"(": ")", "[": "]", "{": "}"}
    signs = "".join(closing[it] for it in reversed(piece) if it in closing)
    assert_linear(lambda size: ChangedFile("a.ts", "", f"prototype {piece}" * size), work, 60)
    assert_linear(lambda size: ChangedFile("a.ts", "", piece * size + "0" + signs * size), work, 60)
