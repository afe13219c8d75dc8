"""The commands of tasks, as a user calls them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import update

from chains.tasks.record import TaskRecord
from prchain.core.errors import PrchainError, SettingsError, StoreUnavailable, UsageError
from sql.cli import sql
from sql.lock import exclusive_lock
from sql.tables import LlmCall, Selection, StageTests, Task
from tests.chains.taskworld import CHAIN, OVERVIEW, PLAN, QUERIES, TaskWorld, mined, shop
from tests.test_docs import command

tasks = command("tasks")

SCRIPT: list[dict[str, Any]] = [
    {"purpose": "plan", "reply": PLAN, "repeat": True},
    {"purpose": "overview", "reply": {"overview": OVERVIEW}, "repeat": True},
]


class Page(BaseHTTPRequestHandler):
    """Answers a page to whatever is asked."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<!doctype html><html><title>Welcome</title></html>")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def web_site() -> Iterator[str]:
    """The URL of a web site on this machine."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskWorld]:
    monkeypatch.chdir(tmp_path)
    with mined(tmp_path, shop(tmp_path), [CHAIN]) as task_world:
        lines = [
            *SCRIPT,
            *(
                {
                    "purpose": "query",
                    "subject": f"{task_world.chains[0]}/{number}",
                    "reply": {"query": text},
                    "repeat": True,
                }
                for number, text in QUERIES.items()
            ),
        ]
        script = tmp_path / "script.jsonl"
        script.write_text("".join(json.dumps(line) + "\n" for line in lines))
        monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(script))
        yield task_world


def call(world: TaskWorld, *arguments: str, fails: type[PrchainError] | None = None) -> Result:
    result = CliRunner().invoke(tasks, [*arguments, "--db", world.database])
    if fails is not None:
        assert isinstance(result.exception, fails), result.output
        assert "\n" not in str(result.exception)
    else:
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize("command", [[], ["build"], ["list"], ["show"], ["export"]])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(tasks, [*command, "--help"])
    assert result.exit_code == 0 and "Example:" in result.output and "prchain tasks" in result.output


class TestBuild:
    def test_writes_the_tasks_and_says_so(self, world: TaskWorld) -> None:
        result = call(world, "build")
        assert result.exit_code == 0
        assert "1 ready; 0 done before; 7 calls, 0.0000 USD" in result.stdout
        again = call(world, "build", "--json")
        assert again.exit_code == 0
        assert json.loads(again.stdout) == {
            "worked_on": 0,
            "outcomes": {},
            "reasons": {},
            "stood_before": 1,
            "stood_before_as": {"ready": 1},
            "outdated": 0,
            "unlabelled": 0,
            "refused_texts": {"check": 0, "review": 0},
            "left": 0,
            "stopped": None,
            "calls": 0,
            "refused": 0,
            "usd": 0.0,
        }

    def test_a_dry_run_says_what_it_takes_and_leaves_no_row(self, world: TaskWorld) -> None:
        assert "1 task to write: 7 calls" in call(world, "build", "--dry-run").stdout
        row = json.loads(call(world, "build", "--dry-run", "--json").stdout)
        assert (row["tasks"], row["calls"], row["usd"]) == (1, 7, 0.0)
        assert world.rows(LlmCall, "id") == world.rows(Task, "chain_id") == []

    def test_what_is_not_done_is_exit_code_1_with_the_reason(self, world: TaskWorld, tmp_path: Path) -> None:
        (tmp_path / "script.jsonl").write_text("")
        result = call(world, "build")
        assert result.exit_code == 1
        assert "script_unknown" in result.stderr and "run the same command again" in result.stderr

    def test_a_rejected_task_is_done_and_no_success(self, world: TaskWorld, tmp_path: Path) -> None:
        leak = {"purpose": "query", "reply": {"query": "Call it CouponLedger."}, "repeat": True}
        (tmp_path / "script.jsonl").write_text("\n".join(json.dumps(line) for line in [*SCRIPT, leak]))
        result = call(world, "build")
        assert result.exit_code == 1 and "1 query_rejected" in result.stdout
        assert result.stderr.endswith("no task is ready\n")
        again = call(world, "build")
        assert again.exit_code == 1 and "1 done before (1 query_rejected)" in again.stdout
        assert "`prchain tasks build --retry` begins another round" in again.stdout

    def test_garbage_replies_are_exit_code_1_and_shown_as_the_model_said_them(
        self, world: TaskWorld, tmp_path: Path
    ) -> None:
        garbage = {"purpose": "plan", "reply": "I am a teapot.\n\tShort and stout.", "repeat": True}
        (tmp_path / "script.jsonl").write_text(json.dumps(garbage))
        result = call(world, "build")
        assert result.exit_code == 1 and "1 bad_reply" in result.stdout
        assert result.stderr.endswith("no task is ready\n")
        page = call(world, "show", world.chains[0]).stdout
        assert "the last reply, which could not be used (plan, scripted, stop):\n    I am a teapot.\n" in page
        assert "Short and stout." in page
        assert "bad_reply (stage 1)" in page
        assert (result.output.count("no usable reply"), page.count("no usable reply")) == (1, 1), "each cause once"
        row = json.loads(call(world, "show", world.chains[0], "--json").stdout)
        assert row["said"] is None and row["stages"][0]["said"]["text"].startswith("I am a teapot.")

    def test_a_base_url_that_answers_web_pages_is_tried_again_by_a_later_run(
        self, world: TaskWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.add_chain([1], score=9.0)
        script = os.environ["PRCHAIN_LLM_SCRIPT"]
        monkeypatch.delenv("PRCHAIN_LLM_SCRIPT")
        with web_site() as url:
            monkeypatch.setenv("PRCHAIN_LLM_MODEL", "m")
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            result = call(world, "build")
        assert (result.exit_code, world.rows(Task, "outcome")) == (1, [("endpoint_incompatible",)] * 2)
        assert result.stderr.count("answered with a web page") == 1, "one cause, told once"
        assert "and 1 more: endpoint_incompatible: " in result.stderr
        monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", script)
        call(world, "build", "--chain", world.chains[0])
        assert ("ready",) in world.rows(Task, "outcome")

    def test_show_diff_prints_the_reference_after_each_query(self, world: TaskWorld) -> None:
        call(world, "build")
        page = call(world, "show", world.chains[0], "--reference").stdout
        for position, number in enumerate(CHAIN, 1):
            query, heading = QUERIES[position], f"reference of stage {position}, #{number}:\ndiff --git a/"
            assert -1 < page.find(" ".join(query.split()[:6])) < page.find(heading), position
        assert "\n+" in page and "diff --git" not in call(world, "show", world.chains[0]).stdout
        stages = json.loads(call(world, "show", world.chains[0], "--reference", "--json").stdout)["stages"]
        assert all(stage["reference"].startswith("diff --git a/") for stage in stages)

    def test_one_chain_can_be_named_by_the_beginning_of_its_id(self, world: TaskWorld) -> None:
        world.add_chain([1], score=9.0)
        other = world.add_chain([2], strategy="single")
        assert "1 task to write" in call(world, "build", "--dry-run", "--chain", world.chains[0][:6]).stdout
        assert "1 ready" in call(world, "build", "--chain", world.chains[0][:6]).stdout
        assert world.rows(Task, "chain_id") == [(world.chains[0],)]
        call(world, "build", "--chain", "zz", fails=UsageError)
        result = call(world, "build", "--chain", other, fails=UsageError)
        assert "is not one that --strategy reference chose" in str(result.exception)

    def test_a_run_counts_refused_calls_as_the_ledger_does(self, world: TaskWorld, tmp_path: Path) -> None:
        (tmp_path / "script.jsonl").write_text("")
        assert "; 0 calls, 1 refused, 0.0000 USD" in call(world, "build").stdout
        row = json.loads(CliRunner().invoke(sql, ["spending", "--json", "--db", world.database]).stdout)[0]
        assert (row["calls"], row["refused"]) == (0, 1)

    def test_without_a_model_nothing_begins(self, world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PRCHAIN_LLM_SCRIPT")
        call(world, "build", fails=UsageError)
        monkeypatch.setenv("PRCHAIN_LLM_MODEL", "some")
        call(world, "build", "--budget", "1", fails=SettingsError)
        assert world.rows(LlmCall, "id") == []

    def test_a_task_that_another_build_is_writing_is_said_and_nothing_is_asked(self, world: TaskWorld) -> None:
        with exclusive_lock(world.store, f"task-{world.chains[0]}", "prchain tasks build"):
            result = call(world, "build")
            assert result.exit_code == 1 and "1 taken" in result.stdout
            assert "another run works on it" in result.stderr and "the same command says what is left" in result.stderr
            assert call(world, "build", "--dry-run").exit_code == 0
        assert world.rows(LlmCall, "id") == []

    def test_a_dry_run_names_what_it_cannot_read(self, world: TaskWorld, tmp_path: Path) -> None:
        world.world.path.rename(tmp_path / "away.git")
        result = call(world, "build", "--dry-run")
        assert "0 tasks to write" in result.stdout and "not counted, not_a_repository" in result.stderr

    def test_a_repository_that_is_not_there_is_said(self, world: TaskWorld) -> None:
        call(world, "build", "--repository", "o/none", fails=UsageError)

    def test_a_database_that_is_not_there_is_said(self) -> None:
        result = CliRunner().invoke(tasks, ["list", "--db", "missing.db"])
        assert isinstance(result.exception, StoreUnavailable)


class TestPages:
    @pytest.fixture(autouse=True)
    def _built(self, world: TaskWorld) -> None:
        world.say(2, title="Count \x1b[31mcoupons\x1b[0m \u202eonce\nforged line")
        call(world, "build")

    def test_the_list(self, world: TaskWorld) -> None:
        lines = call(world, "list").stdout.splitlines()
        assert lines == [
            "chain             outcome  repository  pull requests",
            f"{world.chains[0]}  ready    shop/till   #1 > #2 > #3",
            "1 task, 1 ready",
        ]
        assert call(world, "list", "--outcome", "query_rejected").stdout == "0 tasks\n"
        assert call(world, "list", "--strategy", "single").stdout == "0 tasks\n"
        (row,) = json.loads(call(world, "list", "--repository", "SHOP/till", "--json").stdout)
        assert (row["numbers"], row["outcome"]) == ([1, 2, 3], "ready")

    def test_the_page_by_the_beginning_of_an_id(self, world: TaskWorld) -> None:
        page = call(world, "show", world.chains[0][:5].upper()).stdout
        for text in (
            "#2 Count",
            "overview",
            "The work turns a plain till",
            "round_half_even_cents",
            "7 calls",
            "src/till/coupons.py",
            "confidence 0.90",
            "licence MIT",
        ):
            assert text in page
        assert "Sums were off." not in page, "the plan may hold the solution"
        assert "\x1b" not in page and "\u202e" not in page and "\nforged line" not in page
        assert max(map(len, page.splitlines())) < 160

    def test_the_page_as_json_holds_everything(self, world: TaskWorld) -> None:
        page = json.loads(call(world, "show", world.chains[0], "--json").stdout)
        assert [stage["query"] for stage in page["stages"]] == list(QUERIES.values())
        assert page["stages"][0]["plan"].startswith("why: ") and page["cost"]["calls"] == 7

    def test_calls_of_killed_runs_are_told_with_what_they_count(self, world: TaskWorld) -> None:
        with world.store.transaction() as tx:
            tx.connection.execute(update(LlmCall).where(LlmCall.ordinal == 0).values(state="lost"))
        page = call(world, "show", world.chains[0]).stdout
        assert "of them without a reply, as killed runs leave, counted as the most that they may cost" in page

    @pytest.mark.parametrize("prefix", ["zz", "", "%"])
    def test_an_id_that_names_no_task_is_said(self, world: TaskWorld, prefix: str) -> None:
        call(world, "show", prefix, fails=UsageError)

    def test_an_id_that_names_several_is_said(self, world: TaskWorld) -> None:
        first = world.chains[0]
        twin = first[:4] + ("0" if first[4] != "0" else "1") + first[5:]
        row: dict[str, Any] = {
            "outcome": "ready",
            "reason": None,
            "overview": None,
            "findings": [],
            "attempts": 0,
            "model": None,
            "prompts": {},
            "created_at": "2026-01-01T00:00:00Z",
        }
        with world.store.transaction() as tx:
            from sql.tables import Chain

            tx.upsert(Chain, [{"id": twin, "repository_id": world.repository_id, "length": 1}])
            tx.upsert(Task, [{"chain_id": twin, **row}])
        result = call(world, "show", first[:4], fails=UsageError)
        assert "several chains" in str(result.exception)

    def test_a_chain_without_a_task_is_said(self, world: TaskWorld) -> None:
        other = world.add_chain([1])
        result = call(world, "show", other, fails=UsageError)
        assert "has no task yet" in str(result.exception)


class TestExport:
    @pytest.fixture(autouse=True)
    def _built(self, world: TaskWorld) -> None:
        call(world, "build")

    def test_to_a_file(self, world: TaskWorld, tmp_path: Path) -> None:
        out = tmp_path / "tasks.jsonl"
        assert call(world, "export", "--out", str(out)).stdout == f"1 task written to {out}\n"
        assert TaskRecord.model_validate_json(out.read_text()).interface_mode == "appended"
        call(world, "export", "--out", str(out), fails=UsageError)
        row = json.loads(call(world, "export", "--out", str(out), "--force", "--json").stdout)
        assert row == {"tasks": 1, "file": str(out), "left_out": 0, "stand_as": {"ready": 1}}

    def test_where_nothing_is_ready_no_file_is_written_and_what_stands_is_said(
        self, world: TaskWorld, tmp_path: Path
    ) -> None:
        world.add_chain([1])
        with world.store.transaction() as tx:
            tx.connection.execute(update(Task).values(outcome="query_rejected"))
        out = tmp_path / "tasks.jsonl"
        result = call(world, "export", "--out", str(out))
        assert (result.exit_code, result.stdout, list(tmp_path.glob("*tasks.jsonl*"))) == (1, "", [])
        assert "not ready: 2 chains, 1 query_rejected, 1 without a task" in result.stderr
        assert "`prchain tasks build` writes what is missing" in result.stderr and "--retry" in result.stderr
        row = json.loads(call(world, "export", "--out", str(out), "--json").stdout)
        assert (row["tasks"], row["file"], row["stand_as"]) == (0, None, {"query_rejected": 1, "without a task": 1})
        assert call(world, "export", "--out", str(out), "--outcome", "query_rejected").exit_code == 0
        assert len(out.read_text().splitlines()) == 1

    def test_rejected_tasks_are_named_beside_the_ready_ones(self, world: TaskWorld, tmp_path: Path) -> None:
        rejected = world.add_chain([2])
        row: dict[str, Any] = {
            "outcome": "bad_reply",
            "reason": None,
            "overview": None,
            "findings": [],
            "attempts": 4,
            "model": None,
            "prompts": {},
            "created_at": "2026-01-01T00:00:00Z",
        }
        with world.store.transaction() as tx:
            tx.upsert(Task, [{"chain_id": rejected, **row}])
        result = call(world, "export", "--out", str(tmp_path / "tasks.jsonl"))
        assert (result.exit_code, "1 task written" in result.stdout) == (0, True)
        assert "not ready: 1 chain, 1 bad_reply" in result.stderr

    def test_a_file_stays_as_it_was_where_there_is_nothing_to_replace_it_by(
        self, world: TaskWorld, tmp_path: Path
    ) -> None:
        out = tmp_path / "tasks.jsonl"
        out.write_text("dear\n")
        assert call(world, "export", "--out", str(out), "--strategy", "temporal", "--force").exit_code == 1
        assert out.read_text() == "dear\n"

    def test_what_is_left_out_is_said_and_exit_code_1(self, world: TaskWorld, tmp_path: Path) -> None:
        world.world.path.rename(tmp_path / "away.git")
        for out in ("-", str(tmp_path / "tasks.jsonl")):
            result = call(world, "export", "--out", out)
            assert result.exit_code == 1
            assert f"{world.chains[0]} (shop/till): left out, not_a_repository: " in result.stderr
        assert not (tmp_path / "tasks.jsonl").exists()

    def test_retired_tasks_on_request(self, world: TaskWorld) -> None:
        with world.store.transaction() as tx:
            tx.connection.execute(update(Selection).values(outcome="retired"))
        assert call(world, "export", "--out", "-").stdout == ""
        (line,) = call(world, "export", "--out", "-", "--retired").stdout_bytes.splitlines()
        assert TaskRecord.model_validate_json(line).selection == "retired"

    def test_to_standard_output(self, world: TaskWorld) -> None:
        result = call(world, "export", "--out", "-", "--interface", "paper")
        (line,) = result.stdout_bytes.splitlines()
        record = TaskRecord.model_validate_json(line)
        assert record.interface_mode == "paper" and record.stages[0].interface == ()
        call(world, "export", "--out", "-", "--json", fails=UsageError)

    def test_of_another_strategy_there_is_none(self, world: TaskWorld) -> None:
        assert call(world, "export", "--out", "-", "--strategy", "temporal").stdout == ""


class TestExportForSweBench:
    """`tasks export --format swebench` reads what the validation of chains left in the database."""

    @staticmethod
    def validated(world: TaskWorld, **values: Any) -> None:
        row = {
            "chain_id": world.chains[0],
            "position": 1,
            "outcome": "proved",
            "reason": None,
            "image": "deps:1",
            "recipe": "python",
            "runner": "pytest",
            "command": "python -m pytest -rp tests/test_cart.py",
            "files": [],
            "classes": {"f2p": ["tests/t.py::new"], "p2p": ["tests/t.py::old"], "flaky": []},
            "removed": [],
            "tampered": [],
            "stage_image": "shop:stage-1",
            "seconds": 1.0,
        }
        with world.store.transaction() as tx:
            tx.upsert(StageTests, [row | values])

    def test_a_proved_stage_with_an_image_is_an_instance_and_the_others_are_named(
        self, world: TaskWorld, tmp_path: Path
    ) -> None:
        call(world, "build")
        self.validated(world)
        self.validated(world, position=2, stage_image=None)
        out = tmp_path / "instances.jsonl"
        result = call(world, "export", "--format", "swebench", "--out", str(out))
        assert result.exit_code == 0 and result.stdout == f"1 instance written to {out}\n"
        (line,) = map(json.loads, out.read_text().splitlines())
        assert (line["image"], line["chain_position"]) == ("shop:stage-1", 1)
        assert json.loads(line["FAIL_TO_PASS"]) == ["tests/t.py::new"]
        assert "python -m pytest -rp tests/test_cart.py" in line["eval_script"]
        assert "stage 2: left out: there is no image of its checkout" in result.stderr
        assert "stage 3: left out: the chain is not validated" in result.stderr

    def test_a_stage_whose_tests_prove_nothing_is_no_instance(self, world: TaskWorld) -> None:
        call(world, "build")
        self.validated(world, outcome="no_f2p")
        result = call(world, "export", "--format", "swebench", "--out", "-")
        assert result.stdout == "" and "stage 1: left out: its tests are no_f2p" in result.stderr
