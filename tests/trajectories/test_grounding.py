"""What code decides of a rewritten step: its form, and that it names nothing the conversation has not shown."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection
from typing import Any

import pytest

from prchain.core.llm.model import Reply, ToolCall
from tests.growth import assert_linear
from trajectories.agents.scaffolds.turns import ParsedCall, named_calls, read_turn
from trajectories.agents.steps.conversation import Step
from trajectories.agents.tools.toolset import toolset
from trajectories.curation.windows.grounding import form_faults, unshown
from trajectories.curation.windows.scripts import own_names, parts_of
from trajectories.curation.windows.shown import Shown, observed
from trajectories.model import Entry, EntryKind

ROOTS = ("/testbed",)
TOOLS = toolset("full")
QUERY = "Adding a price twice gives a wrong sum. See `Cart.total`."

VIEW = """Lines 400 to 402 of /testbed/shop/cart.py, which has 900:
   400\tclass Cart:
   401\t    def add_price(self, price):
   402\t        self.prices.append(price)"""


def call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall("c", tool, json.dumps(arguments))


def bash(command: str) -> ToolCall:
    return call("bash", command=command)


def view(path: str, *lines: int) -> ToolCall:
    given = {"view_range": list(lines)} if lines else {}
    return call("str_replace_editor", command="view", path=path, **given)


def think(thought: str) -> ToolCall:
    return call("think", thought=thought)


def parsed(*calls: ToolCall) -> tuple[ParsedCall, ...]:
    reply = Reply("words", "m", tool_calls=calls)
    return read_turn(reply, named_calls(reply, 1), TOOLS.tools, TOOLS.ending).calls


def exchange(step: int, done: ToolCall, content: str, words: str = "") -> list[Entry]:
    done = ToolCall(f"c{step}", done.name, done.arguments)
    return [
        Entry(0, 1, 1, step, EntryKind.TURN, "assistant", words, tool_calls=(done,)),
        Entry(0, 1, 1, step, EntryKind.OBSERVATION, "tool", content, tool_call_id=done.id, tool_name=done.name),
    ]


CONVERSATION = [
    *exchange(1, bash("grep -rn add_price ."), "shop/cart.py:401:    def add_price(self, price):\nshop/till.py:12:x"),
    *exchange(2, view("/testbed/shop/cart.py", 400, 402), VIEW),
    *exchange(3, bash("ls tests"), "<returncode>0</returncode>\n<output>\ntest_cart.py\ntest_till.py\n</output>"),
]


def defines(*names: str) -> Callable[[Collection[str]], Collection[str]]:
    return lambda words: set(names) & set(words)


def faults(words: str, *calls: ToolCall, entries: Collection[Entry] = CONVERSATION, defined: str = "") -> list[str]:
    shown = observed(QUERY, entries, ROOTS)
    return [it.words for it in unshown(words, parsed(*calls), shown, defines(*defined.split()), ROOTS)]


def assert_refused(name: str, words: str, *calls: ToolCall, defined: str = "") -> None:
    said = faults(words, *calls, defined=defined)
    assert any(name in fault for fault in said), said


# ---- form

REPLACED = Step(Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", "", tool_calls=(bash("ls  tests"),)), ())


def form(words: str, *calls: ToolCall) -> list[str]:
    return [fault.rule for fault in form_faults(words, parsed(*calls), REPLACED)]


def test_a_whole_call_with_words_breaks_no_rule_of_form() -> None:
    assert form("I read the cart first.", view("/testbed/shop/cart.py")) == []
    assert form("The case of an empty cart.", bash("python - <<'E'\ndef f(): ...\nE")) == []


@pytest.mark.parametrize(
    "calls",
    [
        (call("bash", cmd="ls"),),
        (call("browse", url="x"),),
        (ToolCall("c", "bash", "{"),),
        (call("submit"),),
        (bash("cat shop/..."),),
        (view("/testbed/.../cart.py"),),
        (bash("ls tests"),),
    ],
    ids=["arguments", "tool", "json", "submits", "abbreviated", "path", "same"],
)
def test_a_call_that_cannot_be_run_or_does_the_old_thing_breaks_c3(calls: tuple[ToolCall, ...]) -> None:
    assert "C3" in form("Next.", *calls)


@pytest.mark.parametrize("calls", [(), (bash("ls a"), bash("ls b"))])
def test_a_step_has_one_call(calls: tuple[ToolCall, ...]) -> None:
    assert form("Next.", *calls) == ["C5"]


@pytest.mark.parametrize(
    "words",
    [
        "This is the target node.",
        "The reference patch adds it.",
        "As the hint says, the sum is wrong.",
        "The hidden tests expect 3.",
        "I was told to look here.",
        "The upstream fix does so.",
        "It is one of the fail-to-pass tests.",
    ],
)
def test_words_on_how_a_step_came_about_break_c4_wherever_they_stand(words: str) -> None:
    assert set(form(words, bash("ls a"))) == {"C4"}
    assert set(form("Well.", think(words))) == {"C4"}
    assert set(form("Well.", bash(f"true # {words}"))) == {"C4"}


def test_ordinary_words_near_those_of_c4_pass() -> None:
    assert not form("The graph of imports points at a node of the tree; a golden rule, no hints.", bash("ls a"))


# ---- prose


@pytest.mark.parametrize(
    "words",
    [
        "Before I go on, I check how add_price keeps what it is given; prices are appended as they come.",
        "`Cart.add_price` appends, and so shop/cart.py holds a list.",
        "What does Cart.total do? The KeyError that I expected did not come, and __init__ is plain.",
        "I'd rather see test_cart.py first, i.e. what the tests say about the till.",
    ],
)
def test_prose_on_what_was_shown_passes(words: str) -> None:
    assert faults(words, think(words)) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("round_price", "Then round_price takes over."),
        ("RoundedPrice", "A RoundedPrice would do."),
        ("PRICE_STEP", "It is a multiple of PRICE_STEP."),
        ("Cart.discount", "Next comes Cart.discount in line."),
        ("shop/tax.py", "Taxes lie in shop/tax.py, I think."),
        ("rebate", "It is what `rebate` does."),
        ("SumError", "That raises a SumError."),
        ("612", "See line 612 of the file."),
        ("--strict-sums", "With --strict-sums it fails."),
    ],
)
def test_prose_cannot_name_what_was_not_shown(name: str, words: str) -> None:
    assert_refused(name, words, bash("ls tests"))
    assert_refused(name, "So.", think(words))


def test_a_plain_word_is_a_name_in_prose_where_the_stage_defines_it() -> None:
    assert_refused("rebatch", "It goes through rebatch first.", bash("ls tests"), defined="rebatch")
    assert faults("It goes through rebatch first.", bash("ls tests")) == []


def test_a_dotted_name_is_shown_by_its_parts_and_by_nothing_less() -> None:
    assert faults("`Cart.add_price` is short.", think("Cart.prices grows.")) == []
    assert_refused("Cart.close_out", "Cart.close_out is short.", bash("ls tests"))


def test_a_run_of_the_words_of_a_shown_name_is_no_news_and_its_other_spelling_is() -> None:
    assert faults("Each price counts.", bash("grep -rnE 'price|_price' shop")) == []
    assert_refused("AddPrice", "The AddPrice of others.", bash("ls tests"))
    assert_refused("TestCart", "I run TestCart first.", bash("ls tests"))
    assert_refused("add_all_prices", "The add_all_prices of others.", bash("ls tests"))


def test_lines_in_prose_are_near_what_was_shown() -> None:
    assert faults("Line 401 appends, and lines 401-420 may do more.", bash("ls tests")) == []
    assert_refused("line 733", "Line 733 appends.", bash("ls tests"))


def test_names_of_python_itself_pass_in_prose() -> None:
    assert faults("A ForwardRef, an OrderedDict, or what annotationlib has.", bash("grep -rn annotationlib shop")) == []


def test_what_a_script_of_its_own_is_given_is_input() -> None:
    script = "cat > /tmp/demo.py <<'E'\ndef push(): ...\nE\n"
    assert faults("So.", bash(f"{script}python /tmp/demo.py pus --cuont 1; python /tmp/demo.py push")) == []
    assert_refused("round_price", "So.", bash(f"{script}python /tmp/demo.py round_price"))
    assert_refused("rebate", "So.", bash(f"{script}python /tmp/demo.py; grep -rn rebate shop"))


# ---- commands


@pytest.mark.parametrize(
    "command",
    [
        "grep -rnE --include=*.py -A12 'add_price|prices' shop tests docs | sort | uniq -c | head -n 40",
        "git log --oneline -5 -- shop/cart.py",
        "cd /testbed && python -m pytest -q tests/test_cart.py -k add_price 2>&1 | tail -n 5",
        "sed -n '380,440p' shop/cart.py 2>/dev/null; wc -l shop/till.py",
        "find . -name 'test_*.py' -not -path '*/build/*' | xargs wc -l",
        "echo 'nothing uses it any more' && ls shop",
        "# the callers first\ngrep -rn 'add_price(' shop",
    ],
)
def test_commands_of_a_developer_on_what_was_shown_pass(command: str) -> None:
    assert [fault for fault in faults("Next.", bash(command)) if "build" not in fault] == []


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("rebate", "grep -rn rebate shop"),
        ("round_price", "grep -rn 'round_price\\|add_price' shop"),
        ("shop/tax.py", "cat ./shop/../shop/tax.py"),
        ("test_rounding", "pytest tests/test_cart.py -k 'add_price or test_rounding'"),
        ("test_tax.py", "pytest tests/test_tax.py"),
        ("round_price", "echo 'round_price is next'"),
        ("round_price", "true # look at round_price"),
        ("strict-sums", "python -m shop --strict-sums"),
        ("strict-sums", "python shop/cart.py --strict-sums | head"),
        ("612", "sed -n '612,640p' shop/cart.py"),
        ("8912345", "grep -rn 8912345 shop"),
    ],
)
def test_commands_cannot_name_what_was_not_shown(name: str, command: str) -> None:
    assert_refused(name, "Next.", bash(command))


def test_what_a_listing_shows_lies_in_the_folder_that_was_listed() -> None:
    assert faults("Next.", view("/testbed/tests/test_till.py")) == []
    several = exchange(
        1, bash("ls -l shop tests"), "shop:\n-rw-r 1 a b 12 May 2 tax.py\n\ntests:\nx\n-rw-r 1 a test_tax.py"
    )
    assert faults("Next.", bash("cat shop/tax.py tests/test_tax.py"), entries=several) == []
    assert "path tests/tax.py was not shown" in faults("Next.", bash("cat tests/tax.py"), entries=several)
    listing = "/testbed/shop holds, two levels deep and without hidden names:\nplugins/\nplugins/tax.py"
    editor = exchange(1, view("/testbed/shop"), listing)
    assert faults("Next.", view("/testbed/shop/plugins/tax.py"), entries=editor) == []


# ---- lines


@pytest.mark.parametrize("lines", [(400, 402), (365, 440), (395, 480), (310, 403), (1, 60), (405, -1)])
def test_a_view_widens_what_was_seen_and_reads_a_page_on(lines: tuple[int, int]) -> None:
    assert faults("On.", view("/testbed/shop/cart.py", *lines)) == []


@pytest.mark.parametrize("lines", [(612, 640), (395, 733), (121, 166)])
def test_a_view_far_from_what_was_seen_is_refused(lines: tuple[int, int]) -> None:
    assert any(fault.startswith("line ") for fault in faults("On.", view("/testbed/shop/cart.py", *lines)))


def test_lines_are_those_of_one_file() -> None:
    assert faults("On.", view("/testbed/shop/till.py", 401, 444)) == [
        "line 401 was not shown",
        "line 444 was not shown",
    ]


def test_lines_that_sed_and_cat_printed_were_shown() -> None:
    entries = exchange(1, bash("sed -n '500,620p' shop/cart.py"), "x\n" * 120)
    assert faults("On.", view("/testbed/shop/cart.py", 561, 579), entries=entries) == []
    entries = exchange(1, bash("cat shop/cart.py"), "x\n" * 700)
    assert faults("On.", view("/testbed/shop/cart.py", 561, 579), entries=entries) == []
    assert faults("On.", view("/testbed/shop/cart.py", 861, 879), entries=entries)


# ---- code that the step writes itself

SCRIPT = """
from pathlib import Path
from shop.cart import Cart

class Dummy:
    currency = "EUR"

def attempt(price, times=2):
    basket = Cart()
    for number in range(times):
        basket.add_price(price)  # the same one again
    return basket

total_before = [price * 2 for price in attempt(price=12).prices if price > 1024]
try:
    print("twice the same:", total_before, Path("x").read_text().splitlines())
except (OSError, ValueError) as problem:
    print(f"failed with {problem.args!r}", sorted({3: 'a'}.items(), key=lambda pair: pair[0]))
"""


@pytest.mark.parametrize(
    "command",
    [
        f"python - <<'EOF'\n{SCRIPT}EOF",
        f"cat > /tmp/repro_twice.py <<'EOF'\n{SCRIPT}EOF\npython /tmp/repro_twice.py",
        f"cat <<EOF > repro.py\n{SCRIPT}EOF\npython repro.py",
        "python -c \"from shop.cart import Cart; cart = Cart(); cart.add_price(3); print('sum', cart.prices)\"",
        "python -c 'import inspect; from shop import cart; print(inspect.getsource(cart.Cart.add_price))'",
    ],
)
def test_a_script_on_shown_names_passes_with_its_own_names_and_strings(command: str) -> None:
    entries = [*CONVERSATION, *exchange(4, bash("true"), "twice")]
    assert faults("I try it.", bash(command), entries=entries) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("round_price", "from shop.cart import Cart\nprint(Cart().round_price(3))"),
        ("round_price", "print(getattr(x, 'round_price'))"),
        ("round_price", "print(f'{cart.round_price}')"),
        ("test_rounding", "def test_rounding():\n    pass"),
        ("RoundedPrice", "class RoundedPrice(Cart):\n    pass"),
        ("PRICE_STEP", "PRICE_STEP = 5"),
        ("allow_rebates", "Cart(allow_rebates=True)"),
        ("rebate", "print(Cart().rebate)"),
        ("shop/tax.py", "open('shop/tax.py')"),
        ("48271", "print(Cart().add_price(48271))"),
        ("sum_up", "sum_up = 1"),
    ],
)
def test_a_script_cannot_use_what_was_not_shown(name: str, code: str) -> None:
    assert_refused(name, "I try it.", bash(f"python - <<'EOF'\n{code}\nEOF"), defined="sum_up")
    assert_refused(name, "I try it.", bash(f'python -c "\n{code}\n"'), defined="sum_up")
    made = call("str_replace_editor", command="create", path="/testbed/repro.py", file_text=code)
    assert_refused(name, "I try it.", made, defined="sum_up")


def test_a_file_to_throw_away_is_the_steps_own_and_one_of_the_repository_is_not() -> None:
    def made(path: str) -> ToolCall:
        return call("str_replace_editor", command="create", path=path, file_text="print(1)\n")

    assert faults("So.", made("/testbed/repro_price.py")) == []
    assert faults("So.", made("/tmp/scratch/check.py")) == []
    assert faults("So.", made("/testbed/shop/rounding.py")) == ["path shop/rounding.py was not shown"]
    told = faults("So.", made("/testbed/test_rounding_mode.py"))
    assert sorted(told) == ["name mode was not shown", "name rounding was not shown"]
    assert faults("So.", view("/testbed/repro_price.py")) == ["path repro_price.py was not shown"]


def test_in_an_edit_of_the_repository_only_plain_names_are_the_steps_own() -> None:
    def edit(new: str) -> ToolCall:
        old = "        self.prices.append(price)"
        return call("str_replace_editor", command="str_replace", path="/testbed/shop/cart.py", old_str=old, new_str=new)

    assert faults("So.", edit("        known = set(self.prices)\n        self.prices.append(price)")) == []
    assert faults("So.", edit("        rounded_sum = 3")) == ["name rounded_sum was not shown"]


@pytest.mark.parametrize(
    "command",
    [
        "cat pyproject.toml tests/conftest.py; ls shop/__init__.py",
        "PYTHONPATH=src python -m pytest tests/test_cart.py --tb=short -p no:randomly",
        "git log --pretty=oneline -- shop/cart.py; grep -rn 'TODO' shop --exclude-dir=node_modules",
        "python - <<'E'\nclass MyCart:\n    def add_price(self, some_price): return open('/no/such/file.pem')\nE",
        "python -c \"print('{{ foo.bar }}')\"",
        "python - <<'E'\ndef check(tmp_path, first_price): (tmp_path / 'x.txt').write_text('')\nE",
    ],
)
def test_what_every_project_has_and_what_is_made_up_tells_nothing(command: str) -> None:
    assert faults("I heard of it on GitHub.", bash(command)) == []


def test_own_names_are_bound_by_statements_and_not_by_keywords_of_calls() -> None:
    code = "first, last_one = 1, 2\nfor a_b, c in x: y\nwith f() as handle: z(some_key=1, plain=2)\nlambda p, q: 0"
    assert {"first", "last_one", "a_b", "handle", "p", "q"} <= own_names(code)
    assert not {"some_key", "plain", "z"} & own_names(code)


def test_a_command_is_taken_apart() -> None:
    command = "cat > a.py <<'E' && python -c \"x = \\\"1\\\"\" 'arg'\nbody\nE\necho 'said' # no remark\n# remark\nls"
    parts = parts_of(command)
    assert parts.scripts == ('x = \\"1\\"', "body")
    assert parts.prose == ("'said'", "# remark")
    assert "body" not in parts.shell and "said" not in parts.shell and "arg" in parts.shell
    assert parts_of("python -c 'never closed").scripts == ()
    assert parts_of("cat <<E\nopen").scripts == ("open",)


# ---- size

HOSTILE = [
    "a",
    "a.",
    "a,",
    "a = ",
    "for ",
    "for a,",
    "git -git ",
    "python ",
    "python -c 'x",
    "<<E\n",
    "echo '",
    'echo "',
    "ls a ",
    "-a",
    "--a-",
    "> /tmp/a ",
    "def f(",
    "lambda a, ",
    "'\"",
    "12345,",
    "sed 1234,5678p ",
    "a_b",
    "# ",
    ";\t",
    "`",
    "\\",
    "\n",
    " ",
    "A=b ",
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear_in_a_command_and_in_what_was_shown(piece: str) -> None:
    seed = random.Random(1).random()

    def work(text: str) -> None:
        unshown(text, parsed(bash(f"{text} {seed}")), Shown(), defines(), ROOTS)
        observed(text, exchange(1, bash(text), text), ROOTS)

    assert_linear(lambda size: piece * (size // len(piece)), work, 12_000)
