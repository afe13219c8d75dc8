"""OpenAI's own client as the reader of what we write: the bytes of an answer in, a `Reply` out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import httpx2
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from prchain.core.llm.model import Reply, ToolCall, Usage

BEHIND = b"data: what is behind the end is not to be read\n\n"


class _Written:
    """The answer that the client reads next: it takes longer to make one than to read."""

    def __init__(self) -> None:
        self.kind: str = ""
        self.content: Any = b""

    @cached_property
    def client(self) -> OpenAI:
        http = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        return OpenAI(api_key="x", base_url="http://127.0.0.1/v1", max_retries=0, http_client=http)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Type": self.kind}, content=self.content)

    def ask(self, kind: str, content: Any, **more: Any) -> Any:
        self.kind, self.content = kind, content
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        return self.client.chat.completions.create(**asked, **more)


_WRITTEN = _Written()


def read_whole(data: bytes) -> Reply:
    """An answer in one piece. Raises what the client, or its types, raise."""
    return final_of(_WRITTEN.ask("application/json", data))


def read_stream(parts: Iterable[bytes]) -> Reply:
    """An answer as a stream, in these pieces. What is no event stands behind it, since connections go on: a stream
    without its end fails there. Raises what the client, or its types, raise."""

    def content() -> Iterator[bytes]:
        yield from parts
        yield BEHIND

    state = ChatCompletionStreamState()
    with _WRITTEN.ask("text/event-stream", content(), stream=True) as stream:
        for chunk in stream:
            ChatCompletionChunk.model_validate(chunk.to_dict())
            list(state.handle_chunk(chunk))
    return final_of(state.current_completion_snapshot)


def final_of(read: Any) -> Reply:
    """What a completion says. Raises a pydantic error where it is none, as without a reason to end."""
    checked = ChatCompletion.model_validate(read.to_dict())
    (choice,) = checked.choices
    message: Any = choice.message
    calls = tuple(ToolCall(it.id, it.function.name, it.function.arguments) for it in message.tool_calls or ())
    used = checked.usage
    cached = used.prompt_tokens_details.cached_tokens if used and used.prompt_tokens_details else None
    usage = Usage(used.prompt_tokens, cached, used.completion_tokens) if used else Usage()
    thoughts = getattr(message, "reasoning_content", None)
    return Reply(message.content or "", checked.model, choice.finish_reason, message.refusal, thoughts, calls, usage)
