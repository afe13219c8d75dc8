"""What a text names: each kind by its table, how paths and names are compared, and that no text takes long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.growth import assert_linear
from trajectories.agents.steps.entities import (
    ALL_KINDS,
    EDGE_KINDS,
    Entity,
    EntityKind,
    Place,
    entities,
    is_stop_word,
    normalized_path,
    places,
)
from trajectories.curation.graphs.surfaced import Surfaced, holds

ROOTS = ("/testbed", "/testbed/nested")

PATH, MODULE, QUALIFIED, DEFINED, NAME, LINE, ERROR, FLAG, NUMBER = EntityKind


def found(kind: EntityKind, text: str) -> set[str]:
    return {entity.text for entity in entities(text, roots=ROOTS, kinds=[kind])}


PATHS = [
    (
        "open `moto/ec2/responses/security_groups.py`, then \"a.rs\" and 'b.go'.",
        {"moto/ec2/responses/security_groups.py", "a.rs", "b.go"},
    ),
    ("cat /testbed/src/x.py /testbed/src/ /testbed", {"src/x.py", "src"}),
    ("/testbed/nested/y.py and //testbed///z.py", {"y.py", "z.py"}),
    ("ls /testbed/tests/test_*.py /testbed/lib/*", {"tests", "lib"}),
    ("cd /opt/tool /usr/lib/python3 /dev/null /api/v1/users /workspace", {"/opt/tool", "/usr/lib/python3"}),
    ("./a/b.ts ../c/d.tsx a//e.js ~/f.toml", {"a/b.ts", "c/d.tsx", "a/e.js", "~/f.toml"}),
    (
        "edit Makefile, docker/Dockerfile, go.mod, .gitignore and docs/README.",
        {"Makefile", "docker/Dockerfile", "go.mod", ".gitignore", "docs/README"},
    ),
    ("--config=conf/app.yaml -I/opt/inc/a.h", {"conf/app.yaml", "/opt/inc/a.h"}),
    ("--- a/src/x.py\n+++ b/src/y.py\ndiff --git a/src/z.py b/src/z.py", {"src/x.py", "src/y.py", "src/z.py"}),
    ("look into a/x.py", {"a/x.py"}),
    ("-lib/gone.rb\n+lib/new.rb", {"lib/gone.rb", "lib/new.rb"}),
    ("tests/test_x.py::TestFoo::test_bar", {"tests/test_x.py"}),
    ("**src/bold.py** and **a.py:** and see(b.py)", {"src/bold.py", "a.py", "b.py"}),
    ("\x1b[01;31m\x1b[Ksrc\x1b[m\x1b[K/x.py", {"src/x.py"}),
    ("grep 'security_groups\\.py' src", {"security_groups.py"}),
    ("src/x.py-12-import os", {"src/x.py"}),
    ("größe/naïve.py", {"größe/naïve.py"}),
    ("see https://github.com/o/r/blob/main/pkg/x.py#L3 and http://x.org/b/c.py?d=e.py, www.a.com/d.py", {"pkg/x.py"}),
    ("file:///testbed/x.js:12:5", {"x.js"}),
    ("github.com/o/r/x.go example.com:80/index.html localhost:8000/a.html", set()),
    ("mail first.last@host.py or a-b@c.md", set()),
    (r"C:\Users\me\new\x.py D:\a.py src\tests\new.py", set()),
    ("C:/Users/me/x.py", set()),
    ("*.py *_test.go ${ROOT}/a.py $X/b.py {root}/c.py %s/d.py <root>/e.py f(x)/g.py", set()),
    ("and/or, 1/2, n/a, s/old/new/g, TCP/IP, 3.5, v1.2.py3", set()),
    ("response.json() self.c Node.js .py x. ... .. . / // np.log a.m", set()),
    ("x/y.unknown x/" + "y" * 300 + ".py", set()),
]

MODULES = [
    ("use os.path.join and np.linalg", {"os.path.join", "np.linalg"}),
    ("from ..utils.text import x", {"utils.text"}),
    ("self.backend.describe(x) cls.a.b this.c.d super.e.f", {"backend.describe", "a.b", "c.d", "e.f"}),
    ("std::fs::read and crate::a", {"std.fs.read", "crate.a"}),
    ("threading.Thread is started", {"threading.Thread"}),
    ("client().describe.run and x[0].y.z", {"describe.run", "y.z"}),
    ("@app.route and `time.Now`", {"app.route", "time.Now"}),
    ("response.json() and rows.Next()", {"response.json", "rows.Next"}),
    ("e.g.foo.bar", {"foo.bar"}),
    (r"grep 'np\.linalg\.norm' and 'np\\.inner'", {"np.linalg.norm", "np.inner"}),
    ("foo.bar. Next", {"foo.bar"}),
    ("self.x this.y", set()),
    ("done.Next we look. It is done.The rest", set()),
    ("e.g. this, i.e. that, a.k.a. it, at 3 a.m.", set()),
    ("1.2.3 v1.2.3 3.x.y 10.0.0.1 python3.9", set()),
    ("https://docs.python.org/a.b www.a.b docs.python.org", set()),
    ("first.last@example.com", set()),
    ("foo.py a/b.c.rs x.test.ts data.json", set()),
    ("and... so..on x. y", set()),
    ("a.b.c main.c x.y", {"a.b.c", "x.y"}),
    ("a.b" + "c" * 200, set()),
]

QUALIFIEDS = [
    ("call Backend.describe", {"Backend.describe"}),
    ("Outer.Inner.method()", {"Outer.Inner.method"}),
    ("Foo::bar and Vec::<u8>::new", {"Foo.bar"}),
    ("tests/x.py::TestFoo::test_bar", {"TestFoo.test_bar"}),
    ("self.Foo.bar", {"Foo.bar"}),
    ("(`Form.save`)", {"Form.save"}),
    ("Ünit.größe", {"Ünit.größe"}),
    ("Model.objects.filter(x=1)", {"Model.objects.filter"}),
    ("a.Foo.bar", set()),
    ("Done.The rest. Ok.Then", set()),
    ("Node.js and U.S. and Ph.D.", set()),
    ("Foo. Bar Foo .bar Foo.1", set()),
    ("Bar.java:12", set()),
    ("Backend", set()),
]

DEFINITIONS = [
    ("def foo_x(a):", {"foo_x"}),
    ("async def load(", {"load"}),
    ("    def self.build\n  def ready?", {"build", "ready"}),
    ("class Foo(Bar):\nclass Baz:\nclass qux { class lower_case", {"Foo", "Baz", "qux", "lower_case"}),
    ("pub fn main_loop<T>() and struct Point { x }", {"main_loop", "Point"}),
    ("func (r *Repo) Handle(x int) {\nfunc Serve(", {"Handle", "Serve"}),
    ("type Shape interface {\ntype Alias = string", {"Shape", "Alias"}),
    ("function* walk(tree) and interface Props", {"walk", "Props"}),
    ("macro_rules! square {", {"square"}),
    ("fun render(x)\nsub parse {\nmodule Tools {", {"render", "parse", "Tools"}),
    ("the class of things, a function returns the type String, module Foo", set()),
    ("undef foo, my_class Foo, x.def foo, subclass Foo", set()),
    ("def\nfoo", set()),
    ("def if def f def self", set()),
    ("def " + "x" * 201, set()),
]

NAMES = [
    ("max_retries = Foo(bar)", {"max_retries", "Foo", "bar"}),
    ("self.x.describe", {"describe"}),
    (r"grep -rn '\bdescribe\b' and 'a\nvalue'", {"grep", "describe", "value"}),
    ("don't isn\u2019t couldn't", set()),
    ("ab abc a1 a12", {"abc", "a12"}),
    ("if for None True return self The THIS and", set()),
    ("___ __ _x_ _private __init__", {"_x_", "_private", "__init__"}),
    ("1abc 0x12ab abc1", {"abc1"}),
    ("moto/ec2/utils.py word", {"word"}),
    ("-name '*_test' 'test_*' *kwargs", {"name", "kwargs"}),
    ("L12 #L10-L20 L12x", {"L12x"}),
    ("größe Δelta", {"größe", "Δelta"}),
    ("https://example.com/path?query=1 rest", {"rest"}),
    ("\x1b[31mred\x1b[0m a\x00bcd \u200bzero", {"red", "bcd", "zero"}),
    ("x" * 200 + " " + "y" * 201, {"x" * 200}),
    ("x@example.com word", {"word"}),
]

LINES = [
    ("line 12 and lines 10-20, Line 7", {"12", "10-20", "7"}),
    ("lines 10 to 20, lines 3 \u2013 5, lines 30 through 40", {"10-20", "3-5", "30-40"}),
    ("line #12, line number 13, line no. 14", {"12", "13", "14"}),
    ("L12 L10-L20 L30-40 #L5", {"12", "10-20", "30-40", "5"}),
    ("file.py:12 and file.py:13:5", {"12", "13"}),
    ('File "x.py", line 12, in f', {"12"}),
    ("src/x.py:10-20", {"10-20"}),
    ("lines 20-10", {"20"}),
    ("lines 12-12", {"12"}),
    ("deadline 12, line twelve, lines: 100, line12, outline 3", set()),
    ("L1 and L2 norms, L10n, XL12, a/L12", set()),
    ("line 0, line 12345678, line 3.5, line 12th", set()),
    ("line\n12", set()),
    ("host:8080 and 12:30:15", set()),
]

ERRORS = [
    ("KeyError: 'x'", {"KeyError"}),
    ("raise MyException() from HTTPError", {"MyException", "HTTPError"}),
    ("DeprecationWarning and E2BigError", {"DeprecationWarning", "E2BigError"}),
    ("requests.ConnectionError", {"ConnectionError"}),
    ("`ValueError`", {"ValueError"}),
    ("Key_Error", {"Key_Error"}),
    ("Error Exception Warning", set()),
    ("keyError someerror KEYERROR", set()),
    ("KeyErrors ErrorKind ErrorX", set()),
    ("errors/KeyError.py", set()),
    ("MyExceptionGroup", set()),
]

FLAGS = [
    ("grep -rn --include='*.py' --no-color x", {"-rn", "--include", "--no-color"}),
    ("find . -name x -type f", {"-name", "-type"}),
    ("`--verbose` \"--dry-run\" ['--max_count=3', (--all", {"--verbose", "--dry-run", "--max_count", "--all"}),
    ("--at-the-beginning", {"--at-the-beginning"}),
    ("  -rf\n\t--force.", {"-rf", "--force"}),
    ("gcc -O2 -Werror", {"-O2", "-Werror"}),
    ("pytest -k x -n 2 --x", set()),
    ("-import os\n-def foo", set()),
    ("a-b well-known x--y ---rule --- -- - -1 --2", set()),
    ("f(-alpha) x=-beta [-gamma", set()),
    ("--a--b --" + "x" * 201, set()),
    ("--größe -ü", set()),
]

NUMBERS = [
    ("issue #1234 took 100 tries", {"1234", "100"}),
    ("(404), 500: x=200", {"404", "500", "200"}),
    ("-100 100-200 #999.", {"100", "200", "999"}),
    ("[100,200]", {"100", "200"}),
    ("x.py:1234", {"1234"}),
    ("12 7 99", set()),
    ("1.2.345 3.14159 123.5 2024.01", set()),
    ("a123 123a 0x123 1_000_000 _123", set()),
    ("000 1,000", set()),
    ("1" * 201, set()),
    ("\u0661\u0662\u0663 ²³¹", set()),
]

TABLES = {
    PATH: PATHS,
    MODULE: MODULES,
    QUALIFIED: QUALIFIEDS,
    DEFINED: DEFINITIONS,
    NAME: NAMES,
    LINE: LINES,
    ERROR: ERRORS,
    FLAG: FLAGS,
    NUMBER: NUMBERS,
}


@pytest.mark.parametrize(
    ("kind", "text", "expected"), [(kind, *case) for kind, cases in TABLES.items() for case in cases]
)
def test_a_text_names(kind: EntityKind, text: str, expected: set[str]) -> None:
    assert found(kind, text) == expected


def test_every_kind_is_found_by_default() -> None:
    text = "a.py:12 os.path Foo.bar def baz KeyError --all 123"
    assert {entity.kind for entity in entities(text)} == ALL_KINDS == set(TABLES)


def test_case_and_spelling_count() -> None:
    assert found(NAME, "name NAME \uff4e\uff41\uff4d\uff45") == {"name", "NAME", "\uff4e\uff41\uff4d\uff45"}


def test_of_names_with_the_shape_of_code_and_defined_ones_no_plain_word_remains() -> None:
    text = "please look at the describe method of moto_backend in HTTPServer"
    names = {entity.text for entity in entities(text, kinds=[NAME], defined={"describe", "absent"})}
    assert names == {"describe", "moto_backend", "HTTPServer"}
    assert {entity.text for entity in entities(text, kinds=EDGE_KINDS, defined=())} == {"moto_backend", "HTTPServer"}


def test_edges_are_drawn_by_nothing_that_meets_by_chance() -> None:
    assert {LINE, FLAG, NUMBER} == ALL_KINDS - EDGE_KINDS


PLACES = [
    ("src/x.py:12: error\nsrc/y.py:3:5: note", [Place("src/x.py", 12, 12), Place("src/y.py", 3, 3)]),
    ("a.py:10-20 a.py:20-10", [Place("a.py", 10, 20), Place("a.py", 20, 20)]),
    ("src/x.py:12:    return 5\nsrc/x.py:12:    again", [Place("src/x.py", 12, 12)]),
    ('  File "/testbed/pkg/m.py", line 7, in f', [Place("pkg/m.py", 7, 7)]),
    ("  --> src/main.rs:12:5\n\tmain.go:33 +0x1d", [Place("src/main.rs", 12, 12), Place("main.go", 33, 33)]),
    ("at f (/testbed/app.js:4:2)\nat file:///testbed/b.mjs:5:6", [Place("app.js", 4, 4), Place("b.mjs", 5, 5)]),
    ("at com.foo.Bar.baz(Bar.java:12)", [Place("Bar.java", 12, 12)]),
    ("src/x.ts(12,5): error, > /testbed/q.py(33)f()", [Place("src/x.ts", 12, 12), Place("q.py", 33, 33)]),
    ("`x.py` (lines 10-20), y.py line 3, `z.py`:4", [Place("x.py", 10, 20), Place("y.py", 3, 3), Place("z.py", 4, 4)]),
    ("in /testbed/x.php on line 12; /testbed/C.cs:line 3", [Place("x.php", 12, 12), Place("C.cs", 3, 3)]),
    ("https://github.com/o/r/blob/0a1b/pkg/x.py#L10-L20", [Place("pkg/x.py", 10, 20)]),
    ("src/x.py-12-import os\n--\nsrc/x.py:13:x", [Place("src/x.py", 12, 12), Place("src/x.py", 13, 13)]),
    ("run.sh: line 12: foo: command not found; x.py:L3-L4", [Place("run.sh", 12, 12), Place("x.py", 3, 4)]),
    ("Makefile:3: *** missing separator", [Place("Makefile", 3, 3)]),
    ('{"a.py":12} b.py: 12 c.py:0 d.py:12abc e.py::test 12:5 x:12 f.py:12345678', []),
    ("g.py\nline 12", []),
]


@pytest.mark.parametrize(("text", "expected"), PLACES)
def test_a_text_points_at_lines(text: str, expected: list[Place]) -> None:
    assert places(text, ROOTS) == expected


@pytest.mark.parametrize(
    ("path", "normalized"),
    [
        ("/testbed/a/b.py", "a/b.py"),
        ("//testbed//a///b.py", "a/b.py"),
        ("/testbed/nested/b.py", "b.py"),
        ("/testbed/./nested/../c.py", "c.py"),
        ("/testbed", ""),
        ("/testbed/", ""),
        ("/testbeds/a.py", "/testbeds/a.py"),
        ("/x/testbed/a.py", "/x/testbed/a.py"),
        ("testbed/a.py", "testbed/a.py"),
        ("./a.py", "a.py"),
        ("././a/./b.py", "a/b.py"),
        ("../../a.py", "a.py"),
        ("a/../b.py", "b.py"),
        ("/../etc//x", "/etc/x"),
        ("a/b.py", "a/b.py"),
        ("a/", "a"),
        ("/", "/"),
        ("", ""),
        (".", ""),
    ],
)
def test_a_path_is_compared_as(path: str, normalized: str) -> None:
    assert normalized_path(path, ROOTS) == normalized


@pytest.mark.parametrize(
    ("path", "normalized"),
    [
        ("a/b.py", "b.py"),
        ("b/b/c.py", "b/c.py"),
        ("i/x.py", "x.py"),
        ("src/x.py", "src/x.py"),
        ("/dev/null", "/dev/null"),
    ],
)
def test_the_prefixes_of_a_diff_fall_away_in_its_head_only(path: str, normalized: str) -> None:
    assert normalized_path(path, in_diff=True) == normalized
    assert normalized_path(path) == path


@pytest.mark.parametrize("work", [entities, places, normalized_path])
def test_a_root_that_is_not_absolute_is_refused(work: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="absolute"):
        work("text", roots=["testbed"])


def test_the_root_of_the_file_system_is_no_root() -> None:
    assert normalized_path("/opt/x.py", ["/"]) == "/opt/x.py"


@pytest.mark.parametrize(
    ("asked", "shown", "held"),
    [
        (Entity(MODULE, "a.b.c"), Entity(MODULE, "a.b.c"), True),
        (Entity(MODULE, "a.b.c"), Entity(MODULE, "b.c"), True),
        (Entity(MODULE, "a.b.c.d"), Entity(MODULE, "c.d"), True),
        (Entity(MODULE, "models.Foo.save"), Entity(QUALIFIED, "Foo.save"), True),
        (Entity(QUALIFIED, "Foo.save"), Entity(MODULE, "models.Foo.save"), True),
        (Entity(MODULE, "b.c"), Entity(MODULE, "a.b.c"), True),
        (Entity(MODULE, "a.b"), Entity(MODULE, "a.b.c"), True),
        (Entity(NAME, "c"), Entity(MODULE, "a.b.c"), True),
        (Entity(MODULE, "x.b.c"), Entity(MODULE, "a.b.c"), True),
        (Entity(MODULE, "a.b.c"), Entity(MODULE, "a.b"), False),
        (Entity(MODULE, "a.b.c"), Entity(NAME, "c"), False),
        (Entity(MODULE, "a.c"), Entity(MODULE, "a.b.c"), False),
        (Entity(MODULE, "ab.c"), Entity(MODULE, "b.c"), False),
        (Entity(PATH, "utils.py"), Entity(PATH, "moto/core/utils.py"), True),
        (Entity(PATH, "core/utils.py"), Entity(PATH, "moto/core/utils.py"), True),
        (Entity(PATH, "moto/core"), Entity(PATH, "moto/core/utils.py"), True),
        (Entity(PATH, "lib/x.so"), Entity(PATH, "/usr/lib/x.so"), True),
        (Entity(PATH, "t/X.java"), Entity(PATH, "a/b/" * 10 + "t/X.java"), True),
        (Entity(MODULE, "moto.core.utils"), Entity(PATH, "moto/core/utils.py"), True),
        (Entity(MODULE, "moto.core"), Entity(PATH, "moto/core/__init__.py"), True),
        (Entity(NAME, "core"), Entity(PATH, "moto/core/utils.py"), True),
        (Entity(PATH, "moto/core/utils.py"), Entity(PATH, "utils.py"), False),
        (Entity(PATH, "tils.py"), Entity(PATH, "utils.py"), False),
        (Entity(PATH, "oto/utils.py"), Entity(PATH, "moto/utils.py"), False),
        (Entity(PATH, "/usr/x.py"), Entity(PATH, "usr/x.py"), False),
        (Entity(PATH, "moto/core/utils.py"), Entity(MODULE, "moto.core.utils"), False),
        (Entity(NAME, "foo"), Entity(DEFINED, "foo"), True),
        (Entity(DEFINED, "foo"), Entity(NAME, "foo"), True),
        (Entity(ERROR, "FooError"), Entity(NAME, "FooError"), True),
        (Entity(NAME, "foo"), Entity(NAME, "Foo"), False),
        (Entity(LINE, "10"), Entity(LINE, "10-20"), True),
        (Entity(LINE, "20"), Entity(LINE, "10-20"), True),
        (Entity(LINE, "15"), Entity(LINE, "10-20"), False),
        (Entity(LINE, "10-20"), Entity(LINE, "10"), False),
        (Entity(LINE, "123"), Entity(NUMBER, "123"), False),
        (Entity(FLAG, "--all"), Entity(FLAG, "--all"), True),
        (Entity(FLAG, "--all"), Entity(NAME, "all"), False),
    ],
)
def test_what_was_shown_holds_what_says_no_more(asked: Entity, shown: Entity, held: bool) -> None:
    assert holds(asked, [shown]) is held


def test_nothing_is_held_by_nothing() -> None:
    assert not holds(Entity(NAME, "foo"), [])
    assert Surfaced().first(Entity(NAME, "foo")) is None


def test_an_entity_is_first_held_by_the_text_that_showed_it() -> None:
    surfaced = Surfaced()
    for text in ("nothing", "see b.cd in moto/x.py", "", "a.b.cd of moto/x.py"):
        surfaced.add(entities(text))
    firsts = {name: surfaced.first(Entity(kind, name)) for kind, name in [(MODULE, "a.b.cd"), (MODULE, "a.b")]}
    assert firsts == {"a.b.cd": 1, "a.b": 3}
    assert surfaced.first(Entity(PATH, "x.py")) == 1
    assert surfaced.first(Entity(PATH, "y.py")) is None


@pytest.mark.parametrize(
    ("word", "stops"),
    [
        ("if", True),
        ("impl", True),
        ("self", True),
        ("None", True),
        ("the", True),
        ("The", True),
        ("through", True),
        ("nonlocal", True),
        ("None_", False),
        ("selfie", False),
        ("describe", False),
        ("Thread", False),
        ("SELF", False),
    ],
)
def test_keywords_and_words_of_grammar_are_no_names(word: str, stops: bool) -> None:
    assert is_stop_word(word) is stops


PIECES = st.sampled_from(
    [text for cases in TABLES.values() for text, _ in cases]
    + [
        "/testbed",
        "/testbed/",
        "/nested",
        "/./",
        "..",
        "//",
        "a/",
        "-",
        "*",
        "$",
        "\\",
        "\n",
        " ",
        ":",
        "12",
        "\x1b[",
        "m",
        "https://",
        "www.",
        "@",
        "x.py",
        "'t",
        "`",
        "--- a/",
        "diff --git ",
        "line ",
        "L",
        "é",
        "\u0301",
        "\u2028",
        "\r",
        "\x00",
    ]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=80)


@given(TEXTS, TEXTS)
def test_two_texts_one_below_the_other_name_what_each_of_them_names(above: str, below: str) -> None:
    both = f"{above}\n{below}"
    assert entities(above, roots=ROOTS) | entities(below, roots=ROOTS) <= entities(both, roots=ROOTS)
    assert {*places(above, ROOTS), *places(below, ROOTS)} <= set(places(both, ROOTS))


@given(TEXTS)
def test_no_path_lies_under_a_root_and_each_is_normalized(text: str) -> None:
    paths = {*found(PATH, text), *(place.path for place in places(text, ROOTS))}
    for path in paths:
        assert path and not f"{path}/".startswith("/testbed/")
        assert normalized_path(path, ROOTS) == path


@given(st.text("ab/.~-", max_size=20) | TEXTS, st.booleans())
def test_normalizing_twice_changes_nothing(path: str, in_diff: bool) -> None:
    once = normalized_path(path, ROOTS, in_diff=in_diff)
    assert normalized_path(once, ROOTS) == once


@given(TEXTS, TEXTS)
def test_a_text_holds_what_it_names_whatever_else_was_shown(text: str, other: str) -> None:
    named = entities(text, roots=ROOTS)
    surfaced = Surfaced()
    surfaced.add(entities(other, roots=ROOTS))
    surfaced.add(named)
    for entity in named:
        assert holds(entity, {entity}) and holds(entity, named) and surfaced.holds(entity)


@given(st.sampled_from(EntityKind), st.text(max_size=20))
def test_an_entity_holds_itself_whatever_its_text(kind: EntityKind, text: str) -> None:
    assert holds(Entity(kind, text), [Entity(kind, text)])


@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_what_is_held_first_by_a_text_is_held_from_there_on(texts: list[str], asked: str) -> None:
    wanted = entities(asked)
    assume(wanted)
    surfaced = Surfaced()
    since: dict[Entity, int] = {}
    for number, text in enumerate(texts):
        surfaced.add(entities(text))
        for entity in wanted:
            if surfaced.holds(entity):
                since.setdefault(entity, number)
    assert {entity: surfaced.first(entity) for entity in wanted} == {entity: since.get(entity) for entity in wanted}


UNITS = [
    "a.a.a.",
    "a.b ",
    "a::",
    "/////",
    "a/",
    "../",
    "a/b.py ",
    "x.py-12-",
    ".a-1",
    "____",
    "aaaa",
    "aB",
    "1",
    "123 ",
    "1.",
    "-----",
    "-a",
    "--a-",
    " --a",
    "line 1-",
    "lines 1 to ",
    "L1-",
    "x.py:1",
    'x.py", line ',
    "x.py(",
    "def ",
    "def a(",
    "func (",
    "class A",
    "http://",
    "http://a/blob/b/c",
    "/blob/",
    "www.",
    "file:///",
    "a@b.",
    "\x1b[",
    "\x1b[1m",
    "\\",
    "\\n",
    "\\.",
    "C:\\",
    "*_",
    "_*",
    "n't",
    "\n",
    "\n\n--- a/b",
    "\ndiff --git a/ b/",
    "e.g.",
    "self.",
    "FooError ",
    "`",
    '"',
    "{",
    "$",
    "é",
    "\u0301",
    "漢字",
    "\0",
    "/testbed/",
    "/testbed/a ",
    "Makefile",
    "macro_rules! ",
    " ",
    "\t",
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", UNITS)
def test_the_time_to_read_a_hostile_text_grows_as_it_does(unit: str) -> None:
    """One run of it, in words and in lines of their own."""

    def work(text: str) -> None:
        entities(text, roots=ROOTS)
        places(text, ROOTS)

    def of(piece: str) -> Callable[[int], str]:
        return lambda size: piece * (size // len(piece))

    for separator in ("", " 7 ", "x\n"):
        assert_linear(of(unit + separator), work, 25_000)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", ["a.", "a/", "a-", "a"])
def test_the_time_to_take_a_hostile_text_in_grows_as_it_does(unit: str) -> None:
    def named(size: int) -> list[Entity]:
        return [Entity(kind, f"{unit * 7}{number}") for number in range(size) for kind in EntityKind]

    def work(found: list[Entity]) -> None:
        surfaced = Surfaced()
        surfaced.add(found)
        assert all(map(surfaced.holds, found))

    assert_linear(named, work, 100)
    assert_linear(lambda size: [Entity(kind, unit * size) for kind in EntityKind], work, 25_000)
