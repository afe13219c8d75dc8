"""What a model thought, where it stands in the text of its reply: told apart from what the model says.

A server that has no parser for its model's thoughts, or the wrong one, returns both in one text. Each family of models
marks them in its own way, and templates that open the thought write the opening into the prompt, so that the text has
its end alone. The marks below are those of the reasoning parsers of vLLM (`vllm/reasoning`, `vllm/parser`) and SGLang
(`srt/parser/reasoning_parser.py`), and of Open WebUI's `DEFAULT_REASONING_TAGS`; each is read from its server's code.

The same marks stand in replies *about* them: a model that edits a chat template names them in backticks, in quotes, in
a fenced block or bare in a sentence. Such a mark ends no thought. Calls of tools are not looked at: they are no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from prchain.core.llm.channels import HEAD_END, Said, in_channels, text_of, without_marks
from prchain.core.llm.code_spans import Code, CodeSpans

_PAIRS = {
    "[THINK]": "[/THINK]",  # Magistral
    "\u25c1think\u25b7": "\u25c1/think\u25b7",  # Kimi-VL
    "<|begin_of_thought|>": "<|end_of_thought|>",  # Sky-T1, OpenThinker
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A Reasoning
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
    "<|think:start|>": "<|think:end|>",  # Solar Open 2
    "<|think|>": "<|end|>",  # Solar Open
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",  # Kimi K3
    "<|channel>thought\n": "<channel|>",  # Gemma 4
    "<|channel>": "<channel|>",
    "[unused16]": "[unused17]",  # openPangu
    "<unused94>thought\n": "<unused95>",  # MedGemma
    "<unused94>": "<unused95>",
}
"""Marks that stand for nothing else: opening and end."""

_TOKEN = (
    r"<[|\uff5c](?P<slash>/?)(?:(?P<first>begin|start|end|stop)[_▁: ](?:of[_▁ ])?)?"
    r"(?:think(?:ing)?|thoughts?|reason(?:ing)?)(?:[_▁: ](?P<last>begin|start|end|stop))?[|\uff5c]>"
)
"""Any other special token that is named for thoughts, in any case: ``<|begin_of_thinking|>``, ``<|reasoning:end|>``."""

_TAG = (
    r"<\s?(?P<end>/?)\s?(?P<name>(?:[a-z]\w{0,15}[:|_])?(?:think(?:ing)?|thought)(?:_fast(?:er)?)?|reason(?:ing)?)"
    r"(?:\s[\w-]{1,20}=[^<>\n]{0,80})?\s?>"
)
"""Marks in the form of XML, in any case: ``<think>`` (DeepSeek, Qwen, GLM, MiniMax ...), ``<thinking>``, ``<thought>``
(EXAONE Deep, Gemini), ``<seed:think>``, ``<mm:think>``, ``<longcat_think>``, ``<ifm|think_fast>`` ..."""

_ENDS = frozenset(_PAIRS.values())

_ANSWERS = {
    "<answer>": "</answer>",  # Hunyuan
    "<response>": "</response>",  # Granite 3.3
    "<output>": "</output>",
    "<Output>": "</Output>",  # Marco-o1
    "<final_answer>": "</final_answer>",
    "<|begin_of_box|>": "<|end_of_box|>",  # GLM-4.5V
    "<|begin_of_solution|>": "<|end_of_solution|>",
    "<|START_RESPONSE|>": "<|END_RESPONSE|>",
    "<|START_TEXT|>": "<|END_TEXT|>",
    "<|begin|>assistant<|content|>": "<|end|>",
    "<|open|>response<|sep|>": "<|close|>response<|sep|>",
}
"""What stands around all that is said behind a thought."""

_CALL = re.compile(
    r"<(?:\w+:)?tool_calls?>|<\|tool_calls?_(?:section_)?begin\|>|<\uff5ctool▁calls▁begin\uff5c>|\[TOOL_CALLS\]"
)
"""How a call of a tool begins in a text. Qwen3.5 and Kimi K2 go from a thought to a call without ending the thought."""

_MARK = re.compile(
    "|".join([f"(?i:{_TAG})", *(re.escape(mark) for pair in _PAIRS.items() for mark in pair), f"(?i:{_TOKEN})"])
)

_NEVER_ALONE = frozenset({"reason", "<|end|>"})
"""Families of which no template writes the opening into the prompt, or whose end ends other things, too."""

_BEFORE_MENTION = re.compile(r"[\w,][ \t]+\Z")
_AFTER_MENTION = re.compile(r"\s*\Z|(?:[ \t]+|\n)(?P<next>[^\W\d_])")
_END_TAG = re.compile(r"</(?!\w*:?(?:think|thought|reason|answer|response|output))\w", re.I)
_PUNCTUATION = re.compile(r"[.,;:!?)](?:\s|\Z)")
_SENTENCE_END = re.compile(r"(?:[.!?]|\A)\s*\Z")
_NEAR = 80
"""Characters around a mark that tell what it is."""


class _Mark(NamedTuple):
    start: int
    end: int
    family: str
    opens: bool
    tag: bool
    alone: bool
    """Whether nothing stands before it on its line, but perhaps the end of a block of code."""
    code: Code
    mention: bool
    """Whether a sentence around it names it."""

    @property
    def sure(self) -> bool:
        """Whether it is a mark, by all that stands around it."""
        return self.code is Code.NO and not self.mention


def separated(text: str, *, cut: bool = False, parsed: bool = False) -> Said:
    """The text of a reply without its thoughts, and these.

    `cut` says that the reply was cut off: a thought that is opened and never ends is the rest of it. `parsed` says that
    the endpoint has given reasoning of its own: an end without an opening then has to stand on a line of its own. A
    text without thoughts stays as it is, character for character.
    """
    found = list(_MARK.finditer(text))
    if not found and HEAD_END not in text:
        return without_marks(text, cut) or Said(text, "")
    code = CodeSpans(text)
    said = in_channels(text, code) or without_marks(text, cut)
    return said or _Blocks(text, [_mark(match, code) for match in found], cut, parsed).said()


def joined(*thoughts: str) -> str:
    """Thoughts from several places as one text; one that another holds stands in it once."""
    kept: list[str] = []
    for thought in thoughts:
        if thought.strip() and not any(thought.strip() in other for other in kept):
            kept = [*(other for other in kept if other.strip() not in thought), thought]
    return kept[0] if len(kept) == 1 else text_of(kept)


class _Blocks:
    """The thoughts of a text between marks."""

    def __init__(self, text: str, marks: Sequence[_Mark], cut: bool, parsed: bool) -> None:
        self._text = text
        self._marks = marks
        self._cut = cut
        self._parsed = parsed
        self._at = 0
        """Where what is not read yet begins, and ..."""
        self._next = 0
        """... the first mark in it."""
        self._thoughts: list[str] = []
        self._kept: list[str] = []
        self._sure_ends = _next_of(marks, lambda mark: mark.sure and not mark.opens)
        self._openings = _next_of(marks, lambda mark: mark.sure and mark.opens and mark.alone)

    def said(self) -> Said:
        nested = self._leading()
        if (nested or not self._thoughts) and self._unopened():
            self._leading()
            while self._ended_again():
                self._leading()
        began = self._at
        self._later()
        if not began and not self._kept:
            return Said(self._text, "")
        content = "".join([*self._kept, self._text[self._at :]])
        return Said(_unwrapped(content.lstrip() if began else content), text_of(self._thoughts))

    def _leading(self) -> bool:
        """Read the thoughts that the rest begins with. Returns whether another opening stands in the last one."""
        nested = False
        while self._next < len(self._marks):
            place, mark = self._next, self._marks[self._next]
            if mark.code is not Code.NO or self._text[self._at : mark.start].strip():
                break
            if not mark.opens:
                self._go_to(mark.end)
                continue
            end = self._end_of(place)
            if end is None:
                call = _CALL.search(self._text, mark.end)
                stop = call.start() if call else len(self._text)
                self._take(mark.end, stop, stop)
                return False
            other = self._openings[place]
            nested = other is not None and other.start < end.start
            self._take(mark.end, end.start, end.end)
        return nested

    def _end_of(self, place: int) -> _Mark | None:
        """The end of a thought that the text begins with: the first that is sure, else the last that may be one."""
        if (sure := self._sure_ends[place]) is not None:
            return sure
        family = self._marks[place].family
        ends = [mark for mark in self._marks[place + 1 :] if mark.family == family and not mark.opens]
        # A thought may begin code that it never ends.
        lines = [mark for mark in ends if mark.alone and mark.code is not Code.WORD]
        doubtful = lines or [mark for mark in ends if mark.code is Code.NO and not self._cut]
        return doubtful[-1] if doubtful else None

    def _unopened(self) -> bool:
        """Read a thought whose opening stands in the prompt, if there is one."""
        opened: set[str] = set()
        for mark in self._marks[self._next :]:
            if mark.opens and mark.sure:
                opened.add(mark.family)
            if not mark.opens and mark.family not in opened and self._ends_unopened(mark):
                self._take(self._at, mark.start, mark.end)
                return True
        return False

    def _ended_again(self) -> bool:
        """Read on where the next mark is one more end alone on its line: a model may end its thoughts twice."""
        if self._next == len(self._marks):
            return False
        mark = self._marks[self._next]
        if mark.opens or not (mark.alone and mark.sure and self._ends_unopened(mark)):
            return False
        self._take(self._at, mark.start, mark.end)
        return True

    def _ends_unopened(self, mark: _Mark) -> bool:
        if mark.family in _NEVER_ALONE or mark.mention or (self._parsed and not mark.alone):
            return False
        return mark.code is Code.NO or (mark.code is Code.OPEN and mark.alone)

    def _later(self) -> None:
        """Read the thoughts behind something that was said."""
        while self._next < len(self._marks):
            place, mark = self._next, self._marks[self._next]
            self._next += 1
            end = self._sure_ends[place]
            if not self._opens_later(mark) or (end is None and not (self._cut and mark.alone)):
                continue
            stop = end.start if end else len(self._text)
            if mark.alone or any(char.isalnum() for char in self._text[mark.end : stop]):
                self._kept.append(self._text[self._at : mark.start])
                self._take(mark.end, stop, end.end if end else stop)

    def _opens_later(self, mark: _Mark) -> bool:
        if not mark.opens or not mark.sure or mark.family == "reason":
            return False
        before = self._text[max(mark.start - _NEAR, 0) : mark.start]
        return not mark.tag or mark.alone or _SENTENCE_END.search(before) is not None

    def _take(self, start: int, end: int, at: int) -> None:
        """Take a thought, and go on at a place behind it."""
        self._thoughts.append(self._text[start:end])
        self._go_to(at)

    def _go_to(self, at: int) -> None:
        self._at = at
        while self._next < len(self._marks) and self._marks[self._next].start < at:
            self._next += 1


def _next_of(marks: Sequence[_Mark], wanted: Callable[[_Mark], bool]) -> list[_Mark | None]:
    """For each mark, the next one of its family behind it that is wanted."""
    found: list[_Mark | None] = []
    nearest: dict[str, _Mark] = {}
    for mark in reversed(marks):
        found.append(nearest.get(mark.family))
        if wanted(mark):
            nearest[mark.family] = mark
    return found[::-1]


def _mark(match: re.Match[str], code: CodeSpans) -> _Mark:
    text, start, end = match.string, match.start(), match.end()
    if match[0] in _PAIRS or match[0] in _ENDS:
        opens = match[0] in _PAIRS
        family = _PAIRS.get(match[0], match[0])
    elif match["name"] is None:
        opens = not match["slash"] and (match["first"] or match["last"] or "begin").casefold() in {"begin", "start"}
        family = "token"
    else:
        opens = not match["end"]
        family = match["name"].casefold().replace("thinking", "think").replace("reasoning", "reason")
    line = code.line_start(start)
    before, after = text[max(line, start - _NEAR) : start], text[end : end + _NEAR]
    mention = _PUNCTUATION.match(after) is not None or _in_a_sentence(before, after) or _in_markup(before, after)
    alone = not text[line:start].strip(" \t\r`~")
    return _Mark(start, end, family, opens, match["name"] is not None, alone, code.at(start, end), mention)


def _in_markup(before: str, after: str) -> bool:
    """Whether a mark is a line of a patch, or stands directly between other tags, of which the second is an end."""
    return before in {"+", "-"} or (before.endswith(">") and _END_TAG.match(after) is not None)


def _in_a_sentence(before: str, after: str) -> bool:
    """Whether a sentence goes on behind a mark: with a letter that begins none. Scripts without capitals have such."""
    goes_on = _AFTER_MENTION.match(after)
    return goes_on is not None and not (goes_on["next"] or "").isupper() and _BEFORE_MENTION.search(before) is not None


def _unwrapped(content: str) -> str:
    """What is said behind a thought, without what stands around all of it."""
    for opening, end in _ANSWERS.items():
        inner = content.removeprefix(opening).strip()
        if content.startswith(opening) and end not in inner.removesuffix(end):
            return inner.removesuffix(end).strip()
    return content
