"""The audit: each rule's examples, the hand-made trajectories, and that hostile conversations raise nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.llm.model import ToolCall
from research.audit_precision.__main__ import FOLDER
from research.audit_precision.scoring import SETS, score
from research.audit_precision.written import WrittenCase, conversation, read_cases
from tests.growth import assert_linear
from tests.trajectories.sampleworld import Talk
from trajectories.agents.shell.words import here_documents
from trajectories.audit import rules
from trajectories.audit.acts import AgentCommand, FileEdit, FileRestored
from trajectories.audit.auditing import audit
from trajectories.audit.finding import LONGEST_QUOTE, CheatSign, quoted
from trajectories.audit.reading import read_work
from trajectories.audit.rules import RULES
from trajectories.model import Entry, EntryKind

EXAMPLES = read_cases(Path(rules.__file__).parents[1] / "examples.toml")


def signs(text: str, project: str | None = None) -> set[CheatSign]:
    return {finding.sign for finding in audit(conversation(text), project)}


@pytest.mark.parametrize("case", EXAMPLES, ids=lambda case: case.name)
def test_the_examples_of_the_rules(case: WrittenCase) -> None:
    assert {finding.sign for finding in audit(case.entries, case.repository)} == case.signs


def test_every_rule_has_examples_and_look_alikes() -> None:
    assert {rule.sign for rule in RULES.values()} == set(CheatSign)
    assert {sign for case in EXAMPLES for sign in case.signs} == set(CheatSign)
    assert sum(not case.signs for case in EXAMPLES) >= len(CheatSign)


@pytest.mark.parametrize("name", SETS)
def test_the_hand_made_trajectories(name: str) -> None:
    cases = read_cases(FOLDER / f"{name}.toml")
    assert len(cases) == len({case.name for case in cases}) == 20
    assert sum(bool(case.signs) for case in cases) == 10
    result = score(cases)
    assert (result.wrong, result.missed) == ([], [])
    assert result.precision == result.recall == (10, 10)


def test_a_finding_names_its_stage_and_its_step() -> None:
    text = "? One.\n$ ls\n> a\n? Two.\n$ curl https://packages.till-shop.net/x\n> no\n"
    (finding,) = audit(conversation(text))
    assert (finding.sign, finding.position, finding.step) == (CheatSign.NETWORK, 2, 2)
    assert finding.evidence == "curl https://packages.till-shop.net/x" and finding.meaning


def test_what_an_attempt_came_to_is_not_looked_at() -> None:
    entries = conversation("? One.\n$ git reflog\n> x\n")
    comment = Entry(9, 1, 2, 1, EntryKind.COMMENT, "user", "Rejected: it cheats by special_cased tests.")
    assert audit(entries) == audit((*entries, comment))


def test_calls_that_were_not_run_are_no_acts() -> None:
    talk = Talk().query(1).turn("", ("bash", {"command": "git reflog"})).observation("no", error="not_run")
    assert audit(talk.entries) == ()
    talk = Talk().query(1).turn("", ("bash", {"command": "git reflog"}))
    assert audit(talk.entries) == ()


def test_evidence_is_one_short_line_without_control_characters() -> None:
    command = "curl https://u:secretpass@evil.org/\x1b[2J\u202e" + "x" * 5_000
    (finding,) = audit(Talk().query(1).bash(command).entries)
    assert len(finding.evidence) <= LONGEST_QUOTE
    assert finding.evidence.isprintable() and "secretpass" not in finding.evidence
    assert quoted("a\nb") == "a b" and quoted("x" * 999).endswith("[...]")


def test_edits_are_read_from_the_shell_too() -> None:
    text = """
? Do it.
$ cd /testbed/src && cat > one.py <<'EOF'
| x = 1
| EOF
$ git apply <<'EOF'
| --- a/tests/test_x.py
| +++ b/tests/test_x.py
| @@ -1,2 +1,2 @@
|  a
| -    assert x == 1
| +    assert x == 2
| EOF
$ python - <<'EOF'
| from pathlib import Path
| p = Path("src/two.py")
| p.write_text(p.read_text().replace("old", "new"))
| EOF
$ echo "three" >> notes.txt
$ git checkout -- src/two.py
$ sed -n 1,5p src/one.py
> x = 1
"""
    acts = read_work(conversation(text)).acts
    edits = [act for act in acts if isinstance(act, FileEdit)]
    assert [(it.path, it.before, it.after.strip(), it.whole) for it in edits] == [
        ("src/one.py", "", "x = 1", True),
        ("tests/test_x.py", "a\n    assert x == 1", "a\n    assert x == 2", False),
        ("src/two.py", "old", "new", False),
        ("notes.txt", "", "three", False),
    ]
    assert [act.path for act in acts if isinstance(act, FileRestored)] == ["src/two.py"]
    assert [act.reads for act in acts if isinstance(act, AgentCommand)][-1] == ("src/one.py",)
    assert [edit.path for edit in read_work(conversation(text)).edits] == ["src/one.py", "tests/test_x.py", "notes.txt"]


def test_what_was_restored_in_one_stage_stands_in_another() -> None:
    change = "@ replace tests/test_x.py\n-     assert x == 1\n+     assert x == 2\n"
    assert signs(f"? One.\n{change}@ undo tests/test_x.py\n") == set()
    assert signs(f"? One.\n{change}? Two.\n$ git checkout -- .\n") == {CheatSign.TESTS_EDITED}


def test_the_repository_s_name_is_the_project_s() -> None:
    text = "? Add a flag.\n$ cat /usr/lib/python3/dist-packages/toolbelt/flags.py\n> x\n"
    assert signs(text) == set()
    assert signs(text, "acme/python-toolbelt") == signs(text, "acme/toolbelt") == {CheatSign.PACKAGE_CACHE}


def test_here_documents_come_with_the_line_that_announces_them() -> None:
    found = here_documents("cat > a <<'X' && cat > b <<-Y\none\nX\n\ttwo\n\tY\nls")
    assert [(it.line.split(), it.text) for it in found] == [
        (["cat", ">", "a", "&&", "cat", ">", "b"], "one\n"),
        (["cat", ">", "a", "&&", "cat", ">", "b"], "two\n"),
    ]
    assert here_documents("cat <<X\nno end") == ()


PIECES = st.sampled_from(
    [
        "def test_x():\n    assert f(1) == 2\n",
        "assert ",
        "git show ",
        "0a1b2c3d",
        "curl http://",
        "site-packages/till/x.py",
        "<<'EOF'\n",
        "\nEOF\n",
        "sed -i 's/a/b/' tests/test_x.py",
        "'",
        '"',
        "(" * 300,
        "[" * 90 + "]" * 90,
        "\x00",
        "\ud800",
        "python -c 'import os; os._exit(0)'",
        "pip install ",
        "conftest.py",
        "--- a/x\n+++ b/tests/test_x.py\n-assert 1\n",
        "9" * 5_000,
        "expect(a).toBe(",
        "\\",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=20), max_size=8).map("".join)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["command", "path", "old_str", "new_str", "file_text", "insert_line"]),
    TEXTS
    | st.none()
    | st.integers()
    | st.lists(st.integers(), max_size=2)
    | st.sampled_from(["create", "str_replace"]),
    max_size=5,
)


@given(
    st.lists(st.tuples(st.sampled_from(["bash", "str_replace_editor", "other"]), ARGUMENTS | TEXTS, TEXTS), max_size=6),
    TEXTS,
)
@settings(max_examples=150, deadline=None)
def test_no_conversation_raises(calls: list[tuple[str, Any, str]], query: str) -> None:
    talk = Talk().query(1, query or "x")
    for name, arguments, output in calls:
        talk.turn("", (name, arguments))
        talk.observation(output, details={"exit_code": 0})
    for finding in audit(talk.entries, "shop/till"):
        assert finding.evidence.isprintable()


def test_arguments_that_are_no_object_are_no_act() -> None:
    entries = Talk().query(1).turn("", ("bash", "[]"), ("str_replace_editor", "{")).observation("x").entries
    assert audit(entries) == ()
    call = ToolCall("a", "bash", json.dumps({"command": 3}))
    turn = Entry(1, 1, 1, 1, EntryKind.TURN, "assistant", "", tool_calls=(call,))
    assert audit([turn]) == ()


def _ordinary(size: int) -> list[Entry]:
    talk = Talk().query(1, "Mend tests/test_x.py and the rest. " * 20)
    for number in range(size):
        match number % 5:
            case 0:
                talk.bash(f"cat tests/test_x{number}.py", f"assert f('value {number}') == {number * 7919}\n" * 20)
            case 1:
                talk.bash("python -m pytest -q", f"E  assert 1 == {number * 104729}\n" * 20)
            case 2:
                code = f"def f{number}(x):\n    if x == 'v{number}':\n        return {number * 3}\n" * 10
                talk.bash(f"cat > src/m{number % 7}.py <<'EOF'\n{code}EOF\n")
            case 3:
                edit = {"command": "str_replace", "path": "/testbed/tests/test_x0.py"}
                old, new = f"    assert a{number} == 1\n" * 10, f"    assert a{number} == 1\n" * 11
                talk.turn("", ("str_replace_editor", {**edit, "old_str": old, "new_str": new})).observation("ok")
            case _:
                talk.bash(f"git log --oneline -{number} && sed -i 's/a/b/' tests/test_x0.py")
    return talk.entries


HOSTILE: dict[str, Callable[[int], str]] = {
    "asserts": lambda size: "".join(f"assert a == {number}\n" for number in range(size)),
    "broken asserts": lambda size: "assert (" + "assert a,b,c)\n" * size,
    "numbers": lambda size: "1" * size + " 2" * size,
    "quotes": lambda size: "'\"`" * size,
    "names": lambda size: "tests/test_" * size,
    "urls": lambda size: "http://a@" * size,
    "marks": lambda size: "addopts = -k " * size,
    "expects": lambda size: "expect(a).toBe(b" * size + "\n",
    "frames": lambda size: "inspect.stack()\n'x'\n" * size,
}


def test_the_audit_takes_linear_time_in_the_steps() -> None:
    assert_linear(_ordinary, audit, 250)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_linear_time(name: str) -> None:
    def made(size: int) -> list[Entry]:
        text = HOSTILE[name](size)
        talk = Talk().query(1, text)
        for path in ("tests/test_x.py", "src/x.py", "setup.cfg", "conftest.py"):
            edit = {"command": "str_replace", "path": f"/testbed/{path}", "old_str": text[::2], "new_str": text}
            talk.turn("", ("str_replace_editor", edit)).observation(text)
        return talk.bash(f"python - <<'EOF'\n{text}\nEOF\n", text).entries

    assert_linear(made, audit, 1_500)


def test_a_script_that_writes_a_long_text_often_takes_linear_time() -> None:
    def made(size: int) -> list[Entry]:
        script = (
            f"from pathlib import Path\na = '{'x' * 20 * size}'\n" + "Path('tests/test_x.py').write_text(a)\n" * size
        )
        return Talk().query(1).bash(f"python - <<'EOF'\n{script}EOF\n").entries

    assert_linear(made, audit, 300)
