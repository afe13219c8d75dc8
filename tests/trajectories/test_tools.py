"""The tools in a real sandbox (bubblewrap), and the editor's text as a value."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ExecResult, ResourceLimits, SandboxConfig
from prchain.core.errors import SandboxFileError, SandboxLost
from tests.environments.scripted_sandbox import ScriptedResult, ScriptedSandbox
from tests.trajectories.agentworld import SUBMIT, Memory, Model, call, opening, runs, says, spec, work
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.tools.edits import Edits
from trajectories.agents.tools.texts import Text, numbered
from trajectories.agents.tools.tool import ToolResult, Workspace
from trajectories.agents.tools.toolset import toolset
from trajectories.model import AgentLimits, Ending, Entry, EntryKind

FULL = toolset("full").tools
EDITOR = "str_replace_editor"


@pytest.fixture(scope="module")
def sandbox(bubblewrap: None) -> Iterator[LocalSandbox]:
    sandbox = LocalSandbox(
        SandboxConfig(None, limits=ResourceLimits(memory_bytes=512 << 20, processes=128, disk_bytes=1 << 30))
    )
    with sandbox:
        yield sandbox


@pytest.fixture
def place(sandbox: LocalSandbox) -> Workspace:
    sandbox.exec("rm -rf /testbed/* /testbed/.[a-z]*")
    return Workspace(sandbox, timeout=20)


def edit(place: Workspace, command: str, path: str = "/testbed/a.py", **arguments: Any) -> ToolResult:
    tool = FULL[EDITOR]
    return tool.run(tool.arguments.model_validate({"command": command, "path": path, **arguments}), place)


def bash(place: Workspace, command: str) -> ToolResult:
    tool = FULL["bash"]
    return tool.run(tool.arguments.model_validate({"command": command}), place)


def put(place: Workspace, content: bytes, path: str = "/testbed/a.py") -> None:
    place.sandbox.write(path, content)


def has(place: Workspace, path: str = "/testbed/a.py") -> bytes:
    return place.sandbox.read(path)


# ---- schemas


@pytest.mark.parametrize("name", ["bash", "full", "swe-agent"])
def test_schemas_are_plain_json_that_every_endpoint_takes(name: Any) -> None:
    for schema in toolset(name).schemas:
        assert json.loads(json.dumps(schema)) == schema
        parameters = schema["function"]["parameters"]
        assert set(parameters) == {"type", "properties", "required"}
        for part in parameters["properties"].values():
            assert part["type"] in {"string", "integer", "array"} and part["description"]
        assert set(parameters["required"]) <= set(parameters["properties"])
        assert schema["function"]["description"]


def test_the_editor_s_schema_names_its_commands_and_what_is_needed() -> None:
    (schema,) = [item["function"] for item in toolset("full").schemas if item["function"]["name"] == EDITOR]
    assert schema["parameters"]["required"] == ["command", "path"]
    commands = schema["parameters"]["properties"]["command"]["enum"]
    assert commands == ["view", "create", "str_replace", "insert", "undo_edit"]
    assert schema["parameters"]["properties"]["view_range"]["items"] == {"type": "integer"}


# ---- bash


def test_a_session_keeps_folder_and_variables_and_tells_where_it_is(place: Workspace) -> None:
    result = bash(place, "mkdir -p sub && cd sub && export A=1")
    assert (result.cwd, result.worked, result.submits) == ("/testbed/sub", True, False)
    assert "/testbed/sub 1" in bash(place, "echo $PWD $A").content
    assert bash(place, "ls").cwd is None, "a command that cannot move is not followed by a question"
    assert bash(place, "cd /testbed").cwd == "/testbed"


def test_a_session_is_led_back_to_a_folder_unless_that_is_gone(place: Workspace) -> None:
    bash(place, "cd /testbed; mkdir -p 'it is'")
    restored = Workspace(place.sandbox, {"B": "2"}, cwd="/testbed/it is")
    assert "/testbed/it is 2 cat" in bash(restored, "echo $PWD $B $PAGER").content
    bash(place, "cd /testbed")
    gone = Workspace(place.sandbox, cwd="/testbed/gone")
    assert "\n/testbed\n" in bash(gone, "pwd").content


@pytest.mark.parametrize("name", ["bash", "full", "swe-agent"])
def test_a_pipeline_that_hides_a_failed_command_shows_the_codes_of_all(place: Workspace, name: Any) -> None:
    tool = toolset(name).tools["bash"]

    def ran(command: str) -> ToolResult:
        return tool.run(tool.arguments.model_validate({"command": command}), place)

    hidden = ran("cd /testbed && (echo 1 failed; exit 1) 2>&1 | tail -3")
    assert hidden.content.startswith("<returncode>0</returncode>\n<pipestatus>1 0</pipestatus>\n<output>\n1 failed")
    assert hidden.details["pipestatus"] == [1, 0]
    for command in ("echo a | head -1", "yes | head -1", "exit 1"):
        assert "pipestatus" not in ran(command).content + str(ran(command).details)


def test_a_command_that_runs_too_long_is_ended_and_said_to_be(place: Workspace) -> None:
    place.timeout = 0.5
    result = bash(place, "echo begun; sleep 30")
    assert (result.error, result.details["timed_out"], result.details["exit_code"]) == ("timed_out", True, None)
    assert "begun" in result.content and "0.5 seconds" in result.content


def test_an_endless_output_is_cut(place: Workspace) -> None:
    place.most = 1000
    result = bash(place, "seq 1 100000")
    assert len(result.content) < 1600 and result.content.rstrip().endswith("100000\n\n</output_tail>")
    assert result.details["omitted"] > 500_000


# ---- the editor: looking


def test_a_file_is_shown_with_numbers_and_what_was_shown_is_kept(place: Workspace) -> None:
    put(place, b"one\ntwo\nthree\n")
    result = edit(place, "view")
    assert result.content.splitlines()[1:] == ["     1\tone", "     2\ttwo", "     3\tthree"]
    view = result.details["view"]
    assert {name: view[name] for name in ("path", "first", "last", "lines")} == {
        "path": "/testbed/a.py",
        "first": 1,
        "last": 3,
        "lines": 3,
    }
    assert not result.worked
    part = edit(place, "view", "/testbed/./a.py", view_range=[2, -1])
    assert part.content.splitlines()[1:] == ["     2\ttwo", "     3\tthree"]
    assert (part.details["view"]["path"], part.details["view"]["first"]) == ("/testbed/a.py", 2)
    assert part.details["view"]["content"] == view["content"]
    put(place, b"other\n")
    assert edit(place, "view").details["view"]["content"] != view["content"]


@pytest.mark.parametrize("view_range", [[0, 2], [3, 2], [5, 6], [4, -1], [-1, 1], [2, -2]])
def test_a_range_that_fits_no_lines_is_declined(place: Workspace, view_range: list[int]) -> None:
    put(place, b"one\ntwo\nthree\n")
    result = edit(place, "view", view_range=view_range)
    assert result.error == "bad_range" and "has 3" in result.content and "view" not in result.details


def test_a_range_may_end_behind_the_file_and_an_empty_file_has_no_lines(place: Workspace) -> None:
    put(place, b"one\ntwo")
    assert edit(place, "view", view_range=[1, 99]).details["view"]["last"] == 2
    put(place, b"")
    result = edit(place, "view")
    assert "is empty" in result.content
    assert (result.details["view"]["first"], result.details["view"]["last"]) == (1, 0)


def test_a_long_file_is_shown_as_far_as_it_fits_and_the_rest_is_named(place: Workspace) -> None:
    put(place, "".join(f"line {number}\n" for number in range(1, 5001)).encode())
    place.most = 1000
    result = edit(place, "view")
    last = result.details["view"]["last"]
    assert 30 < last < 70 and len(result.content) < 1200
    assert f"Lines {last + 1} to 5000 did not fit" in result.content
    put(place, b"x" * 100_000 + b"\nend\n")
    result = edit(place, "view")
    assert "line of 100000 characters" in result.content and len(result.content) < 2400


def test_a_folder_is_listed_two_levels_deep_without_hidden_names(place: Workspace) -> None:
    place.sandbox.exec("mkdir -p a/b/c .hidden/x 'odd\nname'; touch a/b/c/deep a/f.py top .dot .hidden/x/y")
    result = edit(place, "view", "/testbed")
    listed = result.content.splitlines()[1:]
    assert listed == ["a/", "a/b/", "a/f.py", "'odd\\nname/'", "top"]
    assert result.details["view"] == {"path": "/testbed", "folder": True}


@pytest.mark.parametrize(
    ("setup", "path", "error"),
    [
        ("", "/testbed/none", "missing"),
        ("", "testbed/a.py", "relative_path"),
        ("printf 'a\\0b' > a.py", "/testbed/a.py", "binary"),
        ("mkfifo a.py", "/testbed/a.py", "no_file"),
        ("", "/dev/zero", "no_file"),
        ("truncate -s 5M a.py", "/testbed/a.py", "too_large"),
        ("ln -s a.py a.py", "/testbed/a.py", "missing"),
        ("touch a.py", "/testbed/a.py/b", "missing"),
        ("", "/testbed/" + "x" * 300, "missing"),
    ],
)
def test_what_is_no_text_file_is_declined_with_a_reason(place: Workspace, setup: str, path: str, error: str) -> None:
    place.sandbox.exec(setup)
    for command, arguments in [("view", {}), ("str_replace", {"old_str": "a", "new_str": "b"})]:
        result = edit(place, command, path, **arguments)
        assert (result.error, result.worked) == (error, False), command
        assert result.content.startswith("ERROR: ")


def test_the_full_path_is_proposed_for_a_relative_one(place: Workspace) -> None:
    assert "/testbed/src/a.py?" in edit(place, "view", "src/../src/a.py").content


# ---- the editor: changing


def test_a_text_that_stands_once_is_replaced_and_what_it_reads_now_is_shown(place: Workspace) -> None:
    put(place, b"".join(b"line %d\n" % number for number in range(1, 21)))
    place.sandbox.exec("chmod 755 a.py")
    result = edit(place, "str_replace", old_str="line 10\n", new_str="ten\nand more\n")
    assert result.worked and result.error is None
    assert b"line 9\nten\nand more\nline 11\n" in has(place)
    assert "    10\tten" in result.content and "     6\tline 6" in result.content and "line 5" not in result.content
    assert place.sandbox.exec("stat -c %a a.py").output == b"755\n"
    edit(place, "str_replace", old_str="ten\n")
    assert b"line 9\nand more\n" in has(place)


def test_a_text_that_stands_nowhere_or_several_times_changes_nothing(place: Workspace) -> None:
    content = b"def f():\n    return 1\n\n\ndef g():\n    return 1\n"
    put(place, content)
    result = edit(place, "str_replace", old_str="    return 1", new_str="x")
    assert result.error == "several_matches" and "lines 2, 6" in result.content
    result = edit(place, "str_replace", old_str="def g():\n  return 1", new_str="x")
    assert result.error == "no_match" and "Line 5 begins" in result.content
    assert edit(place, "str_replace", old_str="nowhere", new_str="x").error == "no_match"
    assert edit(place, "str_replace", old_str="def f", new_str="def f").error == "no_change"
    assert edit(place, "str_replace", old_str="", new_str="x").error == "missing_argument"
    assert edit(place, "str_replace", new_str="x").error == "missing_argument"
    assert has(place) == content


def test_lines_that_end_in_cr_lf_are_matched_and_stay_so(place: Workspace) -> None:
    put(place, b"one\r\ntwo\r\nthree\r\n")
    assert edit(place, "str_replace", old_str="one\ntwo", new_str="1\n2").error is None
    assert has(place) == b"1\r\n2\r\nthree\r\n"
    assert edit(place, "insert", insert_line=1, new_str="x").error is None
    assert has(place) == b"1\r\nx\r\n2\r\nthree\r\n"


def test_bytes_that_are_no_utf_8_survive_an_edit_beside_them(place: Workspace) -> None:
    put(place, b"caf\xe9\nhere\n")
    assert edit(place, "view").content.splitlines()[1] == "     1\tcaf\ufffd"
    edit(place, "str_replace", old_str="here", new_str="th\u00e9re")
    assert has(place) == b"caf\xe9\nth\xc3\xa9re\n"


def test_a_file_is_created_with_its_folders_and_never_over_another(place: Workspace) -> None:
    assert edit(place, "create", "/testbed/new/er/a.py", file_text="x = 1\n").worked
    assert has(place, "/testbed/new/er/a.py") == b"x = 1\n"
    assert edit(place, "create", "/testbed/new/er/a.py", file_text="y").error == "exists"
    assert edit(place, "create", "/testbed/new", file_text="y").error == "exists"
    assert edit(place, "create", "/testbed/b.py").error == "missing_argument"
    assert edit(place, "create", "/usr/x", file_text="y").error == "file_error"
    assert edit(place, "create", "/testbed/empty", file_text="").error is None
    assert has(place, "/testbed/empty") == b""


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\n", b"a\nx\nb\n"),
        (b"a\nb\n", 2, "x\ny", b"a\nb\nx\ny\n"),
        (b"a\nb", 2, "x", b"a\nb\nx\n"),
        (b"a\nb", 1, "x", b"a\nx\nb"),
        (b"", 0, "x", b"x\n"),
        (b"a\n", 1, "", b"a\n\n"),
    ],
)
def test_lines_go_in_after_a_line(place: Workspace, before: bytes, line: int, new: str, after: bytes) -> None:
    put(place, before)
    assert edit(place, "insert", insert_line=line, new_str=new).error is None
    assert has(place) == after


def test_a_line_that_is_not_there_is_declined(place: Workspace) -> None:
    put(place, b"a\n")
    for line in (-1, 2):
        assert edit(place, "insert", insert_line=line, new_str="x").error == "bad_range"
    assert edit(place, "insert", new_str="x").error == "missing_argument"
    assert has(place) == b"a\n"


def test_edits_are_taken_back_one_by_one_down_to_what_was_there_first(place: Workspace) -> None:
    edit(place, "create", file_text="one\n")
    edit(place, "str_replace", old_str="one", new_str="two")
    edit(place, "insert", insert_line=0, new_str="zero")
    edit(place, "str_replace", "/testbed/./a.py", old_str="nowhere", new_str="x")
    assert edit(place, "undo_edit").worked and has(place) == b"two\n"
    edit(place, "undo_edit")
    assert has(place) == b"one\n"
    edit(place, "undo_edit")
    with pytest.raises(SandboxFileError):
        has(place)
    assert edit(place, "undo_edit").error == "nothing_to_undo"


def test_what_is_too_large_to_be_kept_cannot_be_taken_back_and_neither_can_what_came_before(place: Workspace) -> None:
    edit(place, "create", file_text="a\n")
    put(place, random.Random(1).randbytes(300_000).hex().encode() + b"\nend\n")
    result = edit(place, "str_replace", old_str="end", new_str="fin")
    assert result.error is None and "before" not in result.details
    assert edit(place, "undo_edit").error == "nothing_to_undo"
    edit(place, "create", "/testbed/b.py", file_text="b\n")
    assert edit(place, "undo_edit", "/testbed/b.py").error is None


def test_edits_that_an_older_version_kept_nothing_of_cannot_be_taken_back() -> None:
    earlier = Edits()
    entries = [
        Entry(at, 1, 1, at, EntryKind.OBSERVATION, "tool", "", tool_name=EDITOR, details=details)
        for at, details in enumerate(
            [
                {"command": "create", "path": "/a", **earlier.remember("/a", None)},
                {"command": "insert", "path": "/./a"},
                {"command": "create", "path": "/b", **earlier.remember("/b", None)},
                {"command": "insert", "path": "/b", **earlier.remember("/b", b"b\xff\0")},
                {"command": "view", "path": "/b"},
            ]
        )
    ]
    edits = Edits.of([*entries, replace(entries[3], error="file_error")])
    assert (edits.last("/a"), edits.last("/b")) == (None, (b"b\xff\0",))
    json.dumps(entries[3].details)


STEPS = [
    ("str_replace_editor", {"command": "create", "path": "/testbed/a.py", "file_text": "value = 1\n"}),
    ("bash", {"command": "mkdir -p /testbed/sub && cd sub"}),
    ("bash", {"command": "export A='it is\n\"new\" $HOME' PAGER=less; unset TQDM_DISABLE"}),
    ("str_replace_editor", {"command": "str_replace", "path": "/testbed/./a.py", "old_str": "1", "new_str": "2"}),
    ("bash", {"command": "echo 'value = 3' >/testbed/a.py; PIP_PROGRESS_BAR=on"}),
    ("str_replace_editor", {"command": "str_replace", "path": "/testbed/a.py", "old_str": "3", "new_str": "4"}),
    ("bash", {"command": "env | grep -E '^(A|PAGER|TQDM_DISABLE|PIP_PROGRESS_BAR|B)=|new'; pwd"}),
    *[("str_replace_editor", {"command": "undo_edit", "path": "/testbed/a.py"})] * 2,
    ("bash", {"command": "cat /testbed/a.py; echo $A $PAGER"}),
    *[("str_replace_editor", {"command": "undo_edit", "path": "/testbed/a.py"})] * 2,
    ("submit", {}),
]


def test_an_attempt_that_is_taken_up_in_another_sandbox_goes_on_as_if_it_had_not_been_killed(
    sandbox: LocalSandbox,
) -> None:
    """A new sandbox holds the files, and none of what tools and session remember."""
    replies = [says("", call(name, **arguments)) for name, arguments in STEPS]

    def fresh() -> LocalSandbox:
        return LocalSandbox(sandbox.config)

    with fresh() as calm:
        _, whole = work(Model(replies), sandbox=calm, attempt_spec=spec(environment={"B": "2"}))
    observations = [entry.content for entry in whole.entries if entry.kind is EntryKind.OBSERVATION]
    assert (
        'A=it is\n"new" $HOME' in observations[6] and "PAGER=less" in observations[6] and "TQDM" not in observations[6]
    )
    assert "PIP_PROGRESS_BAR=on" in observations[6] and "B=2" in observations[6] and "/testbed/sub" in observations[6]
    assert "value = 2" not in observations[9] and "value = 1" in observations[9] and "removed again" in observations[10]
    assert "No edit" in observations[11]
    entries, files = opening(), b""
    for reply in replies:
        with fresh() as anew:
            if files:
                anew.put("/", files)
            record = Memory()
            attempt_spec = spec(entries, environment={"B": "2"}, stage_limits=AgentLimits(steps=1))
            work(Model([reply]), sandbox=anew, attempt_spec=attempt_spec, record=record)
            entries, files = [*entries, *record.entries], b"".join(anew.get("/testbed"))
    assert [entry.content for entry in entries if entry.kind is EntryKind.OBSERVATION] == observations


def test_variables_last_over_attempts_and_edits_do_not(sandbox: LocalSandbox) -> None:
    with LocalSandbox(sandbox.config) as first:
        calls = [("bash", {"command": "export A=1 PAGER=less"}), STEPS[0], ("submit", {})]
        _, before = work(Model([says("", call(name, **arguments)) for name, arguments in calls]), sandbox=first)
    comment = Entry(before.entries[-1].ordinal + 1, 1, 2, 3, EntryKind.COMMENT, "user", "Not yet.")
    with LocalSandbox(sandbox.config) as anew:
        anew.exec("touch a.py")
        tried = [runs("echo $A $PAGER"), says("", call(EDITOR, command="undo_edit", path="/testbed/a.py")), SUBMIT]
        attempt_spec = spec([*opening(), *before.entries, comment], attempt=2)
        _, record = work(Model(tried), sandbox=anew, attempt_spec=attempt_spec)
    assert "\n1 cat\n" in record.entries[1].content, "an attempt begins with the variables that we give"
    assert record.entries[3].error == "nothing_to_undo"


def test_what_is_told_of_variables_in_another_form_is_not_kept() -> None:
    for output in (b"fine\n", b'declare -x A="\xff"\n', b""):
        sandbox = ScriptedSandbox([ScriptedResult(lambda _: True, ExecResult(0, output), repeat=True)])
        sandbox.start()
        place = Workspace(sandbox)
        assert "variables" not in bash(place, "export A=1").details and place.variables is None
        assert len(sandbox.asked) == 2
        for command in ("ls --color=never", "git log --format=%h", "python -c 'print(1 == 2)'"):
            bash(place, command)
        assert len(sandbox.asked) == 5, "a command that cannot set any is not followed by a question"


def test_hostile_paths_are_paths(place: Workspace) -> None:
    path = "/testbed/$(touch pwned) ; -rf 'x\n\".py"
    edit(place, "create", path, file_text="a\n")
    edit(place, "str_replace", path, old_str="a", new_str="b")
    assert has(place, path) == b"b\n"
    assert edit(place, "view", path).error is None
    edit(place, "undo_edit", path)
    edit(place, "undo_edit", path)
    assert place.sandbox.exec("ls -A").output == b""


def test_what_a_file_cannot_take_is_told_and_not_remembered_as_an_edit() -> None:
    class Full(ScriptedSandbox):
        def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
            raise SandboxFileError(f"{path!r} cannot be written: no space")

    box = Full(
        [ScriptedResult(lambda _: True, ExecResult(0, b"regular file:4:644\n"), repeat=True)],
        files={"/testbed/a.py": b"one\n"},
    )
    box.start()
    place = Workspace(box)
    result = edit(place, "str_replace", old_str="one", new_str="two")
    assert result.error == "file_error" and "no space" in result.content
    assert edit(place, "undo_edit").error == "nothing_to_undo"


@pytest.mark.parametrize("command", ["view", "str_replace", "create", "insert", "undo_edit"])
def test_a_sandbox_that_is_gone_is_no_fault_of_the_agent(command: str) -> None:
    sandbox = ScriptedSandbox([ScriptedResult(lambda _: True, SandboxLost("gone"), repeat=True)])
    sandbox.start()
    place = Workspace(sandbox)
    place.edits.remember("/testbed/a.py", b"x")
    with pytest.raises(SandboxLost):
        edit(place, command, old_str="a", new_str="b", insert_line=0, file_text="x")


# ---- the text as a value


@given(st.binary(max_size=200).filter(lambda content: b"\0" not in content))
def test_a_text_gives_every_byte_back(content: bytes) -> None:
    text = Text.of(content)
    assert text is not None and text.content() == content


@given(st.text(alphabet="ab\r\n", max_size=30), st.text(alphabet="ab\n", max_size=4))
def test_a_replacement_touches_nothing_else(text: str, new: str) -> None:
    parsed = Text.of(text.encode())
    assert parsed is not None
    after = parsed.with_text("a" + parsed.text + new)
    content = parsed.content()
    assert after.content()[1 : 1 + len(content)] == content


def test_places_overlap_and_numbered_lines_fit() -> None:
    assert Text("aaa").places("aa") == [0, 1]
    assert numbered(["x" * 50] * 9, 1, 130) == ("\n".join(f"{n:6}\t{'x' * 50}" for n in (1, 2)), 2)
    assert numbered(["x" * 50], 7, 1)[1] == 1
    assert numbered([], 1, 10) == ("", 0)


# ---- the loop with the tools


def test_an_agent_mends_a_file_in_a_real_sandbox(place: Workspace) -> None:
    put(place, b"def double(x):\n    return x + x + 1\n")
    replies = [
        says("Look.", call(EDITOR, command="view", path="/testbed/a.py")),
        says("Mend.", call(EDITOR, command="str_replace", path="/testbed/a.py", old_str=" + 1\n", new_str="\n")),
        runs("cd / && python3 -c 'import sys; sys.path.insert(0, \"/testbed\"); import a; print(a.double(4))'"),
        SUBMIT,
    ]
    attempt, record = work(Model(replies), sandbox=place.sandbox, record=Memory(["t2", "t3"]), attempt_spec=spec())
    assert attempt.ending is Ending.SUBMITTED
    assert "<output>\n8\n</output>" in record.entries[5].content
    assert [entry.tree for entry in record.entries] == [None, None, None, "t2", None, "t3", None, None]
    assert record.entries[5].cwd == "/"


def test_a_fresh_shell_each_forgets_its_folder(place: Workspace) -> None:
    word = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    model = Model([runs("cd /tmp; export A=1"), runs("echo $PWD-$A-"), runs(f"echo {word}")])
    attempt, record = work(model, sandbox=place.sandbox, scaffold=ReactScaffold(tools="bash"))
    assert attempt.ending is Ending.SUBMITTED
    assert "/testbed--" in record.entries[3].content and all(entry.cwd is None for entry in record.entries)
