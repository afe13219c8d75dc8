"""Prompts: template files next to the stage that uses them, and the fence around text that is not ours.

A template is ``<package>/prompts/<name>.j2`` with a block ``user`` and, mostly, a block ``system``:

    {% block system %}You write ...{% endblock %}
    {% block user %}Pull request {{ number }}: {{ fence("title", title) }}{% endblock %}

Its hash is that of the file, so it includes no other file. Values are data: a template in a value stays text.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from prchain.core.errors import PromptError
from prchain.core.llm.model import Message, Reply
from prchain.core.llm.special_tokens import broken_tokens, mended, without_special_tokens

if TYPE_CHECKING:
    from jinja2 import Template

_HASH_LENGTH = 16

_BLOCKS: tuple[Literal["system", "user"], ...] = ("system", "user")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's template; `name` and `hash` tell in the ledger which text asked a question."""

    name: str
    hash: str
    """The first 16 hex digits of the SHA-256 of the file."""
    _template: Template

    @classmethod
    def from_source(cls, name: str, content: bytes) -> Prompt:
        """A prompt from the bytes of its file. Raises `PromptError` for bytes that are no template with ``user``."""
        from jinja2 import Environment, StrictUndefined, TemplateError  # noqa: PLC0415  loaded with the first prompt

        environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)
        try:
            template = environment.from_string(content.decode("utf-8"))
        except (TemplateError, UnicodeDecodeError) as error:
            raise PromptError(f"the prompt {name} is no template: {error}") from None
        if "user" not in template.blocks:
            raise PromptError(f"the prompt {name} has no block named user")
        return cls(name, hashlib.sha256(content).hexdigest()[:_HASH_LENGTH], template)

    def render(self, **variables: Any) -> tuple[Message, ...]:
        """The messages for these variables. Raises `PromptError` where one is missing."""
        from jinja2 import TemplateError  # noqa: PLC0415  loaded with the first prompt

        messages = []
        for role in _BLOCKS:
            if role not in self._template.blocks:
                continue
            try:
                context = self._template.new_context(variables)
                text = "".join(self._template.blocks[role](context)).strip()
            except TemplateError as error:
                raise PromptError(f"the prompt {self.name} cannot be filled in: {error}") from None
            messages.append(Message(role, text))
        return tuple(messages)


def prompt_source(package: str, name: str) -> bytes:
    """The file ``<package>/prompts/<name>.j2``. Raises `PromptError` where there is none."""
    try:
        return (importlib.resources.files(package) / "prompts" / f"{name}.j2").read_bytes()
    except (OSError, ModuleNotFoundError) as error:
        raise PromptError(f"{package}/prompts/{name}.j2 cannot be read: {type(error).__name__}") from None


@functools.cache
def shipped_prompt(package: str, name: str) -> Prompt:
    """The prompt ``<package>/prompts/<name>.j2``. Raises `PromptError` where there is none, or no template in it."""
    return Prompt.from_source(name, prompt_source(package, name))


OwnPrompts = Callable[[str, str], Prompt | None]
"""The user's own prompt of a package and a name; None where there is none."""

_laid_in: list[OwnPrompts] = []
"""Of the process and not of a thread: the workers of a run ask with its prompts. The last one counts."""


@contextlib.contextmanager
def laid_in(own: OwnPrompts) -> Iterator[None]:
    """Within it `load_prompt` takes prompts of `own` in place of ours."""
    _laid_in.append(own)
    try:
        yield
    finally:
        _laid_in.pop()


def load_prompt(package: str, name: str) -> Prompt:
    """The user's own prompt where one is `laid_in`, else `shipped_prompt`, whose errors it raises."""
    own = _laid_in[-1](package, name) if _laid_in else None
    return own or shipped_prompt(package, name)


class Fence:
    """Wraps text from repositories, people and models so that it cannot pass for ours.

    The lines around it carry a nonce that no text inside can know, because it is a hash over all of them. The same
    texts have the same nonce, so that a stored reply is found again.

    Texts of `unlike` come after a part of a prompt that is the same for all of them: they do not decide the nonce, so
    that an endpoint's cache serves that part, and none of them may hold it; they have a fence of their own.
    """

    def __init__(self, *texts: str, unlike: Sequence[str] = ()) -> None:
        digest = hashlib.sha256()
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        # With much computing a text could be made to hold the 64 bits; it then gets another nonce.
        while any((nonce := digest.hexdigest()[:_HASH_LENGTH]) in text for text in (*texts, *unlike)):
            digest.update(b"\0")
        self.nonce = nonce if texts else digest.hexdigest()[:_HASH_LENGTH]

    def __call__(self, label: str, text: str) -> str:
        """The text between two lines that name the label and the nonce; special tokens in it are broken.

        Raises `PromptError` for a text that holds the nonce, which is none of those that the fence was made from.
        """
        if self.nonce in text:
            raise PromptError(f"the text fenced as {label} was not given to its fence")
        return f"<<<{label} {self.nonce}\n{without_special_tokens(text)}\n{label} {self.nonce}>>>"


_FENCED = re.compile(r"<<<(?P<end>[^\n]{1,200} [0-9a-f]{16})\n(?P<text>.*?)\n(?P=end)>>>", re.DOTALL)


def fenced_texts(messages: Sequence[Message]) -> list[str]:
    """The texts of others that stand in a prompt: all that is between the lines of a `Fence`.

    No text inside can end its fence, so what looks like a fence in one is a part of it.
    """
    shown = (message.content for message in messages if message.role != "assistant" and "<<<" in message.content)
    return [match["text"] for content in shown for match in _FENCED.finditer(content)]


def with_whole_tokens(reply: Reply, messages: Sequence[Message]) -> Reply:
    """A reply in which special tokens are whole that the fences of its prompt showed broken."""
    broken = {token for text in fenced_texts(messages) for token in broken_tokens(text)}
    if not broken:
        return reply
    calls = tuple(replace(call, arguments=mended(call.arguments, broken)) for call in reply.tool_calls)
    return replace(reply, text=mended(reply.text, broken), tool_calls=calls)
