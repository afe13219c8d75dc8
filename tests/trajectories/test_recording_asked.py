"""Requests with the same words: which are sent again, and which are asked again."""

from __future__ import annotations

import json
import socket
import threading

from prchain.core.llm.model import Request
from tests.endpoint import wait_for
from tests.models import FakeModel
from tests.trajectories.recordingworld import recorder_of, recording
from tests.trajectories.test_recording import HELLO, post
from trajectories.recording.asked import AskedRequests
from trajectories.recording.server import RecordingServer


def waits() -> bool:
    return True


def left() -> bool:
    return False


def test_what_an_sdk_says_that_it_sends_again_is_the_same_request() -> None:
    asked = AskedRequests()
    first = asked.begin("x", left, again=False)
    first.delivered = True
    assert asked.begin("x", waits, again=True) is first
    assert asked.begin("y", waits, again=True) is not first, "of a request that never came it knows nothing"


def test_what_nobody_has_an_answer_to_is_sent_again() -> None:
    asked = AskedRequests()
    first = asked.begin("x", left, again=False)
    assert asked.begin("x", waits, again=False) is first


def test_what_is_asked_while_another_waits_or_has_its_answer_is_another_request() -> None:
    asked = AskedRequests()
    first = asked.begin("x", waits, again=False)
    second = asked.begin("x", waits, again=False)
    first.delivered = second.delivered = True
    third = asked.begin("x", waits, again=False)
    assert [it.ordinal for it in (first, second, third)] == [0, 1, 2]


def test_of_several_the_one_that_nobody_waits_for_is_sent_again() -> None:
    asked = AskedRequests()
    alive = {1: True, 2: True}
    asked.begin("x", lambda: alive[1], again=False)
    second = asked.begin("x", lambda: alive[2], again=False)
    alive[2] = False
    assert asked.begin("x", waits, again=True) is second


def test_a_request_that_failed_is_asked_again_in_its_place() -> None:
    asked = AskedRequests()
    first = asked.begin("x", waits, again=False)
    asked.failed(first, waits)
    assert asked.begin("x", waits, again=False) is first


BODY = json.dumps({"messages": HELLO}).encode()


def begin(server: RecordingServer) -> socket.socket:
    """Send the request, and do not wait for its answer."""
    connection = socket.create_connection(("127.0.0.1", server.server_address[1]))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\n"
    connection.sendall(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
    return connection


def test_equal_requests_at_once_get_replies_of_their_own() -> None:
    both = threading.Barrier(2)

    def answer(request: Request) -> str:
        both.wait(30)  # neither is answered before the other has come
        return f"reply {threading.get_ident()}"

    model = FakeModel(answer)
    with recording(model) as server:
        said: list[str] = []
        threads = [
            threading.Thread(target=lambda: said.append(post(server, BODY)[1]["choices"][0]["message"]["content"]))
            for _ in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(said)) == 2 and len(model.asked) == 2
        assert len(recorder_of(server).conversations.branches) == 2


def test_a_client_that_hung_up_and_asks_again_gets_the_reply_that_was_under_way() -> None:
    waiting, go = threading.Event(), threading.Event()

    def slow(request: Request) -> str:
        waiting.set()
        assert go.wait(30)
        return "paid once"

    model = FakeModel(slow)
    with recording(model) as server:
        begin(server).close()
        assert waiting.wait(30)
        again = threading.Thread(target=post, args=(server, BODY))
        again.start()
        wait_for(lambda: recorder_of(server).under_way == 2)
        go.set()
        again.join()
        assert len(model.asked) == 1 and len(recorder_of(server).conversations.branches) == 1
        wait_for(lambda: recorder_of(server).under_way == 0)
        post(server, BODY)
        assert len(model.asked) == 2, "now it has been answered"
