"""Replies in which words say what is thought and what is said: the channels of gpt-oss, the phrases of Granite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from prchain.core.llm.code_spans import Code, CodeSpans


class Said(NamedTuple):
    """A reply's text, without its thoughts, and these; both may be empty."""

    content: str
    thoughts: str


HEAD_END = "<|message|>"
"""How the head of a message ends."""

_PHRASES = re.compile(r"\s*Here(?:'s| is) my thought process:(.*?)(?:Here(?:'s| is) my response:(.*)|\Z)", re.DOTALL)
"""Granite 3.2, which has no marks."""
_FINAL_RESPONSE = re.compile(
    r"(?:\s*Here are my reasoning steps:)?(.*?)^[ \t]*\[BEGIN FINAL RESPONSE\](.*?)(?:\[END FINAL RESPONSE\]\s*)?\Z",
    re.DOTALL | re.MULTILINE,
)
"""Apriel, whose template writes the phrase into the prompt."""

_HEADER = re.compile(
    r"(?P<start><\|start\|>\s{0,9}assistant\s{0,9})?<\|channel\|>\s{0,9}(?P<name>\w{1,20})"
    r"(?P<to>[^<]{0,200}(?:<\|constrain\|>[^<]{0,40})?)" + re.escape(HEAD_END)
)
"""The head of a message in gpt-oss's form; see OpenAI's cookbook, "OpenAI harmony response format"."""
_MESSAGE_END = re.compile(r"<\|(?:end|return|call)\|>|<\|start\|>")
_FIRST_HEAD = re.compile(r"\s*(?P<name>analysis|commentary|final)?" + re.escape(HEAD_END))
"""What is left of the first head where the prompt has its beginning."""
_BARE_CHANNELS = re.compile(
    r"\s*(?:analysis(?=\S)(.*?))?(?:assistantfinal(?=\S)|(?=assistantcommentary to=))(.*)", re.DOTALL
)
"""The same where the server has dropped the special tokens: ``analysisWe need ...assistantfinalfour``."""
_BARE_THOUGHT = re.compile(r"\s*analysis(?=[A-Z][a-z']*\s)(.*)", re.DOTALL)


def in_channels(text: str, code: CodeSpans) -> Said | None:
    """The messages of gpt-oss: ``analysis`` is a thought, ``final`` is said, and so is a ``commentary`` that calls no
    tool. None where the text has no such form."""
    heads = [head for head in _HEADER.finditer(text) if code.at(head.start(), head.end()) is Code.NO]
    first = _FIRST_HEAD.match(text)
    if not heads:
        return _alone(text, first) if first else None
    lead = text[first.end() if first else 0 : heads[0].start()].strip()
    if lead and not heads[0]["start"] and not lead.endswith("<|end|>"):
        return None
    thoughts, content = ([lead.removesuffix("<|end|>")], [""]) if lead.endswith("<|end|>") else ([""], [lead])
    for head, following in zip_longest(heads, heads[1:]):
        most = following.start() if following else len(text)
        ends = _MESSAGE_END.finditer(text, head.end(), most)
        end = next((end for end in ends if code.at(end.start(), end.end()) is Code.NO), None)
        if "to=" in head["to"] and head["name"] != "analysis":
            content.append(text[head.start() : most])
            continue
        (thoughts if head["name"] == "analysis" else content).append(text[head.end() : end.start() if end else most])
        content.append(_MESSAGE_END.sub("", text[end.end() : most]) if end else "")
    return Said(text_of(content), text_of(thoughts))


def _alone(text: str, head: re.Match[str]) -> Said:
    """The one message of a text that begins with what is left of a head; without a name it is said, as is what stands
    after its end."""
    message, *after = _MESSAGE_END.split(text[head.end() :], maxsplit=1)
    said = _MESSAGE_END.sub("", "".join(after))
    return (
        Said(text_of([said]), text_of([message])) if head["name"] == "analysis" else Said(text_of([message, said]), "")
    )


def without_marks(text: str, cut: bool) -> Said | None:
    """The forms that have no marks; None where the text has none of them."""
    if (match := _BARE_CHANNELS.match(text)) or ((match := _PHRASES.match(text)) and (cut or match[2] is not None)):
        return Said((match[2] or "").strip(), (match[1] or "").strip())
    if match := _FINAL_RESPONSE.match(text):
        return Said(match[2].strip(), match[1].strip())
    if cut and (match := _BARE_THOUGHT.match(text)):
        return Said("", match[1].strip())
    return None


def text_of(parts: Sequence[str]) -> str:
    """Parts as one text, with an empty line between two; what is blank is left out."""
    return "\n\n".join(filter(None, (part.strip() for part in parts)))
