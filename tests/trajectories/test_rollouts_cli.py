"""Many rollouts, and the commands: which are worked on, what is reported, and the forecast of a run."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner
from sqlalchemy import update

from prchain.cli import run as run_command
from prchain.core.console.progress import open_progress
from prchain.core.errors import DiskFull, StoreInUse
from prchain.core.llm.ledger import Spending
from prchain.core.llm.prompts import Prompt, prompt_source
from prchain.core.processes.alive import this_process
from sql.tables import LlmCall, Task, Trajectory, TrajectoryMessage
from tests.prchain.secrets_table import DRAWN_TOKEN
from tests.trajectories.rolloutworld import PolicyModel, RolloutWorld, rollout_world
from trajectories.identity import Parent
from trajectories.rollouts.cli import _print_report, _rounded, rollouts
from trajectories.rollouts.forecast import ASSUMED
from trajectories.rollouts.report import list_trajectories
from trajectories.rollouts.rollout import RunContext, _begin, leave, roll
from trajectories.rollouts.run import RolloutChoice, RolloutReport, RolloutRun
from trajectories.rollouts.state import RolloutState
from trajectories.rollouts.step_diff import StepDiff, print_step_diff

CHAINS = [(1, 2), (2, 3), (3, 4), (4, 5)]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RolloutWorld]:
    monkeypatch.chdir(tmp_path)
    with rollout_world(tmp_path, CHAINS) as rollouts_world:
        yield rollouts_world


def ends(*outcomes: str | Exception, then: str = "accepted") -> Callable[..., str]:
    """In place of `roll`: writes these outcomes in turn."""
    remaining = list(outcomes)

    def roll_one(context: RunContext, chain_id: str, sample: int, *, parent: Parent | None = None) -> str:
        outcome = remaining.pop(0) if remaining else then
        with context.store.reading() as tx:
            identity, existing = context.find(tx, chain_id, sample, parent)
        name = existing.id
        if isinstance(outcome, Exception):
            raise outcome
        _begin(context, name, identity, RolloutState())
        leave(context, name, outcome, None if outcome == "accepted" else f"because of {outcome}")
        return name

    return roll_one


def report_of(world: RolloutWorld, roll_one: Callable[..., str], **choice: Any) -> Any:
    with mock.patch("trajectories.rollouts.run.roll", roll_one):
        return world.run(world.context(), **choice).run(1)


class TestRun:
    def test_every_sample_of_every_chain_is_worked_on_best_chain_first_and_once(self, world: RolloutWorld) -> None:
        world.add_chain((1, 3), score=9.0)
        best = world.chains[-1]
        run = world.run(world.context(), samples=2)
        todo = run.pending()
        assert (len(todo.units), todo.standing, todo.without_task) == (10, 0, 0)
        assert [(unit.chain_id, unit.sample) for unit in todo.units[:2]] == [(best, 0), (best, 1)]
        assert report_of(world, ends(), samples=2).counts == {"accepted": 10}
        assert report_of(world, ends(), samples=2).standing == 10
        second_report = report_of(world, ends(), samples=3, limit=2)
        assert (second_report.counts, second_report.standing) == ({"accepted": 2}, 4)

    def test_chains_without_a_ready_task_are_counted_and_left_alone(self, world: RolloutWorld) -> None:
        with world.store.transaction() as tx:
            tx.connection.execute(update(Task).where(Task.chain_id == world.chains[0]).values(outcome="rejected"))
        report = report_of(world, ends(), limit=3)
        assert (report.counts, report.without_task, report.done) == ({"accepted": 3}, 1, True)

    def test_failures_of_machines_are_counted_apart_and_tried_again(self, world: RolloutWorld) -> None:
        report = report_of(world, ends("sandbox_lost", "rejected", "endpoint_timeout"))
        assert report.outcomes == {"accepted": 1, "rejected": 1}
        assert report.infrastructure == {"sandbox_lost": 1, "endpoint_timeout": 1}
        assert not report.done and len(report.failed) == 2
        assert report_of(world, ends()).standing == 2

    def test_nothing_but_failures_of_machines_ends_the_run(self, world: RolloutWorld) -> None:
        report = report_of(world, ends(then="engine_unavailable"), samples=3)
        assert report.infrastructure == {"engine_unavailable": 7}
        assert report.left == 5 and "7 rollouts in a row ended engine_unavailable" in str(report.stopped)

    def test_one_chain_that_fails_by_itself_does_not_keep_the_others_from_being_worked_on(
        self, world: RolloutWorld
    ) -> None:
        report = report_of(world, ends(*["sandbox_lost"] * 6), samples=6)
        assert report.infrastructure == {"sandbox_lost": 6} and report.outcomes == {"accepted": 18}
        assert report.left == 0

    def test_a_spent_budget_ends_the_run(self, world: RolloutWorld) -> None:
        report = report_of(world, ends("accepted", "budget_exceeded"))
        assert (report.left, report.stopped) == (2, "because of budget_exceeded")

    def test_a_defect_on_one_is_named_and_ends_no_other(self, world: RolloutWorld) -> None:
        broken: list[bool] = []

        def breaks(request: Any) -> None:
            if not broken:
                broken.append(True)
                raise ValueError(f"no such thing as {DRAWN_TOKEN}")

        report = world.run(world.context(PolicyModel(before=breaks))).run(1)
        assert report.counts == {"defect": 1, "accepted": 3} and not report.done
        assert "ghp_" not in str(report.failed[0].reason) and "test_rollouts_cli.py" in str(report.failed[0].reason)
        assert world.outcome(report.failed[0].detail)[0] == "defect"
        assert world.run(world.context()).run().counts == {"accepted": 1}, "the next run goes on with it"

    def test_a_defect_before_the_trajectory_began_is_told_and_leaves_no_row(self, world: RolloutWorld) -> None:
        report = report_of(world, ends(ValueError("ours"), ValueError("ours")))
        assert report.counts == {"accepted": 2, "defect": 2} and report.failed[0].detail is None

    def test_what_a_defect_had_cost_is_told(self, world: RolloutWorld) -> None:
        def breaks(request: Any) -> None:
            if "Task 2 of" in str([message.content for message in request.messages]):
                raise ValueError("a defect")

        context = world.context(PolicyModel(before=breaks))
        report = world.run(context, limit=1).run(1)
        ((usd, steps, accepted),) = world.rows(Trajectory, "usd", "steps", "accepted", id=report.failed[0].detail)
        assert report.failed[0].outcome == "defect" and usd > 0 and (steps, accepted) == (3, 1)

    def test_what_another_process_works_on_is_passed_over(self, world: RolloutWorld) -> None:
        report = report_of(world, ends(StoreInUse("taken")))
        assert report.counts == {"taken": 1, "accepted": 3} and not report.done

    def test_a_full_disk_ends_the_run_by_its_name(self, world: RolloutWorld) -> None:
        with pytest.raises(DiskFull, match="no room"):
            report_of(world, ends(DiskFull("no room is left")))

    def test_after_an_error_that_ends_the_run_no_sample_is_begun(self, world: RolloutWorld) -> None:
        chain_ids: list[str] = []
        full = threading.Event()

        def roll_one(context: RunContext, chain_id: str, sample: int, *, parent: Parent | None = None) -> str:
            chain_ids.append(chain_id)
            if len(chain_ids) == 1:
                full.wait(10)
                raise DiskFull("no room is left")
            full.set()
            time.sleep(0.5)
            return ends()(context, chain_id, sample, parent=parent)

        with mock.patch("trajectories.rollouts.run.roll", roll_one), pytest.raises(DiskFull):
            world.run(world.context(), samples=2).run(2)
        time.sleep(1)
        assert len(chain_ids) == 2

    def test_several_rollouts_at_once_end_as_one_after_the_other(self, world: RolloutWorld, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        with rollout_world(tmp_path / "one", CHAINS[:2]) as other:
            assert other.run(other.context()).run(1).counts == {"accepted": 2}
            names = [name for (name,) in other.rows(Trajectory, "id")]
            expected = [other.stages(name) for name in names]
        report = world.run(world.context(), limit=2).run(4)
        assert report.counts == {"accepted": 2}
        assert [world.stages(name) for name in names] == expected


class TestForecast:
    def test_without_stored_trajectories_it_is_by_what_is_assumed_and_said(self, world: RolloutWorld) -> None:
        model = PolicyModel()
        forecast = world.run(world.context(model), samples=2).forecast()
        assert forecast.trajectories == 8 and forecast.basis == ASSUMED
        assert forecast.estimate.calls == 8 * (60 + 3) and (forecast.estimate.usd or 0) > 0
        assert model.asked == [] and world.rows(Trajectory, "id") == []
        by_tests = world.run(world.context(model, gate="tests"), samples=2).forecast()
        assert by_tests.estimate.calls == 8 * 60

    def test_with_enough_of_them_it_is_by_their_medians(self, world: RolloutWorld) -> None:
        assert world.run(world.context(), samples=2, limit=3).run(2).counts == {"accepted": 6}
        forecast = world.run(world.context(), samples=2).forecast()
        assert forecast.trajectories == 2 and "medians of 6 ended trajectories of fake" in forecast.basis
        calls = world.calls()
        per_stage = len(calls) / 12
        assert abs(forecast.estimate.calls - 4 * per_stage) <= 4
        assert forecast.estimate.tokens_in == 100 * forecast.estimate.calls


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(rollouts, list(arguments), catch_exceptions=False, standalone_mode=False)
    return result.exit_code, result.output


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scripted model that submits at once, and a judge that accepts."""
    lines = [
        {"purpose": "agent", "contains": "Task", "tool_calls": [{"name": "submit"}], "repeat": True},
        {"purpose": "judge", "reply": {"comment": "Good.", "score": 1.0}, "repeat": True},
    ]
    path = tmp_path / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(path))
    return path


class TestCommands:
    def test_run_list_and_show_from_end_to_end(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        common = ["--db", world.database]
        arguments = ["rollouts", "run", *common, "--backend", "local", "--limit", "1", "--refinements", "0"]
        assert run_command([*arguments, "--dry-run", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rollouts"] == 1
        assert run_command(arguments) == 1
        output = capsys.readouterr()
        assert "1 rejected" in output.out and "0 done before" in output.out, "an empty patch is not accepted"
        assert output.err.endswith("no rollout was accepted\n")
        assert run_command(arguments) == 1, "none was accepted before either"
        assert "nothing new to do; 1 done before" in capsys.readouterr().out
        assert run_command([*arguments, "--dry-run"]) == 0
        assert capsys.readouterr().out == "0 rollouts to run; 1 done before\n", "nothing is assumed of nothing"
        _print_report(RolloutReport((), 4, None, 0, 2), Spending(refused=3), {"passed": 1, "failed": 2, "not_run": 0})
        report_output = capsys.readouterr().out
        assert "nothing ended" in report_output and "0 calls, 3 refused, 0.0000 USD" in report_output
        assert "2 of 3 accepted stages fail their hidden tests; --gate both" in report_output
        assert "2 chains without a task that is ready" in report_output and "--retry" in report_output
        assert run_command(["rollouts", "list", *common, "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["outcome"], row["accepted"], row["stages"], row["repository"]) == ("rejected", 0, 2, "shop/till")
        assert run_command(["rollouts", "list", *common, "--outcome", "accepted"]) == 0
        assert capsys.readouterr().out == "0 trajectories\n"
        assert run_command(["rollouts", "list", *common]) == 0
        listed = capsys.readouterr().out
        assert (
            "gate judge 0.8, tools full, context chain, temperature of the endpoint" in listed
            and "1 trajectory, 1 reje" in listed
        )
        assert run_command(["rollouts", "show", row["id"][:6], *common, "--messages"]) == 0
        page = capsys.readouterr().out
        assert f"trajectory {row['id']}: rejected" in page and "attempt 1 (submitted): rejected, score 0" in page
        assert "-> submit" in page
        assert run_command(["rollouts", "show", row["id"], *common, "--json", "--messages"]) == 0
        whole = json.loads(capsys.readouterr().out)
        assert [message["kind"] for message in whole["messages"]] == ["system", "query", "turn", "observation"]
        assert whole["options"]["refinements"] == 0

    def test_a_run_that_would_pay_for_another_rollout_says_how_the_stored_one_differs_and_how_to_go_on_with_it(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def dry(*flags: str) -> tuple[str, str]:
            assert run_command([*arguments, "--dry-run", *flags]) == 0
            printed = capsys.readouterr()
            return printed.out.splitlines()[0], printed.err

        arguments = ["rollouts", "run", "--db", world.database, "--backend", "local", "--limit", "2"]
        assert dry() == ("2 rollouts to run", "")
        assert run_command([*arguments, "--refinements", "0", "--samples", "2"]) == 1, "none was accepted"
        assert "other options" not in capsys.readouterr().err, "nothing stood there before"
        first, said = dry()
        assert first == "2 rollouts to run"
        assert said.startswith("4 rollouts of these chains had other options or models; the nearest, ")
        assert "had --refinements 0, not 3: `--like " in said
        name = said.split("`--like ")[1].split("`")[0]
        alike = ["rollouts", "run", "--db", world.database, "--limit", "2", "--samples", "2", "--like", name]
        assert run_command([*alike, "--dry-run"]) == 0
        assert capsys.readouterr().out.startswith("0 rollouts to run; 4 done before")
        _, said = dry("--agent", "temperature=1", "--refinements", "0")
        assert "had --agent temperature none, not 1: " in said
        assert dry("--samples", "3", "--refinements", "0") == ("2 rollouts to run; 4 done before", ""), "not others"
        _, said = dry("--gate", "tests", "--refinements", "0")
        assert "had --gate judge, not tests: `--like" in said, "that no judge is asked follows from the gate"
        assert run_command([*arguments, "--dry-run", "--gate", "both"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(
            "0 rollouts to run\n  2 rollouts would end at once, without a call: --gate both needs"
        )
        assert run_command([*arguments, "--dry-run", "--json"]) == 0
        others = json.loads(capsys.readouterr().out)["with_other_options"]
        assert (others["over"], others["begun"]) == (4, 0)
        assert others["differences"] == [{"name": "--refinements", "stored": "0", "now": "3"}]

        assert run_command([*arguments, "--like", name, "--refinements", "1"]) == 2
        assert f"--like takes all options of {name}; leave out --backend, --refinements" in capsys.readouterr().err
        assert run_command(["rollouts", "run", "--db", world.database, "--like", "ffff"]) == 2

    def test_show_step_prints_what_one_step_changed(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        name = roll(world.context(PolicyModel()), world.chains[0], 0)
        show = ["rollouts", "show", name[:6], "--db", world.database, "--step"]
        monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.settings().data_dir))
        with world.store.reading() as tx:
            rows = list(tx.rows(TrajectoryMessage, "step", "tree", trajectory_id=name))
        changing = [step for step, tree in rows if tree]
        quiet = next(step for step, _ in rows if step and step not in changing)
        assert run_command([*show, str(changing[0])]) == 0
        patch = capsys.readouterr().out
        assert patch.startswith("diff --git a/") and "\n+" in patch
        assert run_command([*show, str(changing[0]), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["patch"].startswith("diff --git a/")
        assert run_command([*show, str(quiet)]) == 0
        out, err = capsys.readouterr()
        assert out == "" and "changed no file" in err
        assert run_command([*show, "999"]) == 1
        assert "has no step 999; its last is" in capsys.readouterr().err
        assert run_command([*show, "1", "--messages"]) == 2

    def test_the_patch_of_a_step_is_printed_byte_by_byte(self, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        patch = b"+\tcc -o a a.c\r\n+\x0c\xe9 \xe2\x80\x8b\n\\ No newline at end of file\n"
        print_step_diff(StepDiff("81c2", 1, 1, patch))
        assert capsysbinary.readouterr().out == patch
        row = StepDiff("81c2", 1, 1, patch).row()
        assert base64.b64decode(row.pop("patch_base64")) == patch
        assert row == {"trajectory": "81c2", "step": 1, "stage": 1, "patch": patch.decode("utf-8", "replace")}

    def test_a_rollout_as_in_a_paper_is_the_one_with_the_same_settings_spelt_out(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = ["rollouts", "run", "--db", world.database, "--backend", "local", "--limit", "1"]
        assert run_command(["--as-paper", "swe-prm", *command, "--gate", "judge"]) == 1, "an empty patch"
        ((decided_by,),) = world.rows(Trajectory, "decided_by")
        assert "swe-prm" not in json.dumps(decided_by)
        stored = decided_by if isinstance(decided_by, dict) else json.loads(decided_by)
        assert stored["options"] == {
            "backend": "local", "calls": "text", "min_length": 1, "refinements": 0, "stage_limits": {"steps": 75},
            "shell": "swe-agent", "tools": "swe-agent",
        }  # fmt: skip
        assert (stored["models"]["agent"]["temperature"], stored["models"]["agent"]["top_p"]) == (0.0, 1.0)
        (observer,) = stored["observers"]
        assert {name: observer["settings"][name] for name in ("every", "window", "evidence")} == {
            "every": 5, "window": 8, "evidence": "any"
        }  # fmt: skip
        capsys.readouterr()
        spelt = "--gate judge --min-length 1 --refinements 0 --stage-limits steps=75 --tools swe-agent "
        spelt += "--agent temperature=0,top_p=1,calls=text,shell=swe-agent "
        spelt += "--prm D:every=5,window=8,evidence=any,words=raw,rules=paper"
        assert run_command([*command, *spelt.split(), "--dry-run"]) == 0
        assert capsys.readouterr().out == "0 rollouts to run; 1 done before\n"

    def test_prompts_of_the_users_own_that_cannot_be_filled_in_are_refused_before_anything_is_asked(
        self, world: RolloutWorld, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "own" / "verdicts").mkdir(parents=True)
        (tmp_path / "own" / "verdicts" / "judge.j2").write_text("{% block user %}{{ refrence }}{% endblock %}")
        (tmp_path / "prchain.toml").write_text('prompts_dir = "own"\n')
        assert run_command(["rollouts", "run", "--db", world.database, "--backend", "local"]) == 2
        assert "prompts_dir: verdicts/judge.j2 must have the blocks system, user" in capsys.readouterr().err
        assert world.rows(LlmCall, "id") == [] and world.rows(Trajectory, "id") == []

    def test_a_prompt_of_the_users_own_is_what_the_agent_reads_and_its_hash_is_in_the_identity(
        self, world: RolloutWorld, script: Path, tmp_path: Path
    ) -> None:
        command = ["rollouts", "run", "--db", world.database, "--backend", "local", "--limit", "1"]
        command += ["--refinements", "0"]
        assert run_command(command) == 1, "an empty patch"
        name = "trajectories.agents.scaffolds", "system_full"
        ours = prompt_source(*name).decode()
        own = ours.replace("{% block user %}", "{% block user %}\nDu arbeitest sorgfältig.")
        (tmp_path / "own" / "scaffolds").mkdir(parents=True)
        (tmp_path / "own" / "scaffolds" / "system_full.j2").write_text(own, encoding="utf-8")
        (tmp_path / "prchain.toml").write_text('prompts_dir = "own"\n')
        for _ in range(2):
            assert run_command(command) == 1, "another trajectory, and not a third one"
        told = {
            trajectory: decided["prompts"]["system_full"]
            for trajectory, decided in world.rows(Trajectory, "id", "decided_by")
        }
        hashes = [Prompt.from_source("x", text.encode()).hash for text in (ours, own)]
        assert len(told) == 2 and set(told.values()) == {*hashes}
        read = world.rows(TrajectoryMessage, "trajectory_id", "content", kind="system")
        german = {told[trajectory] for trajectory, content in read if content.startswith("Du arbeitest sorgfältig.")}
        assert len(read) == 2 and german == {hashes[1]}

    def test_a_dry_run_rounds_the_tokens_for_people_and_not_for_machines(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ["rollouts", "run", "--db", world.database, "--backend", "local", "--dry-run"]
        assert run_command([*arguments, "--json"]) == 0
        row = json.loads(capsys.readouterr().out)
        assert (row["tokens_in"], row["tokens_out"]) == (6_032_400, 64_800)
        assert run_command(arguments) == 0
        assert ", 6,000,000 tokens in (cached ones too), 65,000 out, " in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("count", "text"), [(0, "0"), (7, "7"), (99, "99"), (104, "100"), (64_800, "65,000"), (8_003_400, "8,000,000")]
    )
    def test_an_estimate_has_two_significant_digits(self, count: int, text: str) -> None:
        assert _rounded(count) == text

    def test_a_rollout_whose_worker_is_gone_is_told_as_interrupted_with_what_it_did(
        self, world: RolloutWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Killed(BaseException):
            pass

        def killed(request: Any) -> None:
            if "Task 2 of" in str([message.content for message in request.messages]):
                raise Killed

        with pytest.raises(Killed):
            roll(world.context(PolicyModel(before=killed)), world.chains[0], 0)
        ((worker,),) = world.rows(Trajectory, "worker")
        assert worker == str(this_process()) and list_trajectories(world.store)[0].outcome == "running"
        gone = replace(this_process(), start="0")  # another process has its number now
        with world.store.transaction() as tx:
            tx.connection.execute(update(Trajectory).values(worker=str(gone)))
        (row,) = list_trajectories(world.store)
        assert (row.outcome, row.accepted, row.steps, bool(row.usd)) == ("interrupted", 1, 3, True)
        assert run_command(["rollouts", "show", row.id[:6], "--db", world.database]) == 0
        page = capsys.readouterr().out
        assert "was worked on by" in page and ": interrupted" in page and "3 steps" in page

    def test_a_run_tells_where_its_rollouts_are(self, world: RolloutWorld) -> None:
        output = io.StringIO()
        with open_progress(stream=output, every=0.0) as progress:
            run = RolloutRun(world.context(), RolloutChoice(limit=1), progress)
            assert run.run().counts == {"accepted": 1}
        lines = output.getvalue()
        place = f"{world.chains[0]} sample 0: stage 2 of 2, attempt 2, step 8; "
        assert re.search(rf"{re.escape(place)}\d+ calls, 0\.\d+ USD", lines) and "verdict" in lines

    def test_a_gate_of_tests_on_chains_that_were_not_validated_says_what_to_run_first(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ["rollouts", "run", "--db", world.database, "--backend", "local", "--gate", "tests"]
        assert run_command(arguments) == 1
        output = capsys.readouterr()
        assert "`prchain environments validate` first" in output.err
        assert "4 rollouts not done" in output.err and "Traceback" not in output.err

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--backend", "unsafe-local"], "give both"),
            (["--unsafe-local"], "give both"),
            (["--backend", "local", "--branch", "81c2"], "as in 81c2:17"),
            (["--backend", "local", "--branch", "81c2:4"], "no trajectory's id begins with"),
            (["--backend", "local", "--agent", "context_tokens=8192"], "no room for a prompt"),
            (["--backend", "local", "--chain", "ffff"], "no chain's id begins with"),
            (["--backend", "local", "--repository", "no/such"], "has not been mined"),
        ],
    )
    def test_what_cannot_be_meant_is_one_line_and_exit_code_2(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
    ) -> None:
        assert run_command(["rollouts", "run", "--db", world.database, *arguments]) == 2
        err = capsys.readouterr().err
        assert said in err and len(err.strip().splitlines()) == 1

    @pytest.mark.parametrize("of", ["stage", "chain"])
    @pytest.mark.parametrize("unit", ["usd", "minutes", "tokens"])
    def test_a_limit_under_which_nothing_could_be_asked_is_refused(
        self, world: RolloutWorld, script: Path, capsys: pytest.CaptureFixture[str], of: str, unit: str
    ) -> None:
        base = ["rollouts", "run", "--db", world.database, "--backend", "local"]
        assert run_command([*base, f"--{of}-limits", f"{unit}=0"]) == 2
        assert f"'--{of}-limits': {unit}: " in capsys.readouterr().err and world.rows(Trajectory, "id") == []

    def test_replies_are_as_flags_say_then_as_the_settings_and_the_trajectory_keeps_which(
        self, world: RolloutWorld, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def options(*flags: str) -> tuple[float | None, int]:
            base = ["rollouts", "run", "--db", world.database, "--backend", "local", "--limit", "1"]
            assert run_command([*base, "--gate", "judge", "--refinements", "0", *flags]) == 1, "none was accepted"
            stored = [options for (options,) in world.rows(Trajectory, "options")]
            assert len(stored) == len(known_options) + 1, "other values make another trajectory"
            (new,) = [row for row in stored if row not in known_options]
            known_options.append(new)
            return new["temperature"], new["max_tokens"]

        known_options: list[dict[str, Any]] = []
        assert options() == (None, 8192)
        (tmp_path / "prchain.toml").write_text("[purposes.agent]\ntemperature = 0.2\nmax_tokens = 1000\n")
        assert options() == (0.2, 1000)
        assert options("--agent", "temperature=0,max_tokens=4000") == (0.0, 4000)
        assert options("--agent", "temperature=1") == (1.0, 1000)

    @pytest.mark.parametrize("flag", ["--stage-limits", "--chain-limits"])
    def test_a_limit_in_usd_without_prices_is_refused_before_anything_is_done(
        self, world: RolloutWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flag: str
    ) -> None:
        monkeypatch.setenv("PRCHAIN_LLM_MODEL", "some")
        assert run_command(["rollouts", "run", "--db", world.database, "--backend", "local", flag, "usd=1"]) == 2
        assert "a limit in USD needs the price of some" in capsys.readouterr().err
        assert world.rows(Trajectory, "id") == []

    @pytest.mark.parametrize("command", [[], ["run"], ["list"], ["show"]])
    def test_every_command_has_a_help_with_an_example(self, command: list[str]) -> None:
        code, output = invoke(*command, "--help")
        assert code == 0 and "Example:" in output and "prchain rollouts" in output
