"""Masks for tests of JavaScript."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.duel_runs import ids_of
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.canaries.jsrecorder import recorder
from environments.suites.canaries.jstokens import tokens_of
from environments.suites.canaries.masks import COMPUTED, UNWRITTEN, Masked, Masking
from prchain.core.git.trees import EXECUTABLE, TreeEntry

FILE = """const test = require('node:test');
const assert = require('node:assert');
const { words, error } = require('./words.js');

test('parts them', async (t) => {
  assert.deepStrictEqual(words('to be'), [
    'to',
    { length: 2, text: "be" },
  ], 'a message');
  assert(words('to').length === 1 && words('to')[0] === 'to');
  const wanted = { of: ['to'] };
  assert.deepStrictEqual({ of: words('to') }, wanted);
});
test("says what's wrong", () => {
  assert.throws(() => error(`none`), { message: 'no none', code: 7 });
  assert.throws(() => error('them'), /^Error: no (?:them|words)$/);
  assert.rejects(async () => error('it'), { message: 'no it' });
});
"""
WORDS = """exports.words = (text) => text === 'to' ? ['to'] : ['to', { length: 2, text: 'be' }];
exports.error = (text) => { throw Object.assign(new Error('no ' + text), { code: 7 }); };
"""
LITERALS = {
    "parts them": ("""[\n    'to',\n    { length: 2, text: "be" },\n  ]""", "1", "'to'", "{ of: ['to'] }"),
    "says what's wrong": ("'no none'", "7", "'^Error: no (?:them|words)$'", "'no it'"),
}
TOLD = [
    *('0 =["to",{"length":2,"text":"be"}]', "1 =1", '2 ="to"', '3 ={"of":["to"]}'),
    *('4 ="no none"', "5 =7", '6 %"Error: no them"', '7 ="no it"'),
]
FOUND = {
    "assert.equal(a, 'x')": ["'x'"],
    "assert.equal('x', a())": ["'x'"],
    "assert.equal('x', 'y')": ["'y'"],
    "assert.equal(...a, 'x')": [],
    "assert.equal(a, 'x' + b)": [],
    "assert.equal(a, 'x' +\n 'y')": ["'x' +\n 'y'"],
    "assert.equal(a, -1)": ["-1"],
    "assert.equal(a, `x`)": ["`x`"],
    "assert.equal(a, `x${b}`)": [],
    "assert.equal(a, ['x', 'y'].join('-'))": ["['x', 'y'].join('-')"],
    "assert.equal(a, JSON.stringify({b: 1}))": ["JSON.stringify({b: 1})"],
    "assert.deepEqual(a, {b: [1, {'c': null}], d, e: f('x'), __proto__: null})": ["[1, {'c': null}]"],
    "assert.deepEqual(a, [1, undefined, {b: /x/}])": ["1"],
    "assert.deepEqual(a, [])": [],
    "expect(a).toMatchObject({b: 'x', c: [1]})": ["'x'", "1"],
    "assert.deepEqual(a, f('x'))": [],
    "assert.notEqual(a, 'x')": [],
    "t.is(a, 'x'); t.deepEqual(a, ['y'])": ["'x'", "['y']"],
    "if (type.is(a, 'x')) return": [],
    "assert(deepEqual(a, {b: 'x'}))": ["{b: 'x'}"],
    "assert(a === 'x' || b)": [],
    "assert(a == 'x')": ["'x'"],
    "const b = ['x']; assert.deepEqual(a, b)": ["['x']"],
    "const b = ['x']; assert.deepEqual(a(b), b)": [],
    "const b: string[] = ['x']\n assert.equal(a, b[0])": ["'x'"],
    "expect(a).toBe('x')": ["'x'"],
    "expect(a).not.toBe('x')": [],
    "await expect(a).resolves.toBe('x')": ["'x'"],
    "expect(a).toEqual({b: 'x'} as B)": ["{b: 'x'}"],
    "expect(a).toEqual(expect.objectContaining({b: 'x'}))": ["'x'"],
    "expect(a).toHaveLength(3)": ["3"],
    "expect(a).toHaveBeenCalledWith('x', [1])": ["'x'", "1"],
    "expect(a).toHaveBeenNthCalledWith(1, 'x')": ["'x'"],
    "expect(a).toContain('x')": ["'x'"],
    "expect(a).toThrow('x')": ["'x'"],
    "expect(a).toThrow(new Error('x'))": ["'x'"],
    "expect(a).toThrow(new F('x', 'y', [1]))": ["'x'"],
    "expect(a).toThrow(new F(b, 'x'))": [],
    "expect(a).toMatchInlineSnapshot(`x ${'y'}`)": [],
    "expect(a).toMatchInlineSnapshot(`\\n x\\n`)": ["`\\n x\\n`"],
    "expect(a).toMatchInlineSnapshot(' true')": ["true"],
    "await expect(a).resolves.toMatchInlineSnapshot('x')": ["'x'"],
    "expect(a).toMatchInlineSnapshot()": [],
    "expect(a).toMatchInlineSnapshot({ b: c }, 'x')": [],
    "expect(a).toMatchSnapshot()": [UNWRITTEN],
    "expect(a).toMatchSnapshot('of a')": [UNWRITTEN],
    "expect(a).toMatchSnapshot({ b: c })": [],
    "expect(a).not.toMatchSnapshot()": [],
    "expect(a).toThrow(/x/i)": ["'(?i)x'"],
    "expect(a).toThrow(/x(?=y)/)": [],
    "expect(a)\n .to.be.a('string')\n .and.equal('x')": ["'x'"],
    "expect(a).to.have.property('b', 'x')": ["'x'"],
    "expect(a).to.have.property('b').that.equals('x')": [],
    "expect(a).to.eventually.equal('x')": [],
    "a.b('y')[0].should.equal('x')": ["'x'"],
    "should(a).eql(['x'])": ["['x']"],
    "request(a).get('/').expect(404, 'x', done)": ["404", "'x'"],
    "request(a).get('/').expect('Type', /x/).expect(200, done)": ["'x'", "200"],
    "request(a).get('/').expect(200, {b: 'x'}, done)": ["200", "{b: 'x'}"],
    "assert.match(a, /x\\/y/)": ["'x/y'"],
    "expect(a).toBeCloseTo(0.5)": ["0.5"],
    "expect(a).toBeCloseTo(-0.5, 3)": ["-0.5"],
    "const b = 0.5; expect(a).toBeCloseTo(b, 3)": ["0.5"],
    "expect(a).toBeCloseTo(0.5, digits)": [],
    "expect(a).toBeCloseTo(Math.PI)": [],
    "expect(a).not.toBeCloseTo(0.5)": [],
    "await expect(a).resolves.toBeCloseTo(0.5)": [],
    "expect(a).to.be.closeTo(0.5, 0.1)": ["0.5"],
    "expect(a).to.be.approximately(1e3, 0.1, 'a')": ["1e3"],
    "a.should.be.closeTo(0.5, 0.1)": ["0.5"],
    "expect(a).to.be.closeTo(0.5)": [],
    "assert.closeTo(a, 0.5, 0.1, 'a message')": ["0.5"],
    "assert.approximately(a, 0.5, 0.1)": ["0.5"],
    "assert.closeTo(a, 1n, 1n)": [],
    "assert.closeTo(a, '1', 1)": [],
    "closeTo(a, 0.5, 0.1)": [],
    "t.test('inner', (t) => { t.is(a, 'x') })": ["'x'"],
    "const it = /['\"`]/.test(a); assert.equal(a, 'x')": ["'x'"],
    "assert.equal(b / 2, 1); assert.equal(a / 2, 2)": ["1", "2"],
}


def masked(text: str, first: int = 0) -> Masked:
    return mask_javascript(text, Masking("/report", first, lambda _: None))


@pytest.mark.parametrize("body", FOUND)
def test_what_is_asked_for_is_found(body: str) -> None:
    text = f"it('asks', async (t) => {{\n  {body};\n}});\n"

    found = masked(text)

    assert [it for one in found.literals.values() for it in one] == FOUND[body]
    assert (found.text == text) == (not FOUND[body])


def test_tests_of_one_title_are_counted_through() -> None:
    text = "it('a', () => t.is(b, 1))\nit('c', () => t.is(b, 2))\nit('a', () => t.is(b, 3))\n"

    found = mask_javascript(text, Masking("/report", 4, lambda name: (1,) if name == "a" else ()))

    assert found.literals == {"a": ("1", "3"), "c": ("2",)}
    assert found.text.splitlines()[:2] == text.splitlines()[:2]
    assert found.text.splitlines()[2] == "it('a', () => t.is(..._masked_args([b, _masked(5)])))"


def test_tests_whose_titles_are_not_written_out_are_known_as_one() -> None:
    for title in ("'it\\'s'", "`${a}`", "'a > b'", "a", "''"):
        assert masked(f"it({title}, () => {{\n  t.is(a, 'x')\n}})\n").literals == {COMPUTED: ("'x'",)}


TABLES = {
    "for (const t of [{a: 1, b: 'x'}, {a: 2, b: ['y']}]) { it(`is ${t.a}`, () => { expect(f(t.a)).toEqual(t.b) }) }":
        ["'x'", "['y']"],
    "const all = [[1, 'x'], [2, 'y']]\nfor (const [a, b] of all) it(f(a), () => assert.equal(g(a), b))": ["'x'", "'y'"],
    "const all: [number, string][] = [[1, 'x']]\nall.forEach(([a, b]) => test('' + a, () => t.is(g(a), b)))": ["'x'"],
    "[{a: 1, 'b': 'x', c: 'y'}].map(function ({a, b: wanted, c = 1}) { it(c, () => t.is(g(a), wanted)) })": ["'x'"],
    "for (const [a, b] of Object.entries({k: 'x', 'l': 'y'})) it(a, () => { t.is(g(a), b) })": ["'x'", "'y'"],
    "for (const [a, b] of Object.entries({k: 'x'})) it(b, () => { t.is(g(b), a) })": [],
    "it.each([[1, 2, 'x'], [3, 4, 'y']])('%i and %i', (a, b, c) => { expect(f(a, b)).toBe(c) })": ["'x'", "'y'"],
    "it.each([[1, 'x']])('%i is %s', (a, b) => { expect(f(a)).toBe(b) })": [],
    "it.each([['a', 'x'], ['b', 7], ['c', 'y\\n']])('%s is %s', (a, b) => { expect(f(a)).toBe(b) })": ["'x'", "7"],
    "it.each([['a', ['x']]])('%s is %s', (a, b) => { expect(f(a)).toEqual(b) })": [],
    "it.each([['a', 'x']])('$0 is %s', (a, b) => { expect(f(a)).toBe(b) })": [],
    "test.each([{a: 1, b: 'x'}])('of $a', ({ a, b }) => { expect(f(a)).toBe(b) })": ["'x'"],
    "test.each([{a: 1, b: 'x'}])('of $b', ({ a, b }) => { expect(f(a)).toBe(b) })": [],
    "test.each([{a: 1, b: 'x'}])('%j', (t) => { expect(f(t.a)).toBe(t.b) })": [],
    "test.each([{a: 1, b: 'x'}])('a', async t => { expect(f(t.a)).toBe(t.b) })": ["'x'"],
    "for (const t of [{a: 1, b: 'x'}]) { it(JSON.stringify(t), () => { expect(f(t.a)).toBe(t.b) }) }": [],
    "for (const t of [{a: 1, b: 'x'}]) { it(t.b, () => { expect(f(t.a)).toBe(t.b) }) }": [],
    "for (const t of [{a: 1, b: 'x'}]) { it(t.a, () => { expect(f(t.b)).toBe(t.b) }) }": [],
    "describe('a', () => { const all = [{b: 'x'}]; g(all) })\n"
    "describe('b', () => { const all = [{b: 'y'}]; for (const t of all) it(f(t.a), () => t.is(g(t.a), t.b)) })":
        ["'y'"],
    "const all = make(); for (const t of all) it(t.a, () => t.is(g(t.a), t.b))": [],
    "for (const t of [...others, {b: 'x'}]) it(f(t.a), () => assert.equal(g(t.a), t.b))": ["'x'"],
    "for (const t in [{b: 'x'}]) it(f(t.a), () => assert.equal(g(t.a), t.b))": [],
    "const all = {a: 'x', b: 'y'}; for (const t in all) it(t, () => assert.equal(g(t), all[t]))": ["'x'", "'y'"],
    "const all = {a: {b: 'x', c: 1}}; for (const t in all) { it(t, () => t.is(g(all[t].c), all[t].b)) }": ["'x'"],
    "const all = {a: 'x'}; for (const t of Object.keys(all)) it(t, () => { t.is(g(t), all[t as keyof typeof all]) })":
        ["'x'"],
    "const all = {a: 'x'}\nObject.keys(all).forEach((t) => { it(t, () => t.is(g(t), all[t])) })": ["'x'"],
    "const all = {a: 'x'}; for (const t in all) it(all[t], () => assert.equal(g(t), all[t]))": [],
    "const all = {a: 'x'}; for (const t in all) it(t, () => assert.equal(g(t), all[u]))": [],
    "function check(a, b) { it(f(a), () => expect(g(a)).toBe(b)) }\ncheck(1, 'x'); check(2, ['y'])": ["'x'", "['y']"],
    "const check = (a: A, {b}: B): void => { it(f(a), () => t.is(g(a), b)) }; check(1, {b: 'x'})": ["'x'"],
    "const check = async function (a, b) { it(f(a), () => t.is(g(a), b)) }; check(1, 'x')": ["'x'"],
    "function check(a, b) { it(b, () => { expect(g(a)).toBe(b) }) }\ncheck(1, 'x')": [],
    "function check(a, b) { it(f(a), () => { expect(g(a)).toBe(b) }) }\nall.check(1, 'x')": [],
    "function check(all) { for (const [a, b] of all) it(f(a), () => { t.is(g(a), b) }) }\ncheck([[1, 'x']])": ["'x'"],
    "function check(all) { Object.keys(all).map((a) => it(a, () => t.is(g(a), all[a]))) }\ncheck({a: 'x'})": ["'x'"],
}  # fmt: skip


@pytest.mark.parametrize("text", TABLES)
def test_what_rows_that_tests_walk_through_ask_for_is_found(text: str) -> None:
    assert [*masked(text).literals.get(COMPUTED, ())] == TABLES[text]


def test_a_name_that_is_declared_by_its_type_alone_has_no_value() -> None:
    """Who looked for its value came back to where it began, and never ended."""
    text = "it('a', () => {\n  let b: string\n  f((x) => { g(x) })\n  assert.equal(a, b)\n})\n"
    assert masked(text).literals == {}


def test_what_a_function_asks_for_is_asked_for_by_the_tests_that_call_it() -> None:
    text = """
function check(given, wanted) { assert.equal(words(given), wanted) }
describe('words', () => {
  it('one', () => { check('a', 'x'); check('b', 'y') })
  it('other', () => { it('inner', () => check('c', 'z')) })
  check('d', 'v')
})
"""
    found = masked(text)
    assert found.literals == {"one": ("'x'", "'y'"), "inner": ("'z'",)}
    assert "assert.equal(..._masked_args([words(given), wanted]))" in found.text
    assert "check('a', _masked(0)); check('b', _masked(1))" in found.text and "check('d', 'v')" in found.text


@pytest.mark.parametrize(("text", "is_without"), [("toMatchSnapshot()", True), ("toMatchSnapshot({ b })", False)])
def test_a_file_that_asks_for_no_snapshot_of_its_file_any_more_says_so(text: str, is_without: bool) -> None:
    found = masked(f"it('a', () => {{ expect(a).toMatchSnapshot(); expect(b).{text} }})\n")
    assert found.without_snapshots is is_without
    assert "expect(_masked_see(a)).toEqual(_masked_want(_masked(0)))" in found.text
    assert not masked("it('a', () => { expect(a).toMatchInlineSnapshot('x') })").without_snapshots


def test_rows_of_a_loop_in_a_test_are_its_own() -> None:
    text = "it('all', () => { for (const [a, b] of [[1, 'x'], [2, 'y']]) { assert.equal(f(a), b) } })"
    assert masked(text).literals == {"all": ("'x'", "'y'")}


def test_titles_of_tests_with_masks_are_others_unless_somebody_looks_at_them() -> None:
    text = "it('is x', () => { t.is(a, 'x') })\nit('is it', () => { t.is(a, b) })\nit('two', f)\n"
    twice = "it('two', () => { t.is(a, 'x') })\ndescribe('b', () => { it('two', () => { t.is(a, 'y') }) })\n"
    found = masked(text)
    [(name, title)] = found.shown.items()
    assert title == "is x" and f"it('{name}'" in found.text and "is x" not in found.text
    assert "'is it'" in found.text and "'two'" in found.text and masked(text) == found
    assert name not in masked(text, first=1).text, "another file of the same run"
    for other in (twice, text + "\nafterEach(() => log(expect.getState().currentTestName))"):
        assert not masked(other).shown and masked(other).literals


ROWS = """test.each([
  ['A', 'an a'],
  ['B', 4711],
])('%s => %s', (letter, wanted) => { expect(name(letter)).toBe(wanted) })
"""


TEXTS = [
    "",
    'a"b\\c',
    "\b\t\n\f\r",
    "\x00\x1f\x20\x7e\x7f\x80\x9f\xa0",
    "\u2027\u2028\u2029\u202a",
    "\ud7ff\ue000\uffff",
    "😀é",
]


def test_texts_are_told_as_json_by_no_function_that_could_be_another(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    taken = "JSON.stringify = String.prototype.replace = String.prototype.charCodeAt = Array.prototype.map = () => 'x'"
    script = (
        f"{taken};\nprocess.stdout.write([{','.join(f'_masked_quoted({json.dumps(it)})' for it in TEXTS)}].join('\\n'))"
    )
    (tmp_path / "told.js").write_text(script + recorder("_masked", "", is_module=False))
    ran = subprocess.run(["node", "told.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = ran.stdout.split("\n")
    parts = "console.log(_masked_text(['a', 1, Symbol('b'), {}, 2n, NaN, '\\n'], '~'))\n"
    (tmp_path / "parts.js").write_text(parts + recorder("_masked", "", is_module=False))
    listed = subprocess.run(["node", "parts.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert listed.stdout == '["a",1,null,"\\n"]\n'
    assert [json.loads(line) for line in lines] == TEXTS and not re.search(
        r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", "".join(lines)
    )
    assert lines[1:3] == ['"a\\"b\\\\c"', r'"\b\t\n\f\r"'] and r"\u2028\u2029" in lines[4]


def test_where_a_title_shows_a_row_a_mask_there_has_a_name(tmp_path: Path) -> None:
    made = mask_javascript(ROWS, Masking("/tmp/report", 3, lambda _: None))
    assert sorted(made.shown.values()) == ["4711", "an a"] and "an a" not in made.text and "4711" not in made.text
    calls = re.findall(r"_masked_named\((\d+), '(case [0-9a-f]{16})'\)", made.text)
    assert [(number, made.shown[name]) for number, name in calls] == [("3", "an a"), ("4", "4711")]
    shows = f"const {{ format, inspect }} = require('util');\nconst it = _masked_named(3, '{calls[0][1]}');\n"
    shows += "console.log([format('%s', it), String(it), inspect(it), it.inspect()].join());\n"
    (tmp_path / "shows.js").write_text(shows + recorder("_masked", "", is_module=False))
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    ran = subprocess.run(["node", "shows.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ",".join([calls[0][1]] * 4)
    looking = mask_javascript(f"{ROWS}afterEach((it) => it.task.fullName)\n", Masking("/tmp/report", 0, lambda _: None))
    assert looking.shown == {} and "an a" in looking.text


def test_ids_of_no_title_that_is_written_are_of_the_tests_known_as_one() -> None:
    file = "test/a.test.ts"
    text = "for (const t of [{a: 1, b: 'is x'}]) test(`is ${t.a}`, () => {})\ntest.only( 'written', f)\n"
    entries = {file.encode(): TreeEntry(EXECUTABLE, "1")}
    trees = SimpleNamespace(entries=lambda _: entries, blobs=lambda _: [text.encode()])
    suite: Any = SimpleNamespace(workplace=SimpleNamespace(runner="vitest", trees=trees), files=(file,), landed="m")
    known = [f"{file} > {it}" for it in ("is 1", "deep > is x", "written", "deep > held")]
    found = ids_of(suite, [(file, COMPUTED), (file, "held")], [*known, "test/b.test.ts > is 3"])
    assert found == {(file, COMPUTED): known[:2], (file, "held"): known[3:]}


def test_settings_that_begin_a_module_stay_first() -> None:
    made = masked("/** @jest-environment jsdom */\nimport a from 'a';\nit('b', () => expect(a).toBe('x'));\n").text

    assert made.startswith("/** @jest-environment jsdom */\n// @ts-nocheck\nimport a from 'a';\n")
    assert made.endswith("import * as _masked_fs from 'fs';\n")


def test_masks_have_a_name_of_their_own() -> None:
    assert "_masked_(0)" in masked("it('b', () => expect(_masked).toBe('x'));\n").text


@pytest.mark.parametrize("text", ["it('a', () => {", "it('a', `", "`${`", "(]", "it('a', () => t.is(b, " + "[" * 9_000])
def test_a_text_that_cannot_be_read_has_no_places(text: str) -> None:
    assert masked(text) == Masked(text, {})


def test_a_value_that_is_nested_deeply_does_no_harm() -> None:
    masked(f"it('a', () => t.is(b, {'[' * 5_000}1{']' * 5_000}))")


_PIECES = """it( test( 'a' , () => { } ) assert.equal( expect( ).toBe( .to. .should. [ ] ` ${ / /x/ " ' === && : ; .
12 x \n const wanted = await new // /* */ { __proto__ throws( .expect( t. true -
for( of .each( .forEach( Object.entries( => a function async let b =
function f( f( for( in of Object.keys( a[b] typeof .toMatchSnapshot( .toMatchInlineSnapshot( new F( ,"""
PIECES = st.sampled_from(re.split(r"[ ]|(?<=\.)\n", _PIECES))


def test_a_file_of_more_loops_than_people_write_is_masked_without_them() -> None:
    """Each loop was looked for among all functions of the file."""
    row = "function f(a) { for (const b of a) it('x', () => t.is(g(), b)) }; f(['z']);"
    assert masked(row).literals == {"x": ("'z'",)}
    assert masked(row * 2).literals == {}, "nobody knows which of two is called"
    assert masked("".join(row.replace("f(", f"f{number}(") for number in range(2_000))).literals == {}


@given(st.lists(PIECES | st.text(max_size=3), max_size=60).map("".join))
def test_any_text_can_be_masked(text: str) -> None:
    for given_text in (text, f"it('a', () => {{ {text} }})", f"it('a', () => {{ assert.equal(a, {text}) }})"):
        nothing = mask_javascript(given_text, Masking("/report", 0, lambda _: ()))
        everything = masked(given_text)

        assert nothing.text == given_text
        assert everything.literals == nothing.literals
        assert (everything.text != given_text) == bool(everything.literals)


@given(st.lists(PIECES | st.text(max_size=3), max_size=60).map("".join))
def test_tokens_stand_where_they_say(text: str) -> None:
    found = tokens_of(text)

    assert found is None or all(text[it.begin : it.end] == it.text for it in found.all)


def run(folder: Path, name: str, text: str) -> tuple[str, list[str]]:
    """What node says of the masked file, and what the masks told."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    report = folder / "report"
    made = mask_javascript(text, Masking(str(report), 0, lambda _: None))
    (folder / name).write_text(made.text)
    done = subprocess.run(["node", name], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    told = report.read_text().splitlines() if report.exists() else []
    return done.stdout + done.stderr if done.returncode else "", told


def test_masks_tell_what_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "words.js").write_text(WORDS)

    assert masked(FILE).literals == LITERALS
    assert run(tmp_path, "words.test.js", FILE) == ("", TOLD)


def test_masks_tell_it_in_modules(tmp_path: Path) -> None:
    text = FILE.replace("const test = require('node:test');", "import test from 'node:test';")
    text = text.replace("const assert = require('node:assert');", "import assert from 'node:assert';")
    text = text.replace("const { words, error } = require('./words.js');", "import { words, error } from './words.js';")
    (tmp_path / "words.js").write_text(WORDS)

    assert run(tmp_path, "words.test.mjs", text) == ("", TOLD)


def test_masks_tell_what_a_wrong_value_is(tmp_path: Path) -> None:
    (tmp_path / "words.js").write_text(WORDS.replace("'be'", "'b\\n'").replace("'no '", "'\\u2028no '"))

    failed, told = run(tmp_path, "words.test.js", FILE)

    assert not failed
    assert told[0] == '0 =["to",{"length":2,"text":"b\\n"}]'
    assert told[4] == '4 ="\\u2028no none"'


SNAPSHOTS = """const assert = require('node:assert');
const it = (title, run) => run();
const expect = (value) => ({ toEqual: (it) => assert.strictEqual(value, it) });
const check = (given, wanted) => { assert.equal(given.join(''), wanted) };
class Own {}
it('snapshots', () => {
  check(['a', 'b'], 'ab');
  expect({ b: [1, null], a: { c: 'd' } }).toMatchInlineSnapshot('x');
  expect('words').toMatchSnapshot();
  expect([new Own()]).toMatchSnapshot();
  let twice = [];
  for (let level = 0; level < 30; level++) twice = [twice, twice];
  expect(twice).toMatchSnapshot();
});
"""


def test_snapshots_tell_the_parts_of_plain_values_in_one_order(tmp_path: Path) -> None:
    assert run(tmp_path, "snapshots.js", SNAPSHOTS) == (
        "",
        ['0 ="ab"', '1 ={"a":{"c":"d"},"b":[1,null]}', '2 ="words"', "3 =[{}]", "4 =[object]"],
    )


FACES = """const assert = require('node:assert');
const it = (title, run) => run();
const known = { name: 'a' };
const face = new Proxy(known, { has: () => true, get: (own, key) => key in own ? own[key] : 'words' });
it('faces', () => {
  try { assert.deepEqual(face, { name: 'a', more: 'words' }) } catch (error) { return }
});
"""


@pytest.mark.parametrize(("wanted", "told"), [("'words'", ["0 =[object]"]), ("known.name", [])])
def test_a_proxy_tells_nothing_for_it_says_what_it_is_asked_for(tmp_path: Path, wanted: str, told: list[str]) -> None:
    text = FACES.replace("more: 'words'", f"more: {wanted}")
    assert run(tmp_path, "faces.js", text) == ("", told)


CHAINS = """const assert = require('node:assert');
const it = (title, run) => run();
const expect = (value) => ({
  toBe: (it) => assert.strictEqual(value, it),
  toContain: (it) => assert(value.includes(it)),
  toHaveLength: (it) => assert.strictEqual(value.length, it),
  property: (key, it) => assert.strictEqual(value[key], it),
  resolves: { toEqual: async (it) => assert(it.asymmetricMatch(await value)) },
});
Object.defineProperty(Object.prototype, 'should', { get() { return { equal: (it) => assert.equal(this, it) }; } });
Object.defineProperty(Object.prototype, 'surprise', { set() { throw new Error('set'); }, enumerable: true });
it('chains', async () => {
  expect('some').toBe('some');
  expect(['a', 'words']).toContain('words');
  expect('text').toHaveLength(4);
  expect({ a: 'b' }).property('a', 'b');
  'it'.concat('s').should.equal('its');
  assert.ok(null == null && (1 + 1) === 2);
  assert.equal(undefined, null);
});
it('waits', async () => {
  await expect(Promise.resolve('later')).resolves.toBe('later');
});
"""


def test_masks_in_chains_tell_the_value_that_they_are_about(tmp_path: Path) -> None:
    failed, told = run(tmp_path, "chains.js", CHAINS)

    assert not failed
    assert told == [
        *('0 ="some"', '1 ~["a","words"]', "2 =4", '3 ="b"', '4 ="its"', "5 =2", "6 =null"),
        '7 ="later"',
    ]


NEAR = """const it = (title, run) => run();
const isNear = (a, b, limit) => { if (!(Math.abs(a - b) <= limit)) throw new Error('far'); };
const assert = { closeTo: isNear };
const expect = (value) => ({
  toBeCloseTo: (it, digits = 2) => isNear(value, it, Math.pow(10, -digits) / 2),
  approximately: (it, limit) => isNear(value, it, limit),
});
it('near', () => {
  const wanted = 2.5;
  expect(0.1 + 0.2).toBeCloseTo(0.3);
  expect(2.51).approximately(wanted, 0.2);
  assert.closeTo(7.25, -7.5, 0.5);
  expect('3').toBeCloseTo(4, 5);
  expect(1 / 0).toBeCloseTo(6);
});
"""


def test_masks_tell_numbers_and_how_near_these_have_to_be(tmp_path: Path) -> None:
    failed, told = run(tmp_path, "near.js", NEAR)

    assert "far" in failed, "what is not finite is near nothing"
    assert told == [
        *("1 @digits:2 0.30000000000000004", "0 @delta:0.2 2.51", "2 @delta:0.5 7.25", "3 @digits:5 null"),
        "4 @digits:2 Infinity",
    ]


def test_comments_of_a_masked_file_are_left_out_but_for_a_runners_settings() -> None:
    text = (
        "/** @jest-environment jsdom */\nit('a', () => {\n  // seven\n  expect(f(1)).toBe('seven'); //+10:00\n"
        "  /* six\n  to eight */ g(`// no ${'comment'} /* none */`);\n})\n"
    )
    made = masked(text).text
    own = made[: made.index("function _masked")]
    assert "jest-environment" in own and "`// no ${'comment'} /* none */`" in own
    assert not any(it in own for it in ("seven", "+10:00", "six", "eight"))
    assert own.splitlines().index("})") == text.splitlines().index("})"), "lines stay where they are"


def test_every_call_that_awaits_an_error_is_as_deep_as_one_with_a_mask() -> None:
    text = "it('a', () => {\n  assert.throws(f, /x/)\n  assert.throws(() => g(1))\n  stub.throws(new Error('a'))\n})\n"
    made = masked(text).text
    assert "assert.throws(..._masked_caught([() => g(1)]))" in made
    assert "stub.throws(..._masked_caught([new Error('a')]))" in made


def test_what_masks_keep_is_no_property_of_a_function_which_others_can_take(tmp_path: Path) -> None:
    (tmp_path / "words.js").write_text(WORDS)
    names = re.findall(r"(\w+): (?:null|undefined|0|false)\b", recorder("_masked", "", is_module=False))
    taken = (f"Object.defineProperty(Function.prototype, '{it}', {{ get() {{ throw 1; }} }});" for it in names)

    assert "calls" in names and run(tmp_path, "words.test.js", "".join(taken) + FILE) == ("", TOLD)
