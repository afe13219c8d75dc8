"""The rig that runs Harbor's agents over exported tasks, with a program in Harbor's place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from research.harbor.__main__ import Trial, main

PROGRAM = """\
#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o) jobs=$2;; -p) task=$2;; esac; shift; done
mkdir -p "$jobs/job/trial"
cp "$task/answer.json" "$jobs/job/trial/result.json"
"""


def task(folder: Path, name: str, answer: object, steps: int = 0) -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / "task.toml").write_text("", encoding="utf-8")
    (place / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    for number in range(steps):
        (place / "steps" / str(number)).mkdir(parents=True)


def verified(reward: float) -> dict[str, object]:
    return {"verifier_result": {"rewards": {"reward": reward}}}


@pytest.mark.parametrize(("second", "ends"), [(1.0, 0), (0.0, 1)])
def test_the_oracle_has_to_get_all_of_every_step(tmp_path: Path, second: float, ends: int) -> None:
    program = tmp_path / "harbor"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    task(tmp_path / "out" / "stages", "one", verified(1.0))
    task(tmp_path / "out" / "chains", "two", {"step_results": [verified(1.0), verified(second)]}, 2)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path / "out"), "--harbor", str(program)])
    assert done.exit_code == ends
    assert "ok     oracle stages/one: 1\n" in done.output and f"oracle chains/two: 1 {second:g}" in done.output


def test_who_does_nothing_has_to_get_less_and_an_error_is_no_reward() -> None:
    assert Trial("t", (0.0,), 2).fits("nop") and not Trial("t", (1.0, 1.0), 2).fits("nop")
    assert not Trial("t", (None,), 1).fits("nop") and not Trial("t", (), 1).fits("oracle")
    assert not Trial("t", (1.0,), 2).fits("oracle")


def test_why_a_verifier_gave_no_reward_is_told(tmp_path: Path) -> None:
    program = tmp_path / "harbor"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    late = {"exception_info": {"exception_type": "VerifierTimeoutError", "exception_message": "after 600 seconds"}}
    task(tmp_path / "out" / "chains", "two", {"step_results": [verified(1.0), late]}, 2)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path / "out"), "--harbor", str(program)])
    assert done.exit_code == 1
    assert done.output == "FAILED oracle chains/two: 1 none (VerifierTimeoutError: after 600 seconds)\n"


def test_wrong_work_at_step_two_has_to_get_less_there_and_all_before() -> None:
    assert Trial("t", (1.0, 0.5), 3).fits("wrong")
    for rewards in ((1.0, 1.0, 1.0), (0.0,), (1.0,), (1.0, None), (0.5, 0.0)):
        assert not Trial("t", rewards, 3).fits("wrong")


def test_the_wrong_oracle_is_one_in_a_copy_of_the_task_alone(tmp_path: Path) -> None:
    program = tmp_path / "harbor"
    program.write_text(f'{PROGRAM}cat "$task/steps/2/solution/solve.sh" > {tmp_path}/ran\n', encoding="utf-8")
    program.chmod(0o755)
    task(tmp_path / "out" / "stages", "one", verified(1.0))
    task(tmp_path / "out" / "chains", "two", {"step_results": [verified(1.0), verified(0.0)]})
    script = tmp_path / "out" / "chains" / "two" / "steps" / "2" / "solution" / "solve.sh"
    script.parent.mkdir(parents=True)
    script.write_text("the reference\n", encoding="utf-8")
    arguments = ["--folder", str(tmp_path / "out"), "--harbor", str(program), "--agent", "wrong"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0 and done.output == "ok     wrong chains/two: 1 0\n"
    assert script.read_text() == "the reference\n" and "the reference" not in (tmp_path / "ran").read_text()


def test_trials_that_are_kept_are_not_repeated_and_one_without_a_reward_is(tmp_path: Path) -> None:
    program = tmp_path / "harbor"
    program.write_text(f'{PROGRAM}echo "$task" >> {tmp_path}/ran\n', encoding="utf-8")
    program.chmod(0o755)
    task(tmp_path / "out" / "stages", "one", verified(1.0))
    task(tmp_path / "out" / "stages", "two", {})
    task(tmp_path / "out" / "chains", "three", {"step_results": [verified(0.0)]}, 1)
    arguments = ["--folder", str(tmp_path / "out"), "--harbor", str(program), "--kept", str(tmp_path / "kept")]
    first = CliRunner().invoke(main, [*arguments, "--only", "stages"])
    assert first.exit_code == 1 and "three" not in first.output
    again = CliRunner().invoke(main, arguments)
    assert first.output in again.output and "FAILED oracle chains/three: 0\n" in again.output
    assert [Path(line).name for line in (tmp_path / "ran").read_text().splitlines()] == ["one", "two", "two", "three"]
