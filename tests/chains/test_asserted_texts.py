"""Texts that tests compare with and only the source patch has."""

from __future__ import annotations

import pytest

from chains.needs.asserted_texts import AssertedTexts, asserted_texts
from chains.needs.literals import literals_of, texts_held
from prchain.core.code.needs import Need
from prchain.core.git.patches import FilePatch, Hunk
from tests.growth import assert_linear


def patch(path: str, text: str) -> FilePatch:
    return FilePatch(path, hunks=(Hunk(0, 0, 1, 1, "", tuple(f"+{line}" for line in text.splitlines())),))


def read(source: str, test: str, base: str = "", suffix: str = "py") -> AssertedTexts:
    paths = {f"src/a.{suffix}": source, f"tests/test_a.{suffix}": test}
    files = [(["src/a.py"], base.encode()), (["tests/a.py"], b"'cookie is too large'")]
    return asserted_texts(
        [patch(f"src/a.{suffix}", source)],
        [patch(f"tests/test_a.{suffix}", test)],
        paths.get,
        lambda texts: texts_held(texts, files, lambda path: path.startswith("src/")),
    )


def needs(source: str, test: str, base: str = "", suffix: str = "py") -> list[Need]:
    return list(read(source, test, base, suffix).needed)


def texts(source: str, test: str, base: str = "", suffix: str = "py") -> list[str]:
    return [need.text for need in needs(source, test, base, suffix)]


MESSAGE = "raise ValueError(f'cookie {key!r} is too large: {size} bytes')\n"


@pytest.mark.parametrize(
    ("source", "test", "expected"),
    [
        (MESSAGE, "assert 'is too large' in str(error)\n", ["is too large"]),
        (MESSAGE, "with pytest.raises(ValueError, match='is too large'): f()\n", ["is too large"]),
        (
            MESSAGE,
            "with pytest.raises(ValueError, match=r'^cookie .* is too large: \\d+'): f()\n",
            ["cookie ... is too large:"],
        ),
        (MESSAGE, "assert str(error) == \"cookie 'a' is too large: 9 bytes\"\n", ["cookie 'a' is too large: 9 bytes"]),
        (
            "x = 'size %s exceeds the limit' % n\n",
            "assert e == 'size 9 exceeds the limit'\n",
            ["size 9 exceeds the limit"],
        ),
        ("x = 'size {} exceeds it'.format(n)\n", "self.assertEqual(e, 'size 9 exceeds it')\n", ["size 9 exceeds it"]),
        ("raise E(\n    'one long '\n    'message'\n)\n", "assert 'long message' in e\n", ["long message"]),
        (MESSAGE, "WANTED = 'is too large'\n\ndef test_a():\n    assert WANTED in str(error)\n", ["is too large"]),
        (MESSAGE, "SENT = 'is too large'\n\ndef test_a():\n    send(SENT)\n    assert error\n", ["is too large"]),
        # A value that an assertion compares with as a whole is expected, whatever it is named.
        ("x = {'kty': 'oct'}\n", "want = {'kty': 'oct'}\nassert json.loads(key) == want\n", ["kty", "oct"]),
        ("x = {'kty': 'oct'}\n", "want = ['kty']\nself.assertEqual(list(key), want)\n", ["kty"]),
        ("x = 'oct'\n", "want = 'oct'\nself.assertEqual(key, want)\n", ["oct"]),
        ("x = {'kty': 'oct'}\n", "given = {'kty': 'oct'}\nassert json.loads(dump(given)) == {}\n", []),
        ("x = 'websocket.close'\n", "assert kind == 'websocket.close'\n", ["websocket.close"]),
        ("x = b'closing now'\n", "assert data == b'closing now'\n", ["closing now"]),
        (MESSAGE, "@pytest.mark.parametrize('e', ['is too large'])\ndef test_a(e): ...\n", ["is too large"]),
        ("o = option('--max-size')\n", "run(['--max-size', '3'])\n", ["--max-size"]),
        ("x = env['APP_MODE']\n", "set('APP_MODE', 1)\n", ["APP_MODE"]),
        ("x = 'a/b --max-size'\n", "run(['--max-size', '3'])\n", ["--max-size"]),
        (MESSAGE, "x = 'is too large'\n", ["is too large"]),
        (MESSAGE, 'logs = """\n    W: b is too large: 3\n    W: c\n"""\n', ["W: b is too large: 3"]),
        # What the source does not say, docstrings, numbers, single letters and words of no assertion are none.
        (MESSAGE, "x = 'large'\n", []),
        (MESSAGE, "assert e == 'is too small'\n", []),
        ('def f():\n    """It is too large."""\n', "assert 'is too large' in e\n", []),
        ("x = '12345'\n", "assert e == '12345'\n", []),
        ("x = 'a'\n", "assert e == 'a'\n", []),
        ("x = 'size'\n", "@pytest.mark.parametrize('e', ['size'])\ndef test_a(e): ...\n", []),
        ("x = f'a {y} b'\n", "assert e == 'a word and b'\n", []),
    ],
)
def test_a_text_counts_where_an_assertion_meets_the_source(source: str, test: str, expected: list[str]) -> None:
    assert texts(source, test) == expected


LOGGED = "log.warning('Config value %r is too old', name)\n"


@pytest.mark.parametrize(
    ("source", "test", "expected"),
    [
        (LOGGED, "assert out == 'WARNING:a.b.c:Config value 2 is too old'\n", ["Config value 2 is too old"]),
        (LOGGED, "check('WARNING:root:Config value 2 is too old')\n", ["Config value 2 is too old"]),
        (LOGGED, "assert 'WARNING:Config value 2 is too old' in out\n", ["Config value 2 is too old"]),
        (LOGGED, "assert 'WARNING  -  Config value 2 is too old' in out\n", ["Config value 2 is too old"]),
        (
            LOGGED,
            "with raises(E, match=r'^ERROR:a:.*Config value .* is too old'): f()\n",
            ["Config value ... is too old"],
        ),
        (
            LOGGED,
            "self.assertRegex(out, r'^WARNING:a.b.c:Config value .* is too old$')\n",
            ["Config value ... is too old"],
        ),
        (
            LOGGED,
            "logs = '''\nDEBUG:a:Started it\nWARNING:a:Config value 2 is too old\n'''\n",
            ["Config value 2 is too old"],
        ),
        # What looks like the name of a logger is the beginning of the message.
        ("log.info('page: %s is gone', x)\n", "assert 'INFO:page: a is gone' in out\n", ["page: a is gone"]),
        ("log.info('page:%s is gone', x)\n", "assert 'INFO:page:a is gone' in out\n", ["page:a is gone"]),
    ],
)
def test_the_level_and_the_logger_before_a_logged_message_are_no_part_of_it(
    source: str, test: str, expected: list[str]
) -> None:
    assert texts(source, test) == expected


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("print('WARNING:no room is left')\n", "WARNING:no room is left"),
        ("print(f'ERROR:{name} is not there')\n", "ERROR:page is not there"),
        ("def warn(m):\n    print('WARNING:' + m)\nwarn('no room is left')\n", "WARNING:no room is left"),
        ("warn('no room is left')\n", "WARNING: no room is left"),
        ("print('ERRORS - no room is left')\n", "ERRORS - no room is left"),
        ("print('no room is left')\n", "Warning: no room is left"),
    ],
)
def test_a_level_that_the_source_writes_itself_stays(source: str, text: str) -> None:
    assert texts(source, f"assert out == {text!r}\n") == [text]


def test_a_logged_message_that_the_base_has_is_known_without_its_level() -> None:
    found = read(LOGGED, "assert 'WARNING:a:Config value 2 is too old' in out\n", "x = 'Config value a is too old'\n")
    assert (found.needed, found.known) == ((), ("Config value 2 is too old",))


def test_a_text_that_the_source_at_the_base_holds_is_known() -> None:
    test = "assert 'is too large' in e\n"
    assert texts(MESSAGE, test, "x = 'header is too large'\n") == []
    assert texts(MESSAGE, test, "x = ('header is '\n 'too large')\n") == []
    assert texts(MESSAGE, test, "# the cookie is too large\n") == ["is too large"]


def test_other_languages_are_read_by_line() -> None:
    assert texts('panic("no room is left");\n', 'assert_eq!(e, "no room is left");\n', suffix="rs") == [
        "no room is left"
    ]
    assert texts('throw new Error("no room");\n', 'expect(f).toThrow("no room");\n', suffix="ts") == ["no room"]


@pytest.mark.parametrize(
    ("line", "suffix"),
    [
        ('import assert from "node:assert-strict";', "js"),
        ('} from "node:assert-strict";', "ts"),
        ('const {equal} = require("node:assert-strict");', "js"),
        ('\t"node:assert-strict"', "go"),
        ('\tassert "node:assert-strict" // why', "go"),
        ('import "node:assert-strict"', "go"),
    ],
)
def test_the_module_that_a_line_imports_is_no_text(line: str, suffix: str) -> None:
    assert texts('x("node:assert-strict")', line, suffix=suffix) == []
    assert texts('x("node:assert-strict")', 'assert(x, "node:assert-strict")', suffix=suffix) == ["node:assert-strict"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("word " * 60, "longer than 200 characters"),
        ("def found(x): return x", "code"),
        ("| name | size |", "a table"),
        ("is left out", ""),
    ],
)
def test_long_texts_code_and_tables_are_withheld(text: str, reason: str) -> None:
    assert {need.withheld for need in needs(f"x = '{text}'\n", f"assert e == '{text}'\n")} == {reason}


def test_a_text_knows_the_tests_that_use_it() -> None:
    test = "class TestA:\n    def test_b(self):\n        assert 'is too large' in e\n\nassert 'is too large' in e\n"
    assert [need.tests for need in needs(MESSAGE, test)] == [("tests/test_a.py", "tests/test_a.py::TestA::test_b")]


def test_literals_of_a_file_that_does_not_parse_are_read_by_pattern() -> None:
    assert literals_of("def (\nx = 'one two'\n", "a.py") == ["one two"]


def test_what_javascript_says_of_an_error_is_found_in_patterns_templates_and_constants() -> None:
    source = """
        throw new Error(`${prefix}${method}() can only be used with the option ipc.`);
        throw new TypeError(`The option cannot use both files and objects: ${found}.`);
    """
    test = """
const NO_IPC = 'can only be used with';
test('Sends a message of objects', macro, NO_IPC);
    t.true(message.includes(NO_IPC));
    }, {message: /cannot use both files and objects/});
    """
    found = [need.text for need in needs(source, test, suffix="js")]
    assert found == ["can only be used with", "cannot use both files and objects"]


def test_a_text_that_colours_a_terminal_is_told_with_escapes() -> None:
    (need,) = needs("x = '\\x1b[35mnox > run'\n", "assert out == '\\x1b[35mnox > run'\n")
    assert (need.withheld, need.words()) == ("", '"\\u001b[35mnox > run"')


def test_a_page_of_output_is_needed_and_withheld() -> None:
    page = "<rect class='terminal-title'/>" * 200
    (need,) = needs(f"PAGE = {page!r}\n", f"EXPECTED = {page!r}\n\ndef test_a():\n    assert export() == EXPECTED\n")
    assert need.withheld == "longer than 200 characters"


def test_a_text_that_the_source_holds_already_is_known() -> None:
    both = "kind = 'text/html; charset=utf-8'\n"
    found = read(both, "assert kind == 'text/html; charset=utf-8'\n", base=both)
    assert found == AssertedTexts(needed=(), known=("text/html; charset=utf-8",))


LOOK_UP = 'def greeting(data):\n    return data.get("greeting_before_copy", "")\n'


@pytest.mark.parametrize(
    ("test", "key"),
    [
        ('write("""\\\n    greeting_before_copy: Hello\n    other: 1\n""")\n', "greeting_before_copy"),
        ('write("""\\\n    _greeting_before_copy: Hello {{ name }}\n""")\n', "_greeting_before_copy"),
        ('write(f"[tool]\\ngreeting_before_copy = {greeting}")\n', "greeting_before_copy"),
        ("write('{\"greeting_before_copy\": true}'.replace('true', '1'))\n", None),
        ('write(f"{top}greeting_before_copy: Hello")\n', "greeting_before_copy"),
        ('write("other_greeting_before_copy: Hello")\n', None),
        ('write("""\nThe greeting_before_copy is shown.\n""")\n', None),
    ],
)
def test_a_key_that_a_text_in_the_tests_begins_a_line_with_is_told(test: str, key: str | None) -> None:
    assert texts(LOOK_UP, test) == ([key] if key else [])


def test_a_key_that_the_base_reads_already_is_not_told() -> None:
    assert texts(LOOK_UP, 'write("_greeting_before_copy: Hello")\n', base=LOOK_UP) == []


def test_a_line_that_is_added_inside_an_old_text_is_seen() -> None:
    lines = ["def test_it():", '    write("""', "name: x", "_greeting_before_copy: Hello", "last: y", '    """)']
    marked = tuple(("+" if line.startswith("_") else " ") + line for line in lines)
    tests = FilePatch("tests/test_it.py", hunks=(Hunk(1, 5, 1, 6, "", marked),))
    text = "\n".join(lines)
    files = {"src/it.py": LOOK_UP, "tests/test_it.py": text}
    found = asserted_texts([patch("src/it.py", LOOK_UP)], [tests], files.get, lambda _: set())
    assert [need.text for need in found.needed] == ["_greeting_before_copy"]


def test_an_option_is_told_without_the_sign_between_it_and_its_value() -> None:
    source = 'def options():\n    return ["--answers-file"]\n'
    assert texts(source, 'run(f"--answers-file={path}")\n') == ["--answers-file"]
    assert texts(source, 'run("--answers-file=")\n') == ["--answers-file"]


def test_a_text_with_the_name_of_its_own_test_is_the_tests_work() -> None:
    source = 'KEY = "qual_name"\n'
    test = (
        'def test_qual_name_here():\n    assert name == f"{cls}.test_qual_name_here"\n    assert key == "qual_name"\n'
    )
    assert texts(source, test) == ["qual_name"]


def test_a_keyword_that_the_source_reads_from_a_mapping_is_told() -> None:
    source = 'def url_for(view, **options):\n    return options.pop("_anchor", "")\n'
    assert texts(source, 'assert url_for("x", _anchor="top")\n') == ["_anchor"]
    assert texts(source, 'assert url_for("x", anchor="top")\n') == []


def test_a_test_of_a_short_name_hides_no_text() -> None:
    test = "def test():\n    assert message == 'the test is over'\n"
    assert texts("raise Gone('the test is over')\n", test) == ["the test is over"]


def test_of_a_line_of_input_the_keys_in_it_are_told() -> None:
    source = 'def read(table):\n    return table["create-args"], table["mount-host"]\n'
    test = "run('engine = {create-args = [\"--some option\"], mount-host = true}')\n"
    found = needs(source, test)
    assert [(need.text, need.withheld) for need in found] == [("create-args", ""), ("mount-host", "")]


def test_a_message_that_ends_with_a_pattern_is_no_code() -> None:
    source = "raise Wrong('it does not satisfy [A-z]{2}')\n"
    assert [need.withheld for need in needs(source, "match('it does not satisfy [A-z]{2}')\n")] == [""]


@pytest.mark.parametrize("text", ["Name" + "_" * 60 + " |", "a_" * 30 + "b (x"])
def test_a_text_of_many_underscores_is_read_at_once(text: str) -> None:
    assert texts(MESSAGE, f"x = {text!r}\n") == []


def test_many_f_strings_and_literals_take_time_in_step_with_them() -> None:
    def file_of(count: int) -> str:
        return "".join(f"f(f'a {{y}} b {it}')\ng('other {it}')\n" for it in range(count))

    assert_linear(file_of, lambda text: literals_of(text, "a.py"), 1000)


def test_many_constants_with_expected_texts_take_time_in_step_with_them() -> None:
    def file_of(count: int) -> str:
        return "".join(f"const want{it} = 'text {it}';\nexpect(x).toBe(want{it});\n" for it in range(count))

    assert_linear(file_of, lambda text: read(MESSAGE, text, suffix="js"), 400)


@pytest.mark.parametrize("pattern", ["(?a)(?u)is too large", "is{" + "9" * 5000 + "} too large"])
def test_a_pattern_that_python_refuses_is_read_as_plain_text(pattern: str) -> None:
    source = f"x = {pattern!r}\n"
    assert texts(source, f"with raises(E, match={pattern!r}): f()\n") == [pattern]


@pytest.mark.parametrize(
    "test",
    [r"assert e == 'lone \ud800 half'", r"assert e == f'lone \ud800 half'", r"raises(E, match=r'lone \ud800 half')"],
)
def test_half_a_pair_of_surrogates_is_told_as_its_escape(test: str) -> None:
    (text,) = texts("x = 'lone \\ud800 half'\n", f"{test}\n")
    assert text == "lone \\ud800 half"
    assert text.encode()
