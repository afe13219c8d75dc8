"""A run that is killed in the middle of many tasks: what the next one pays, loses and ends with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sql.tables import LlmCall, Task, TaskStage
from tests.chains.taskworld import OVERVIEW, PLAN, crowd, crowd_query, mined

ROOT = Path(__file__).parents[2]
TASKS, WORKERS = 200, 8
CALLS = 3 * TASKS


class Endpoint(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint on this machine that answers well and counts what it bills."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.billed: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.reached = threading.Event()
        self.alarm_at = -1

    @property
    def url(self) -> str:
        """What OPENAI_BASE_URL has to be."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that were killed; anything else is a defect of the test."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def bill(self, body: str) -> None:
        """Count one call."""
        with self.lock:
            self.billed[body] += 1
            if self.billed.total() == self.alarm_at:
                self.reached.set()


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length).decode()
        if len(body.encode()) < length:  # cut off by a kill: nobody bills half a request
            self.close_connection = True
            return
        self.server.bill(body)
        reply = {
            "id": "x", "object": "chat.completion", "created": 0, "model": "fake",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": json.dumps(_answer(json.loads(body)))}}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
        }  # fmt: skip
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _answer(request: dict[str, Any]) -> dict[str, str]:
    text = request["messages"][-1]["content"]
    if "Write the overview" in text:
        return {"overview": OVERVIEW}
    match = re.search(r"<<<files \w+\nsrc/part(\d+)\.py", text)
    return {"query": crowd_query(int(match[1]))} if match else PLAN


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A running endpoint."""
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def build(folder: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    """Start `prchain tasks build` as a user does."""
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OPENAI_BASE_URL": url, "PRCHAIN_LLM_MODEL": "fake",
        "PRCHAIN_LLM_PRICE_INPUT": "1", "PRCHAIN_LLM_PRICE_OUTPUT": "4", "OPENAI_API_KEY": "none",
    }  # fmt: skip
    code = "from chains.task_cli import tasks; tasks()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "build", "--db", "prchain.db", "--json", *arguments],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_killed_in_the_middle_of_many_tasks_nothing_is_paid_twice_and_no_task_is_lost(tmp_path: Path) -> None:
    numbers = [[number] for number in range(1, TASKS + 1)]
    with mined(tmp_path, crowd(tmp_path, TASKS), numbers) as world, endpoint() as server:
        server.alarm_at = CALLS // 2
        run = build(tmp_path, server.url, "--workers", str(WORKERS))
        assert server.reached.wait(timeout=120), run.communicate(timeout=1)
        run.kill()
        run.communicate()
        done = world.rows(Task, "chain_id", "outcome")
        assert 0 < len(done) < TASKS
        assert len(world.rows(TaskStage, "chain_id")) == len(done)
        in_flight = len(world.rows(LlmCall, "id", state="reserved"))
        assert in_flight <= WORKERS
        dry = build(tmp_path, server.url, "--workers", "1", "--dry-run")
        said, err = dry.communicate(timeout=120)
        assert dry.returncode == 0, err
        assert json.loads(said)["tasks"] == TASKS - len(done)

        run = build(tmp_path, server.url, "--workers", str(WORKERS))
        said, err = run.communicate(timeout=240)
        assert run.returncode == 0, err
        report = json.loads(said)
        assert (report["stood_before"], report["left"]) == (len(done), 0)
        assert report["outcomes"] == {"ready": TASKS - len(done)}
        twice = [body for body, count in server.billed.items() if count > 1]
        assert len(server.billed) == CALLS and len(twice) <= in_flight
        assert server.billed.total() <= CALLS + in_flight
        assert len(world.rows(LlmCall, "id", state="stored")) == CALLS
        assert world.rows(Task, "outcome") == [("ready",)] * TASKS
        assert world.rows(TaskStage, "outcome", "attempts") == [("ready", 1)] * TASKS


def test_a_budget_is_kept_and_the_run_says_what_to_do(tmp_path: Path) -> None:
    numbers = [[number] for number in range(1, 13)]
    with mined(tmp_path, crowd(tmp_path, 12), numbers) as world, endpoint() as server:
        # 0.0014 USD a call by its usage; a reservation is for 4096 tokens of reply and a token for every byte.
        run = build(tmp_path, server.url, "--workers", "8", "--budget", "0.05")
        said, err = run.communicate(timeout=120)
        report = json.loads(said)
        assert run.returncode == 1 and "budget" in report["stopped"], err
        assert report["usd"] <= 0.05 and server.billed.total() * 0.0014 <= 0.05
        assert "Traceback" not in err
        assert {outcome for (outcome,) in world.rows(Task, "outcome")} <= {"ready", "budget_exceeded"}
        run = build(tmp_path, server.url, "--workers", "8", "--budget", "1")
        said, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
        assert server.billed.total() == 36 and set(server.billed.values()) == {1}
        assert world.rows(Task, "outcome") == [("ready",)] * 12
