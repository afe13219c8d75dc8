"""A program's own endpoint: what it gets, what is paid for, and what stays of it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

from prchain.cli import cli
from prchain.core import errors
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.wire import body_of
from sql.store import Store
from tests.databases import new_database
from tests.endpoint import FakeEndpoint, wait_for
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel
from tests.trajectories.recordingworld import TOOL, recorder_of, recording, sdk
from trajectories.recording.conversation import Branch
from trajectories.recording.server import LARGEST_BODY, RecordingServer

HELLO: Any = [{"role": "user", "content": "Hello"}]
CALLED = Reply("", "small", "tool_calls", None, "hm", (ToolCall("c", "bash", '{"command": "ls"}'),), Usage(10, 4, 2))


def post(server: RecordingServer, body: bytes, path: str = "/v1/chat/completions", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request("POST", path, body, {"Authorization": f"Bearer {server.token}", **headers})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_openais_client_reads_a_reply_whole_and_as_a_stream() -> None:
    asked: Any = {"model": "any", "messages": HELLO, "tools": [TOOL]}
    with recording(FakeModel(lambda request: CALLED, "small")) as server, sdk(server) as client:
        assert [model.id for model in client.models.list()] == ["small"]
        whole: Any = client.chat.completions.create(**asked)
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            streamed: Any = stream.get_final_completion()
    for read in (whole, streamed):
        (call,) = read.choices[0].message.tool_calls
        assert (call.id, call.type) == ("c", "function")
        assert (call.function.name, call.function.arguments) == ("bash", '{"command": "ls"}')
        assert read.choices[0].finish_reason == "tool_calls"
        assert (read.usage.prompt_tokens, read.usage.completion_tokens) == (10, 2)


def test_what_the_program_asks_reaches_the_endpoint_in_its_own_words(tmp_path: Path) -> None:
    with (
        FakeEndpoint() as fake,
        closing(Endpoint(fake.url, "key-of-mine")) as endpoint,
        recording(OpenAIModel("real", endpoint)) as server,
    ):
        body = {
            "model": "any",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "x"}}]}],
            "tool_choice": "required",
            "tools": [TOOL],
            "top_k": 5,
            "max_tokens": 77,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        assert post(server, json.dumps(body | {"stream": False}).encode())[0] == 200
        (call,) = fake.calls
        expected = {name: value for name, value in body.items() if name not in {"stream", "stream_options"}}
        assert call.body == expected | {"model": "real"}
        assert call.key == "key-of-mine"


def test_who_has_another_token_or_asks_for_anything_else_is_refused() -> None:
    model = FakeModel(lambda request: "hi")
    with recording(model) as server:
        ask = json.dumps({"messages": HELLO}).encode()
        assert post(server, ask, Authorization="Bearer guess")[0] == 401
        assert post(server, ask, Authorization="")[0] == 401
        assert post(server, ask, "/v1/embeddings")[0] == 404
        assert post(server, ask, "/chat/completions")[0] == 404
        assert post(server, b"", **{"Content-Length": str(LARGEST_BODY + 1)})[0] == 413
        status, answer = post(server, b"{}")
        assert status == 400 and "messages" in answer["error"]["message"]
        assert not model.asked


def test_half_a_character_is_sent_as_a_sign_and_what_is_no_json_is_refused() -> None:
    with FakeEndpoint() as fake, closing(Endpoint(fake.url, "key-of-mine")) as endpoint:
        with recording(OpenAIModel("real", endpoint)) as server:
            asked = {"messages": [{"role": "user", "content": "\ud83d hi"}], "stop": ["\udc00"], "top_p": 0.5}
            assert post(server, json.dumps(asked).encode())[0] == 200
            assert post(server, json.dumps(asked | {"temperature": float("nan")}).encode())[0] == 400
            assert recorder_of(server).failed == {"request_unfit": 1}
            assert recorder_of(server).gateway.spending().under_way == 0
        (call,) = fake.calls
        assert call.body["messages"][0]["content"] == "\ufffd hi" and call.body["stop"] == ["\ufffd"]


@pytest.mark.parametrize("most", [10**400, 10**30, -1, 0, True, "5"])
def test_a_length_that_no_reply_has_is_none(most: Any) -> None:
    model = FakeModel(lambda request: "hi")
    with recording(model) as server:
        body = {"messages": HELLO, "max_completion_tokens": None, "max_tokens": most}
        assert post(server, json.dumps(body).encode())[0] == 200
        assert post(server, json.dumps({**body, "max_tokens": 5}).encode())[0] == 200
        assert post(server, b"", **{"Content-Length": "9" * 5_000})[0] == 413
        assert [request.max_tokens for request in model.asked] == [8192, 5]


def test_another_model_or_price_is_not_the_programs_to_choose() -> None:
    body = {"messages": HELLO, "models": ["dear"], "route": "fallback", "service_tier": "priority", "seed": 5}
    sent = body_of(Request((), 9, body=body), "ours")
    assert sent == {"model": "ours", "messages": HELLO, "seed": 5, "max_tokens": 9}


def test_what_could_not_be_kept_is_kept_with_the_next_reply() -> None:
    kept: list[tuple[int, int]] = []

    def keep(branch: Branch, first: int) -> None:
        if len(branch.entries) == 4 and not any(end == 0 for _, end in kept):
            kept.append((first, 0))
            raise errors.DiskFull("no room")
        kept.append((first, len(branch.entries)))

    with recording(FakeModel(lambda request: "hi"), keep=keep) as server:
        history = [*HELLO]
        statuses = []
        for _ in range(3):
            statuses.append(post(server, json.dumps({"messages": history}).encode())[0])
            history += [{"role": "assistant", "content": "hi"}, {"role": "user", "content": f"go on {len(history)}"}]
    assert statuses == [200, 502, 200]
    assert kept == [(0, 2), (2, 0), (2, 6)]


def test_a_slow_or_broken_body_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trajectories.recording.server._ProgramHandler.timeout", 0.2)
    with recording(FakeModel(lambda request: "hi")) as server:
        slow = socket.create_connection(("127.0.0.1", server.server_address[1]))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 999\r\n"
        slow.sendall(f"{head}\r\n{{".encode())
        assert post(server, json.dumps({"messages": HELLO}).encode())[0] == 200
        slow.settimeout(5)
        assert slow.recv(1) == b""
        slow.close()


def begun(server: RecordingServer, length: int) -> socket.socket:
    """A request whose body has so many bytes, none of which was sent."""
    connection = socket.create_connection(("127.0.0.1", server.server_address[1]))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nContent-Length: {length}\r\n"
    connection.sendall(f"{head}\r\n".encode())
    return connection


def test_a_body_that_drips_without_end_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trajectories.recording.server.BODY_SECONDS", 0.3)
    with recording(FakeModel(lambda request: "hi")) as server:
        dripping = begun(server, 99_999)
        with pytest.raises(OSError):
            for _ in range(500):
                dripping.sendall(b" ")
                time.sleep(0.02)
        dripping.close()
        assert post(server, json.dumps({"messages": HELLO}).encode())[0] == 200


def test_bodies_that_are_too_much_together_wait_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trajectories.recording.server.MOST_BYTES", 1000)
    asked = json.dumps({"messages": HELLO}).encode()
    with recording(FakeModel(lambda request: "hi")) as server:
        first = socket.create_connection(("127.0.0.1", server.server_address[1]))
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 990\r\n\r\n"
        )
        first.sendall(head.encode())
        wait_for(lambda: server._held == 990)
        status, answer = post(server, asked)
        assert status == 503 and answer["error"]["message"] == "too much is asked at once"
        first.close()
        wait_for(lambda: server._held == 0)
        assert post(server, asked)[0] == 200


@pytest.mark.parametrize(
    ("failure", "raised", "code"),
    [
        (errors.ContextTooLong("too long"), openai.BadRequestError, "context_length_exceeded"),
        (errors.EndpointRefused("no such model"), openai.BadRequestError, None),
        (errors.RateLimited("later"), openai.RateLimitError, "rate_limit_exceeded"),
        (errors.EndpointUnreachable("gone"), openai.InternalServerError, None),
    ],
)
def test_a_failure_is_told_once_and_no_client_asks_again(
    failure: Exception, raised: type[openai.APIStatusError], code: str | None
) -> None:
    model = FakeModel(lambda request: failure)
    with recording(model, repeats=0) as server, sdk(server, max_retries=3) as client:
        with pytest.raises(raised) as told:
            client.chat.completions.create(model="any", messages=HELLO)
        assert told.value.code == code and str(failure) in told.value.message
        assert len(model.asked) == 1
        assert recorder_of(server).failed == {failure.name: 1}  # type: ignore[attr-defined]


def test_a_failure_after_a_stream_began_is_an_event_of_it() -> None:
    def fail(request: Request) -> Exception:
        time.sleep(0.2)
        return errors.EndpointRefused("no credit")

    with (
        recording(FakeModel(fail), ping_seconds=0.05) as server,
        sdk(server) as client,
        client.chat.completions.create(model="any", messages=HELLO, stream=True) as stream,
        pytest.raises(openai.APIError, match="no credit"),
    ):
        list(stream)


def test_a_stream_is_kept_open_while_the_model_works() -> None:
    def slow(request: Request) -> str:
        time.sleep(0.3)
        return "at last"

    with recording(FakeModel(slow), ping_seconds=0.05) as server, sdk(server, timeout=0.2) as client:
        chunks = list(client.chat.completions.create(model="any", messages=HELLO, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "at last"


def ledger(server: RecordingServer) -> MemoryLedger:
    found = recorder_of(server).gateway.ledger
    assert isinstance(found, MemoryLedger)
    return found


def test_a_request_that_the_client_repeats_gets_the_stored_reply() -> None:
    kept: list[int] = []
    model = FakeModel(lambda request: f"reply {len(model.asked)}")
    with recording(model, keep=lambda branch, first: kept.append(branch.number)) as server:
        ask = json.dumps({"messages": HELLO}).encode()
        first = post(server, ask)[1]["choices"][0]["message"]["content"]
        again = post(server, ask, **{"x-stainless-retry-count": "1"})[1]["choices"][0]["message"]["content"]
        assert first == again == "reply 1" and len(model.asked) == 1 and kept == [0]


def test_a_program_that_asks_the_same_again_gets_another_reply() -> None:
    model = FakeModel(lambda request: f"reply {len(model.asked)}")
    with recording(model) as server, sdk(server) as client:
        said = [client.chat.completions.create(model="any", messages=HELLO).choices[0].message.content for _ in "ab"]
        assert said == ["reply 1", "reply 2"]
        assert len(recorder_of(server).conversations.branches) == 2


def test_a_reply_that_never_arrived_is_kept_for_the_next_time_the_program_asks() -> None:
    waiting, go = threading.Event(), threading.Event()

    def slow(request: Request) -> str:
        waiting.set()
        assert go.wait(10)
        return "paid once"

    model = FakeModel(slow)
    with recording(model, ping_seconds=0.02) as server:
        body = json.dumps({"messages": HELLO, "stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\n"
        hung_up = socket.create_connection(("127.0.0.1", server.server_address[1]))
        hung_up.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert waiting.wait(10)
        hung_up.close()
        time.sleep(0.1)
        go.set()
        wait_for(lambda: bool(recorder_of(server).conversations.branches))
        with sdk(server) as client:
            chunks = list(client.chat.completions.create(model="any", messages=HELLO, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "paid once"
        assert len(model.asked) == 1


def test_the_budget_holds_however_much_a_program_asks_at_once() -> None:
    model = FakeModel(lambda request: Reply("hi", "fake", usage=Usage(1000, 0, 10)))
    with recording(model, budget_usd=0.005) as server:
        statuses: list[int] = []

        def ask(number: int) -> None:
            body = {"messages": [{"role": "user", "content": f"Hello {number}"}], "max_tokens": 50}
            statuses.append(post(server, json.dumps(body).encode())[0])

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200, 402}
        assert recorder_of(server).gateway.spending().usd <= 0.005
        assert recorder_of(server).failed == {"budget_exceeded": statuses.count(402)}


def test_many_conversations_at_once_stay_apart() -> None:
    model = FakeModel(lambda request: f"to {request.messages[-1].content}")
    seen: list[tuple[Branch, int]] = []
    with recording(model, keep=lambda branch, first: seen.append((branch, first))) as server:

        def talk(name: str) -> None:
            history: list[dict[str, str]] = [{"role": "user", "content": name}]
            for turn in range(4):
                _, answer = post(server, json.dumps({"messages": history}).encode())
                history += [answer["choices"][0]["message"], {"role": "user", "content": f"{name} {turn}"}]

        threads = [threading.Thread(target=talk, args=(f"agent {number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        branches = recorder_of(server).conversations.branches
        assert len(branches) == 8 and {len(branch.entries) for branch in branches} == {8}
        for branch in branches:
            name = branch.entries[0].content
            assert all(name in entry.content for entry in branch.entries)


# ---- the command


AGENT = """
import json, os, sys, urllib.request
def ask(messages, tools=[%s]):
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages, "tools": tools}).encode()
    key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, key)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]
history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Mend it. token-of-mine"}]
for _ in range(3):
    history.append(ask(history))
    history.append({"role": "user", "content": "Go on."})
ask([{"role": "user", "content": "A title?"}], [])
print(sorted(name for name, value in os.environ.items() if "real-key" in value))
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
""" % json.dumps(TOOL)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    new_database(tmp_path / "p.db")
    (tmp_path / "agent.py").write_text(AGENT)
    lines = [{"reply": f"Step {number}.", "usage": {"in": 10, "out": 2}} for number in range(4)]
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", "script.jsonl")
    monkeypatch.setenv("OPENAI_API_KEY", "real-key-of-the-user")
    monkeypatch.setenv("GITHUB_TOKEN", "token-of-mine")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["record", "--db", "p.db", *arguments])

    return run


def rows(query: str) -> list[Any]:
    store = Store.open("p.db")
    with store.reading() as tx:
        found = list(tx.connection.execute(text(query)))
    store.close()
    return found


def test_a_recorded_program_is_a_trajectory_that_audit_and_export_take(world: Callable[..., Result]) -> None:
    result = world("--json", "--repository", "demo/measures", "--licence", "MIT", "--", sys.executable, "agent.py")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["calls"], report["exit_code"], report["failed"], len(report["trajectories"])) == (4, 0, {}, 2)
    main = report["trajectories"][0]
    stored = rows(f"SELECT kind, content FROM trajectory_messages WHERE trajectory_id = '{main}' ORDER BY ordinal")
    assert [kind for kind, _ in stored] == ["system", "query", "turn", "query", "turn", "query", "turn"]
    assert stored[1].content == "Mend it. [redacted]" and report["secrets"] == 1
    assert rows("SELECT agent, form, repository, licence FROM imported_trajectories LIMIT 1") == [
        (Path(sys.executable).name, "chat/completions", "demo/measures", "MIT")
    ]
    assert "real-key" not in repr(rows("SELECT * FROM trajectory_messages")) + repr(rows("SELECT * FROM llm_calls"))
    for branches, trained in (("main", [3]), ("all", [1, 3])):
        words = ["--format", "openai", "--outcome", "recorded", "--branches", branches, "--force", "--out", "out.jsonl"]
        exported = CliRunner().invoke(cli, ["export", "--db", "p.db", *words])
        assert exported.exit_code == 0, exported.output
        assert ("left out: 1 branch" in exported.output) is (branches == "main")
        samples = [json.loads(line)["messages"] for line in Path("out.jsonl").read_text().splitlines()]
        weights = [sum(message.get("weight", 0) for message in messages) for messages in samples]
        assert sorted(weights) == trained
    assert CliRunner().invoke(cli, ["rollouts", "audit", "--db", "p.db"]).exit_code == 0
    told = json.loads(CliRunner().invoke(cli, ["stats", "--db", "p.db", "--json"]).stdout)
    assert (told["recorded"]["trajectories"], told["recorded"]["licences"]) == (
        2,
        {"MIT": 2},
    ) and "imported" not in told
    assert "recorded: 2 trajectories, " in CliRunner().invoke(cli, ["stats", "--db", "p.db"]).stdout
    assert [row[0] for row in rows("SELECT DISTINCT outcome FROM trajectory_stages")] == ["recorded"]


def test_the_program_never_has_the_key_of_the_endpoint(world: Callable[..., Result]) -> None:
    words = [sys.executable, "-c", "import os, sys; sys.exit('real-key' in repr(os.environ) + repr(sys.argv))"]
    assert "exit code 1" not in world("--", *words, "{token}", "{base_url}").output


def test_how_the_program_ends_is_told_and_what_it_asked_stays(world: Callable[..., Result]) -> None:
    result = world("--", sys.executable, "agent.py", "3")
    assert result.exit_code == 1
    assert "2 trajectories recorded, with 4 replies" in result.output and "exit code 3" in result.output
    assert rows("SELECT count(*) FROM trajectories") == [(2,)]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["true"], "asked nothing: does it read OPENAI_BASE_URL"),
        (["no-such-program"], "no-such-program cannot be started: No such file"),
        (["/"], "cannot be started: Permission denied"),
        (["--repository", "noslash", "true"], "--repository is OWNER/NAME"),
    ],
)
def test_a_program_that_cannot_be_recorded_is_one_line(
    command: list[str], words: str, world: Callable[..., Result]
) -> None:
    result = world(*(command if command[0].startswith("--") else ["--", *command]))
    told = result.output + str(result.exception or "")
    assert result.exit_code == 1 and words in told


def test_a_recorder_that_is_killed_has_kept_every_answer_that_its_program_had(
    world: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(AGENT.replace("sys.exit(", "import time; time.sleep(60); sys.exit("))
    command = [sys.executable, "-m", "prchain.cli", "record", "--db", "p.db", "--", sys.executable, "-u", "agent.py"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline()  # all four answers are there
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert rows("SELECT steps FROM trajectories ORDER BY steps") == [(1,), (3,)]
    assert rows("SELECT count(*) FROM llm_calls WHERE state = 'stored'") == [(4,)]
