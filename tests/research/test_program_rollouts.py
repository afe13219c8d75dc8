"""The scripted model of agent programs over real chains: it decides by what the last result says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from environments.checkouts.state import StageState
from prchain.core.errors import ScriptUnknown
from research.exchanges.script import HAND_IN
from research.real_rollouts.outcome import RolloutResult, faults
from research.real_rollouts.programs import TITLE, StageScript
from research.real_rollouts.work import StageWork
from tests.prchain.treeworld import Content, new_store, plant
from tests.research.test_exchanges import function, request

FILES: dict[str | bytes, Content] = {"a.py": "one = 1\n", "b.py": "two = 2\n"}
QUERY = "It has 2 tasks.\n\nTask 1 of 2:\n\n<task>\nDo it.\n</task>"


@pytest.fixture
def script(tmp_path: Path) -> StageScript:
    store = new_store(tmp_path)
    start = plant(store, {**FILES})
    end = plant(store, {**FILES, "a.py": "one = 2\n", "new file.py": "x = 1\n"})
    works = [StageWork(position, StageState(start), end, end, ()) for position in (1, 2)]
    return StageScript(store, works)


def told(*results: str, query: str = QUERY) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": query}]
    for result in results:
        messages += [
            {"role": "assistant", "content": "On it."},
            {"role": "tool", "tool_call_id": "c", "content": result},
        ]
    return messages


def commands(script: StageScript, messages: list[dict[str, Any]], *tools: str) -> list[str]:
    reply = script.answer(request(messages, *map(function, tools or ("bash",))))
    return [json.loads(call.arguments)["command"] for call in reply.tool_calls]


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "within an object"])
def test_it_looks_applies_and_hands_in_by_what_real_commands_print(
    script: StageScript, tmp_path: Path, wrapped: bool
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / str(name)).write_text(str(content))
    done = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm begun"
    subprocess.run(done, cwd=folder, shell=True, check=True)
    results: list[str] = []
    for _ in range(2):
        (command,) = commands(script, told(*results))
        ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
        printed = ran.stdout + ran.stderr
        results.append(json.dumps({"returncode": 0, "output": printed}) if wrapped else printed)
    assert (folder / "a.py").read_text() == "one = 2\n" and (folder / "new file.py").read_text() == "x = 1\n"
    assert commands(script, told(*results)) == [HAND_IN]
    assert commands(script, told(*results), "bash", "edit") == [], "it is done where nothing is called"
    assert len(script.replies) == 4


def test_a_later_task_and_a_title_are_known_by_their_words(script: StageScript) -> None:
    (look,) = commands(script, [*told("STATUS\n"), {"role": "user", "content": '"Task 2 of 2:\n\nGo on."'}])
    assert look.startswith("echo SEEN a.py; head")
    assert script.answer(request(told())).text == TITLE and len(script.replies) == 1


@pytest.mark.parametrize("result", ["no such file", "STATUS\n M a.py\n", "SEEN a.py\n"])
def test_a_result_that_it_does_not_expect_is_no_step_further(script: StageScript, result: str) -> None:
    with pytest.raises(ScriptUnknown):
        script.answer(request(told(result), function("bash")))


def test_a_rollout_that_a_machine_ended_is_told_with_its_reason() -> None:
    result = RolloutResult("sandbox_error", "gone", 0.0, 0, ())
    work = StageWork(1, StageState("b1"), "a1", "a1", ())
    assert faults("reference", result, [work], ["b1"]) == ["the trajectory is sandbox_error: gone"]
