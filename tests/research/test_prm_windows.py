"""The rig of real trajectories: both forms of files as conversations, and a whole run on a small made-up mirror."""

from __future__ import annotations

import csv
import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from research.prm_windows.__main__ import main
from research.prm_windows.conversation import RealTrajectory, fenced_commands, read_trajectory
from research.prm_windows.mirror import read_trajectories
from research.prm_windows.windows import EACH, sample, text_of, windows_of, with_findings
from sql.store import Store
from sql.tables import Trajectory
from tests.miner.gitworld import Content, World
from trajectories.agents.guidance.detectors import DETECTORS
from trajectories.agents.steps.conversation import steps_of
from trajectories.model import Entry, EntryKind
from trajectories.rows import read_entries
from trajectories.studies.guidance.agreement import WindowReading

HEAD = "trajectory,position,attempt,last_step,category,label,reader\n"
LOOK = "cat till/sum.py"
COMMANDS = [
    "ls",
    LOOK,
    "sed -i 's/1/2/' till/sum.py",
    "git diff",
    "git log -3",
    "git status",
    "ls till",
    "ls tests",
    "python -m pytest",
    "grep -rn total .",
    "wc -l till/sum.py",
    "du -s .",
]
"""Of these, step 8 is the fifth without a run after the edit of step 3."""


def results(commands: list[str]) -> list[str]:
    return [f"<returncode>{int('tests' in it)}</returncode>\n<output>\n{it} it is\n</output>" for it in commands]


def fenced() -> bytes:
    """Commands in blocks, answered by the user; the last one submits."""
    messages = [
        ("system", "You help."),
        ("user", "Please solve this issue: The sum is off.\n\nYou can execute bash commands."),
    ]
    for command, result in zip(COMMANDS, results(COMMANDS), strict=True):
        messages += [("assistant", f"THOUGHT: on it.\n\n```bash\n{command}\n```"), ("user", result)]
    messages.insert(6, ("user", "Format error: one block, please."))
    messages.insert(6, ("assistant", "I think."))
    messages += [("assistant", "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"), ("user", "the patch")]
    return json.dumps([{"role": role, "content": content} for role, content in messages]).encode()


def turn(number: int, *commands: str, words: str = "") -> dict[str, Any]:
    calls = [
        {"id": f"c{number}{at}", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        for at, command in enumerate(commands)
    ]
    return {"role": "assistant", "content": words, "reasoning_content": "Hm.", "tool_calls": calls}


def answer(number: int, content: str, code: int = 0, exception: str = "", at: int = 0) -> dict[str, Any]:
    extra = {"returncode": code, "exception_info": exception}
    return {"role": "tool", "content": content, "tool_call_id": f"c{number}{at}", "extra": extra}


def called(*more: dict[str, Any], folder: str = "/testbed", status: str = "Submitted") -> bytes:
    """Calls of a tool, answered by the tool; what the submission prints is in the message of the exit."""
    task = "<pr_description>\nConsider the following PR description:\nAdd a total.\n</pr_description>\n\nBe quick."
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help."}, {"role": "user", "content": task}]
    for number, (command, result) in enumerate(zip(COMMANDS, results(COMMANDS), strict=True), 1):
        messages += [turn(number, command), answer(number, result, int("tests" in command))]
    messages += more
    messages.append(turn(99, "cd /testbed && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"))
    messages.append({"role": "exit", "content": "the patch", "extra": {"exit_status": status}})
    config = {"model": {"model_name": "a/b"}, "environment": {"cwd": folder}}
    return json.dumps({"info": {"config": config}, "messages": messages}).encode()


def read(content: bytes, name: str = "ab" * 8) -> RealTrajectory:
    trajectory = read_trajectory(name, content)
    assert trajectory is not None
    return trajectory


def name_of(content: bytes) -> str:
    """The first digits of a blob's id."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()[:16]


def result_of(trajectory: RealTrajectory, step: int) -> Entry:
    return steps_of(trajectory.entries)[step - 1].observations[-1]


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Both forms, one of them on a pull head alone; one that is too short, and one that is broken."""
    world = World(tmp_path / "mirror")
    short = json.dumps([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])
    files: dict[str | bytes, Content] = {"a/one.traj.json": fenced(), "b.traj.json": short, "c.traj.json": "["}
    world.commit("main", files, "runs")
    world.propose(7, {"out/two.traj.json": called()})
    world.commit("main", {"a/one.traj.json": None}, "tidy")
    world.save()
    return world.path


def run(_: str, mirror: Path, *arguments: object) -> Result:
    """The rig on a mirror; without labels but given ones, for the committed ones are of other windows."""
    none = mirror.parent / "none.csv"
    none.write_text(HEAD)
    return CliRunner().invoke(main, [str(it) for it in ("--mirror", mirror, "--labels", none, *arguments)])


def test_both_forms_give_the_same_calls_and_results() -> None:
    one, two = read(fenced()), read(called())
    for trajectory in (one, two):
        steps = [step for step in steps_of(trajectory.entries) if step.calls]
        assert [step.calls[0][1]["command"] for step in steps[:-1]] == COMMANDS
        assert [step.calls[0][2].content for step in steps[:-1] if step.calls[0][2]] == results(COMMANDS)
        assert [step.observations[0].details["exit_code"] for step in steps[6:9]] == [0, 1, 0]
        assert steps[-1].submits and steps[-1].observations[0].content == "the patch"
        assert [entry.ordinal for entry in trajectory.entries] == list(range(len(trajectory.entries)))
        assert trajectory.submitted
    assert one.task == "The sum is off." and two.task == "Add a total."
    assert one.model == "unknown" and two.model == "a/b"
    assert steps_of(one.entries)[0].turn.content == "THOUGHT: on it."
    assert steps_of(two.entries)[0].turn.reasoning == "Hm."


def test_a_reply_without_a_command_is_a_faulty_turn_with_an_answer() -> None:
    step = steps_of(read(fenced()).entries)[2]
    assert (step.turn.error, step.observations[0].content) == ("no_call", "Format error: one block, please.")
    assert step.observations[0].tool_name is None


def test_an_answer_to_a_reply_that_the_file_leaves_out_is_no_observation() -> None:
    trajectory = read(called({"role": "user", "content": "Tool call error"}))
    assert [entry.content for entry in trajectory.entries if entry.kind is EntryKind.GUIDANCE] == ["Tool call error"]


def test_the_folder_of_the_repository_is_the_one_that_the_file_names() -> None:
    query = next(entry for entry in read(called(folder="/work")).entries if entry.kind is EntryKind.QUERY)
    assert query.details["workdir"] == "/work"


@pytest.mark.parametrize(
    ("code", "exception", "error", "details"),
    [
        (-1, "the command timed out after 60 seconds", "timed_out", {"exit_code": None, "timed_out": True}),
        (-1, "no such container", "ended", {"exit_code": None}),
        (-1, "action was not executed", "not_run", {}),
        (137, "", None, {"exit_code": 137}),
    ],
)
def test_what_ended_a_command_is_its_error(
    code: int, exception: str, error: str | None, details: dict[str, Any]
) -> None:
    trajectory = read(called(turn(13, "make"), answer(13, "", code, exception)))
    assert (result_of(trajectory, 13).error, result_of(trajectory, 13).details) == (error, details)


def test_an_output_without_its_middle_says_how_much_is_missing() -> None:
    text = "<returncode>0</returncode>\n<elided_chars>\n1200 characters elided\n</elided_chars>"
    assert result_of(read(called(turn(13, "make"), answer(13, text))), 13).details["omitted"] == 1200


def test_calls_of_one_turn_get_their_own_answers() -> None:
    trajectory = read(called(turn(13, "a", "b"), answer(13, "for b", at=1), answer(13, "for a")))
    assert [found.content for _, _, found in steps_of(trajectory.entries)[12].calls if found] == ["for a", "for b"]


def test_a_run_that_broke_off_is_not_submitted() -> None:
    broken = json.loads(called(status="Timeout"))
    del broken["messages"][-2]
    assert not read(json.dumps(broken).encode()).submitted


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("echo 1 > /testbed/a.py", True),
        ("echo 1 > /tmp/a.py", False),
        ("python -c \"open('a.py', 'w').write('')\"", True),
        ("python -c \"print(open('a.py').read())\"", False),
        ("grep -rn 'git stash' .", False),
        ("git stash", True),
        ("python -m pytest", False),
    ],
)
def test_a_command_that_may_have_written_in_the_repository_gives_another_tree(command: str, changes: bool) -> None:
    trajectory = read(called(turn(13, command), answer(13, "")))
    assert (result_of(trajectory, 13).tree is not None) == changes


def test_a_script_that_writes_files_does_so_when_it_is_run() -> None:
    script = "cat > /tmp/fix.py <<'EOF'\nopen('a.py', 'w').write('1')\nEOF"
    trajectory = read(called(turn(13, script), answer(13, ""), turn(14, "python /tmp/fix.py"), answer(14, "")))
    assert result_of(trajectory, 13).tree is None and result_of(trajectory, 14).tree is not None


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[" * 100_000, b"1", b"{}", b'{"messages": 3}', b'[1, {"role": []}, {"role": "assistant"}]'],
)
def test_what_is_no_trajectory_is_none(content: bytes) -> None:
    assert read_trajectory("x", content) is None


def test_odd_messages_are_read_as_far_as_they_go() -> None:
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, 3, {"text": "b\ud800"}]},
        {"role": "assistant", "content": None, "tool_calls": [3, {"function": {"name": 1}}, {"function": None}]},
        {"role": "assistant", "tool_calls": [{"id": [1], "function": {"name": "bash", "arguments": "{"}}]},
        {"role": "tool", "content": {}, "extra": {"returncode": "x", "exception_info": 3}},
        {"role": "exit", "extra": []},
    ]
    trajectory = read(json.dumps(messages).encode())
    assert [step.turn.error for step in steps_of(trajectory.entries)] == ["empty", None]
    assert trajectory.entries[0].content == "a\nb\ufffd"


def test_only_blocks_of_bash_are_commands() -> None:
    text = "One:\n```python\nx\n```\nTwo: ```mswea_bash_command\na\n\nb\n```\nEnd.\n```bash\nopen"
    assert fenced_commands(text) == (["a\n\nb"], "One:\n```python\nx\n```\nTwo: \n\nEnd.")


def test_trajectories_are_found_in_all_refs_and_named_by_their_blobs(mirror: Path) -> None:
    names = [trajectory.name for trajectory in read_trajectories(mirror)]
    assert names == sorted([name_of(fenced()), name_of(called())])


def test_a_window_ends_with_every_fifth_step_but_the_last() -> None:
    two = called(*(it for at in (13, 14) for it in (turn(at, "ls"), answer(at, ""))))
    trajectory = read(two)
    windows = list(windows_of(trajectory))
    assert trajectory.turns == 15
    assert [(it.steps.first, it.steps.last) for it in windows] == [(1, 5), (3, 10)]


def test_a_sample_depends_on_ids_alone_and_takes_few_of_a_trajectory() -> None:
    more = [it for at in range(13, 40) for it in (turn(at, "ls"), answer(at, ""))]
    windows = [window for name in ("a", "b") for window in windows_of(read(called(*more), name))]
    drawn = [window.place for window in sample(windows)]
    assert drawn == [window.place for window in sample(windows[::-1])]
    assert len(drawn) == 2 * EACH


def test_windows_with_findings_are_labelled_beside_the_sample_one_of_a_trajectory() -> None:
    more = [it for at in range(13, 40) for it in (turn(at, "ls"), answer(at, ""))]
    windows = [window for name in ("a", "b") for window in windows_of(read(called(*more), name))]
    drawn = sample(windows)
    nothing = {window.place: WindowReading(None, frozenset()) for window in windows}
    assert with_findings(windows, nothing, drawn) == []
    found = nothing | {window.place: WindowReading(None, frozenset({"seen-lines"})) for window in windows}
    beside = with_findings(windows, found, drawn)
    assert sorted(window.trajectory.name for window in beside) == ["a", "b"]
    assert not {window.place for window in beside} & {window.place for window in drawn}


def test_texts_under_readers_are_not_written_over(mirror: Path, tmp_path: Path) -> None:
    assert run("--mirror", mirror, "--show", tmp_path / "show").exit_code == 0
    again = run("--mirror", mirror, "--show", tmp_path / "show")
    assert again.exit_code == 1 and "exists" in again.output


def test_a_text_has_the_window_whole_and_what_was_before_in_short() -> None:
    words = "w" * 3_001
    more = [turn(13, "ls", words=words), answer(13, "o" * 3_000), turn(14, "true"), answer(14, "p"), turn(15, "x")]
    long = json.loads(called(*more, answer(15, "q")))
    long["messages"][3]["content"] = "r" * 501
    first, second, third = map(text_of, windows_of(read(json.dumps(long).encode())))
    assert first.startswith("# The task\n\nAdd a total.\n") and "(none)" in first
    assert "# The window: steps 8 to 15" in third and "## Step 8\n" in third and "## Step 7\n" not in third
    assert "[1] ls\n" + "r" * 500 + " [... 1 more characters]" in second
    assert "w" * 3_000 + " [... 1 more characters]" in third and "o" * 3_000 + "\n" in third
    assert not any(name in third for name in DETECTORS)


def test_without_labels_only_findings_are_counted(mirror: Path) -> None:
    result = run("--mirror", mirror)
    assert result.exit_code == 0
    assert "2 trajectories on 2 tasks, 27 steps\n4 windows, 4 in the sample" in result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.output.splitlines() if line.strip()}
    assert rows["unchecked-edit"] == ["2", "2", "2", "2"]
    assert rows["tree-alternation"] == ["0", "0", "0", "0"]
    assert "no labels yet" in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_detectors_are_scored_by_labels_on_which_readers_agree(mirror: Path, tmp_path: Path) -> None:
    name, labels = name_of(called()), tmp_path / "labels.csv"
    place = f"{name},1,1"
    rows = [
        f"{place},10,unchecked-edit,yes,a",
        f"{place},10,unchecked-edit,yes,b",
        f"{place},5,unchecked-edit,yes,a",
        f"{place},5,unchecked-edit,yes,b",
        f"{place},5,seen-lines,yes,a",
        f"{place},5,seen-lines,no,b",
    ]
    labels.write_text(HEAD + "\n".join(rows) + "\n")
    result = run("--mirror", mirror, "--labels", labels)
    assert result.exit_code == 0
    assert "6 labels of 2 windows; 1 disputed, left out" in result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["unchecked-edit", "1", "0", "1", "100%", "(21%-100%)", "50%", "(9%-91%)"] in lines
    assert ["seen-lines", "0", "0", "0", "-", "-"] in lines
    assert ["unchecked-edit", "2", "2", "0", "0", "-"] in lines
    assert ["seen-lines", "1", "0", "1", "0", "0.00"] in lines
    assert all(len(line) <= 80 for line in result.output.splitlines())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0000000000000000,1,1,5,seen-lines,yes,a", "there is no window 0000000000000000, step 5"),
        ("NAME,1,1,6,seen-lines,yes,a", "step 6"),
        ("NAME,1,1,5,hallucination,yes,a", "no category 'hallucination'"),
    ],
)
def test_a_label_of_nothing_ends_with_code_1(mirror: Path, tmp_path: Path, row: str, words: str) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(HEAD + row.replace("NAME", name_of(called())) + "\n")
    result = run("--mirror", mirror, "--labels", labels)
    assert result.exit_code == 1 and words in result.output


def test_texts_for_readers_have_an_index(mirror: Path, tmp_path: Path) -> None:
    assert run("--mirror", mirror, "--show", tmp_path / "show").exit_code == 0
    with (tmp_path / "show" / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["number"] for row in rows] == ["001", "002", "003", "004"]
    assert {(row["trajectory"], row["last_step"]) for row in rows} == {
        (name, last) for name in (name_of(called()), name_of(fenced())) for last in ("5", "10")
    }
    assert all((tmp_path / "show" / f"{row['number']}.txt").read_text().startswith("# The task") for row in rows)


def test_a_database_holds_the_trajectories_as_rollouts(mirror: Path, tmp_path: Path) -> None:
    file = tmp_path / "real.db"
    assert run("--mirror", mirror, "--write-db", file).exit_code == 0
    with closing(Store.open_for_reading(str(file))) as store, store.reading() as tx:
        rows = sorted(tuple(row) for row in tx.rows(Trajectory, "id", "outcome", "steps", "model"))
        stored = read_entries(tx, name_of(called()))
    assert rows == sorted([(name_of(called()), "unscored", 13, "a/b"), (name_of(fenced()), "unscored", 14, "unknown")])
    expected = read(called()).entries
    assert [(it.kind, it.content, it.tool_calls, it.details, it.tree) for it in stored] == [
        (it.kind, it.content, it.tool_calls, it.details, it.tree) for it in expected
    ]
    again = run("--mirror", mirror, "--write-db", file)
    assert again.exit_code == 1 and "is there already" in again.output


def test_a_folder_that_is_no_mirror_is_named(tmp_path: Path) -> None:
    result = run("--mirror", tmp_path)
    assert result.exit_code == 1 and "is not a git repository" in result.output
