"""Thoughts in the text of a reply: what is told apart, and what only speaks of the marks of thoughts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prchain.core.llm.model import Reply
from prchain.core.llm.thoughts import joined, separated
from prchain.core.llm.wire import reply_of
from tests.growth import assert_linear

SAYS = '{"score": 0.9, "comment": "All parts of the task are done."}'
DRAFT = 'I could answer {"score": 0.1, "comment": "no"} but that is too hard.'
LOOK = "Let me look at the diff first."

TOLD_APART = {
    "the opening is in the prompt": (f"{DRAFT} {LOOK}\n</think>\n\n{SAYS}", SAYS, f"{DRAFT} {LOOK}"),
    "no line between them": ("1. Say it briefly.</think>391", "391", "1. Say it briefly."),
    "a quotation before the end": ('It says "yes".</think>{"a": 1}', '{"a": 1}', 'It says "yes".'),
    "no sentence, one line": ("ok do it </think> Sure, done.", "Sure, done.", "ok do it"),
    "no answer, but calls": ("I look at the file.\n</think>\n", "", "I look at the file."),
    "nothing was thought": ("</think>\n\nDone.", "Done.", ""),
    "an empty block": ("<think>\n\n</think>\n\nDone.", "Done.", ""),
    "a whole block": (f"<think>\n{DRAFT}\n</think>\n{SAYS}", SAYS, DRAFT),
    "capitals": ("<Thought>hm</Thought>Done.", "Done.", "hm"),
    "thinking": ("<thinking>hm</thinking>\nDone.", "Done.", "hm"),
    "opened as one, ended as the other": ("<think>hm</thinking>\nDone.", "Done.", "hm"),
    "reasoning": ("<reasoning>\nhm\n</reasoning>\n<answer>\nDone.\n</answer>", "Done.", "hm"),
    "Seed": ("<seed:think>hm</seed:think>Done.", "Done.", "hm"),
    "MiniMax M3, its opening in the prompt": ("hm</mm:think>Done.", "Done.", "hm"),
    "LongCat": ("hm.\n</longcat_think>\nDone.", "Done.", "hm."),
    "K2 Horizon": ("<ifm|think_fast>hm</ifm|think_fast>Done.", "Done.", "hm"),
    "Magistral": ("[THINK]hm[/THINK]Done.", "Done.", "hm"),
    "Kimi-VL": ("◁think▷hm◁/think▷Done.", "Done.", "hm"),
    "Kimi-VL, behind a word": ("Let me see. ◁think▷hm◁/think▷ Done.", "Let me see.  Done.", "hm"),
    "Kimi K3": ("hm<|close|>think<|sep|><|open|>response<|sep|>Done.<|close|>response<|sep|>", "Done.", "hm"),
    "Sky-T1": (
        "<|begin_of_thought|>\n\nhm\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\nDone.\n<|end_of_solution|>",
        "Done.",
        "hm",
    ),
    "Command A": ("hm<|END_THINKING|><|START_TEXT|>Done.<|END_TEXT|>", "Done.", "hm"),
    "Apertus": ("<|inner_prefix|>hm<|inner_suffix|>Done.", "Done.", "hm"),
    "Solar Open": ("<|think|>hm<|end|><|begin|>assistant<|content|>Done.", "Done.", "hm"),
    "Solar Open 2": ("hm<|think:end|>Done.", "Done.", "hm"),
    "Gemma 4": ("<|channel>thought\nhm<channel|>Done.", "Done.", "hm"),
    "Granite": ("Here's my thought process: hm. Here is my response: Done.", "Done.", "hm."),
    "Hunyuan": (f"<think>\nhm\n</think>\n<answer>\n{SAYS}\n</answer>", SAYS, "hm"),
    "gpt-oss": (
        f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{SAYS}<|return|>",
        SAYS,
        DRAFT,
    ),
    "gpt-oss, its first head in the prompt": (
        "We need four.<|end|><|start|>assistant<|channel|>final<|message|>four",
        "four",
        "We need four.",
    ),
    "gpt-oss with a preamble": (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>I list it.<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>Done.",
        "I list it.\n\nDone.",
        "a\n\nb",
    ),
    "gpt-oss with text between its messages": (
        "<|channel|>analysis<|message|>a<|end|> I see.<|start|>assistant<|channel|>final<|message|>Done.<|return|>",
        "I see.\n\nDone.",
        "a",
    ),
    "gpt-oss without its special tokens": ("analysisWe need four.assistantfinalfour", "four", "We need four."),
    "gpt-oss without its special tokens, a call": (
        'analysisI list it.assistantcommentary to=functions.bash json{"command": "ls"}',
        'assistantcommentary to=functions.bash json{"command": "ls"}',
        "I list it.",
    ),
    "gpt-oss, the answer alone": ("assistantfinalDone.", "Done.", ""),
    "gpt-oss, a half head": (
        "analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done.<|return|>",
        "Done.",
        "hm",
    ),
    "gpt-oss, the answer behind a half head": ("final<|message|>Done.<|return|>", "Done.", ""),
    "gpt-oss, a message without a name": ("<|message|>Done.", "Done.", ""),
    "MedGemma": ("<unused94>thought\nhm\n<unused95>Done.", "Done.", "hm"),
    "Marco": ("<Thought>\nhm\n</Thought>\n<Output>\nDone.\n</Output>", "Done.", "hm"),
    "GLM-4.5V": ("<think>hm</think>\n<|begin_of_box|>Done.<|end_of_box|>", "Done.", "hm"),
    "Apriel": (
        "Here are my reasoning steps:\nhm\n[BEGIN FINAL RESPONSE]\nDone.\n[END FINAL RESPONSE]\n",
        "Done.",
        "hm",
    ),
    "Apriel, its phrase in the prompt": (f"{DRAFT}\n[BEGIN FINAL RESPONSE]\n{SAYS}", SAYS, DRAFT),
    "special tokens that begin and end": ("<|begin_of_thinking|>hm<|end_of_thinking|>Done.", "Done.", "hm"),
    "special tokens that start and end": ("<|reasoning_start|>hm<|reasoning_end|>Done.", "Done.", "hm"),
    "a special token that ends alone": ("hm.<|/thinking|>Done.", "Done.", "hm."),
    "special tokens with DeepSeek's bars": (
        "<\uff5cbegin▁of▁thinking\uff5c>hm<\uff5cend▁of▁thinking\uff5c>Done.",
        "Done.",
        "hm",
    ),
    "ended twice, with a draft between": (
        f"{LOOK}\n</think>\n\n{DRAFT}\n</think>\n\n{SAYS}",
        SAYS,
        f"{LOOK}\n\n{DRAFT}",
    ),
    "a thought opened twice": ("<think>\n<think>\nhm\n</think>\nDone.", "Done.", "<think>\nhm"),
    "a thought in a thought": ("<think>\na\n<think>\nb\n</think>\nc\n</think>\nDone.", "Done.", "a\n<think>\nb\n\nc"),
    "two thoughts": ("<think>a</think>\n<thinking>b</thinking>\nDone.", "Done.", "a\n\nb"),
    "a thought behind a sentence": (
        f"Let me check.\n<thinking>\n{DRAFT}\n</thinking>\n{SAYS}",
        f"Let me check.\n\n{SAYS}",
        DRAFT,
    ),
    "a thought that names its own end": (
        '<think>The template has `</think>`, and I quote "</think>".\n</think>\nDone.',
        "Done.",
        'The template has `</think>`, and I quote "</think>".',
    ),
    "a thought with code that does not end": (
        f"Try:\n```python\nx = 1\n</think>\n\n```json\n{SAYS}\n```",
        f"```json\n{SAYS}\n```",
        "Try:\n```python\nx = 1",
    ),
    "a block with code that does not end": ("<think>```py\nx = 1\n</think>\n\nDone.", "Done.", "```py\nx = 1"),
    "code in what is said": ("hm\n</think>\n\n```html\n<think>x</think>\n```", "```html\n<think>x</think>\n```", "hm"),
    "a call that ends the thought": (
        "<think>I list it.<tool_call>ls</tool_call>",
        "<tool_call>ls</tool_call>",
        "I list it.",
    ),
    "a thought that never ends": ("<think>\nI was", "", "I was"),
    "line ends of Windows": ("hm.\r\n</think>\r\n\r\nDone.", "Done.", "hm."),
    "an attribute": ('<think time="3">hm</think>Done.', "Done.", "hm"),
    "blanks in the marks": ("<think >hm</ think>\nDone.", "Done.", "hm"),
    "Chinese": ("先看一下代码。</think>好的，我来修改。", "好的，我来修改。", "先看一下代码。"),  # noqa: RUF001
    "two ends": ("a\n</think>\n\n</think>\n\nDone.", "Done.", "a"),
    "a backtick and a quotation mark": (
        'The ` is 5" wide.</think>Done with `x`.',
        "Done with `x`.",
        'The ` is 5" wide.',
    ),
    "an end behind a block": ("```json\n{}\n```</think>Done.", "Done.", "```json\n{}\n```"),
    "code by its indentation": (
        "<think>a</think>\nSo:\n\n    <think>\n    x\n    </think>\n\nDone.",
        "So:\n\n    <think>\n    x\n    </think>\n\nDone.",
        "a",
    ),
}


@pytest.mark.parametrize(("text", "content", "thoughts"), TOLD_APART.values(), ids=TOLD_APART)
def test_thoughts_are_told_apart(text: str, content: str, thoughts: str) -> None:
    assert separated(text) == (content, thoughts)


CUT = {
    "in a block": ("<think>\nFirst I", "", "First I"),
    "in a block that names its end": ("<think>It writes `</think>` and", "", "It writes `</think>` and"),
    "in a block behind a word": ("Let me see.\n<think>\nFirst I", "Let me see.\n", "First I"),
    "in Magistral's": ("[THINK]First I", "", "First I"),
    "in gpt-oss's": ("<|channel|>analysis<|message|>First I", "", "First I"),
    "in gpt-oss's without its tokens": ("analysisWe need to", "", "We need to"),
    "in Granite's": ("Here is my thought process: First", "", "First"),
    "in the answer": ("<think>hm</think>\nThe patch", "The patch", "hm"),
    "in words of the tag": ("The template opens `<think>", "The template opens `<think>", ""),
}


@pytest.mark.parametrize(("text", "content", "thoughts"), CUT.values(), ids=CUT)
def test_a_reply_that_is_cut_off_while_it_thinks_says_nothing_more(text: str, content: str, thoughts: str) -> None:
    assert separated(text, cut=True) == (content, thoughts)


SPEAKS_OF_IT = {
    "in backticks": "The parser drops the `</think>` tag, so I mend `split_think`.",
    "in backticks, alone on a line": "It splits at\n`</think>`\nand the rest is content.",
    "in a fenced block": "I change it so:\n```python\ntext.split(\n</think>\n)\n```\nand run the tests.",
    "a whole example in a block": "```\n<think>\nhm\n</think>\nDone.\n```\nThat is the form.",
    "in a block of tildes": "~~~html\n<p>\n</think>\n~~~\nDone.",
    "in quotes": "It looks for '</think>' first, then for \"<think>\".",
    "in a call in prose": "I replace text.partition('</think>')[2] with a regular expression.",
    "in brackets": "The end (</think>) is missing in Qwen's template.",
    "bare in a sentence": "The template appends the </think> tag after each turn.",
    "bare at the end of a sentence": "The model never writes </think>.",
    "bare at the end of a line": "The parser splits at </think>\nand the rest is content.",
    "bare at the end": "We have to stop at </think>",
    "both in a sentence": "Wrap it in <think>...</think> tags, as Qwen does.",
    "in JSON": '{"comment": "The patch adds </think>", "score": 0.2}',
    "in JSON, in a sentence": '{"comment": "It forgets the </think> tag here", "score": 0.2}',
    "Mistral's, in a sentence": "Mistral uses [THINK] and [/THINK] as tokens.",
    "Kimi's, in backticks": "Kimi writes `◁think▷` and `◁/think▷`.",
    "gpt-oss's head, in backticks": "The head is `<|channel|>analysis<|message|>`, then text.",
    "gpt-oss's form, in a block": "```\n<|channel|>analysis<|message|>x<|end|>\n```\nis what it prints.",
    "in a raw text of Python": "I use re.split(r'</think>', text, maxsplit=1) there.",
    "in code by its indentation": 'It does this:\n\n    text.partition(\n        "</think>"\n    )\n\nI keep it.',
    "in a diff": "Patch:\n--- a/t.j2\n+++ b/t.j2\n@@ -1 +1,3 @@\n-{{ x }}\n+<think>\n+{{ y }}\n+</think>\n",
    "an added line of a patch": "--- a/t.j2\n+++ b/t.j2\n@@ -1 +1,2 @@\n {{ x }}\n+</think>\n",
    "a removed line of a patch": "--- a/t.j2\n+++ b/t.j2\n@@ -1,2 +1 @@\n {{ x }}\n-</think>\n",
    "between tags": "It renders <div></think></div> there",
    "Apriel's, in backticks": "The mark is `[BEGIN FINAL RESPONSE]`, at the start of a line.",
    "a head in a sentence": "The head ends with <|message|> there.",
    "a special token in backticks": "It strips `<|begin_of_thinking|>` and `<|end_of_thinking|>`.",
    "in a table": "| tag | meaning |\n|---|---|\n| `<think>` | open |\n| `</think>` | close |",
    "in a quoted block": "> ```\n> <think>\n> x\n> </think>\n> ```\nThat is it.",
    "in Chinese": "解析器在 </think> 处分割文本，然后返回内容。",  # noqa: RUF001
    "as entities": "The text has &lt;think&gt; and &lt;/think&gt; in it.",
    "a component": "It returns <Thought>{text}</Thought> for each item.",
    "a question": "Should I keep </think>?",
    "another tag": "<plan>\nfirst\n</plan>\nDone.",
    "XML with a field of that name": "Add this:\n<step>\n<reasoning>\nwhy\n</reasoning>\n</step>",
    "an end of a turn": "Done.<|end|>",
    "an operator": "a <think b> c, x </ y",
    "a word": "analysis of the code shows that the assistant is final",
    "a phrase": "Here is my thought process: look first, then edit.",
    "nothing of the kind": "Done.\n\n",
}


@pytest.mark.parametrize("text", SPEAKS_OF_IT.values(), ids=SPEAKS_OF_IT)
@pytest.mark.parametrize("parsed", [False, True])
def test_what_only_speaks_of_the_marks_stays_as_it_is(text: str, parsed: bool) -> None:
    assert separated(text, parsed=parsed) == (text, "")


def test_where_the_endpoint_told_thoughts_apart_an_end_alone_is_one_on_its_own_line_only() -> None:
    assert separated("I add x</think>y there.", parsed=True).content == "I add x</think>y there."
    assert separated("more\n</think>\n\nDone.", parsed=True) == ("Done.", "more")


def reply_with(message: dict[str, Any], finish: str = "stop") -> Reply:
    """The reply that an endpoint's answer with this message is."""
    body = {"choices": [{"finish_reason": finish, "message": {"role": "assistant", **message}}]}
    reply = reply_of(json.dumps(body).encode(), "m")
    assert isinstance(reply, Reply)
    return reply


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


DONE = [part("text", text="Done.")]
MESSAGES = {
    "DeepSeek": ({"content": "Done.", "reasoning_content": "hm"}, "hm"),
    "vLLM": ({"content": "Done.", "reasoning": "hm", "reasoning_content": None}, "hm"),
    "Ollama": ({"content": "Done.", "thinking": "hm"}, "hm"),
    "Mistral": (
        {"content": [part("thinking", thinking=[part("text", text="h"), part("text", text="m")]), *DONE]},
        "hm",
    ),
    "Databricks": ({"content": [part("reasoning", summary=[part("summary_text", text="hm")]), *DONE]}, "hm"),
    "Anthropic": (
        {"content": [part("thinking", thinking="hm", signature="Eq"), part("redacted_thinking", data="Eq"), *DONE]},
        "hm",
    ),
    "LiteLLM": (
        {"content": "Done.", "reasoning_content": "hm", "thinking_blocks": [part("thinking", thinking="hm")]},
        "hm",
    ),
    "blocks alone": ({"content": "Done.", "thinking_blocks": [part("thinking", thinking="hm", signature="x")]}, "hm"),
    "OpenRouter": (
        {
            "content": "Done.",
            "reasoning": None,
            "reasoning_details": [
                part("reasoning.summary", summary="h"),
                part("reasoning.encrypted", data="gAAA"),
                part("reasoning.text", text="m", signature=None),
            ],
        },
        "hm",
    ),
    "all encrypted": ({"content": "Done.", "reasoning_details": [part("reasoning.encrypted", data="gAAA")]}, None),
    "parts of the Responses API": (
        {"content": [part("output_text", text="Do"), part("output_text", text="ne.")]},
        None,
    ),
    "Gemini's parts": ({"content": [part("text", text="hm", thought=True), *DONE]}, "hm"),
    "Gemini's tags": ({"content": "<thought>hm</thought>Done."}, "hm"),
    "a field and the text": ({"content": "<think>hm</think>Done.", "reasoning": "hm"}, "hm"),
    "a field and other text": ({"content": "<think>b</think>Done.", "reasoning": "a"}, "a\n\nb"),
    "parts with marks": ({"content": [part("text", text="hm\n</think>\n"), *DONE]}, "hm"),
    "odd types": ({"content": [5, None, part("image"), *DONE], "reasoning": [], "thinking": 5}, None),
    "deep": ({"content": "Done.", "reasoning": json.loads('{"content":' * 90 + "1" + "}" * 90)}, None),
    "blanks": ({"content": "Done.", "reasoning_content": " \n", "reasoning": "hm"}, "hm"),
}


@pytest.mark.parametrize(("message", "thoughts"), MESSAGES.values(), ids=MESSAGES)
def test_fields_and_parts_are_told_apart(message: dict[str, Any], thoughts: str | None) -> None:
    reply = reply_with(message)
    assert (reply.text, reply.reasoning) == ("Done.", thoughts)


def test_calls_of_tools_keep_their_arguments_whatever_marks_they_hold() -> None:
    arguments = json.dumps({"command": "cat > t.py <<'E'\n<think>\nhm\n</think>\nE"})
    call = {"id": "1", "function": {"name": "bash", "arguments": arguments}}
    message = {"content": "I write the test.\n</think>\n\nNow.", "tool_calls": [call]}
    reply = reply_with(message, "tool_calls")
    assert (reply.text, reply.reasoning, reply.tool_calls[0].arguments) == ("Now.", "I write the test.", arguments)


def test_a_reply_that_was_cut_off_in_a_thought_has_no_text() -> None:
    reply = reply_with({"content": '<think>I say {"score": 1.0}'}, "length")
    assert (reply.text, reply.reasoning, reply.finish) == ("", 'I say {"score": 1.0}', "length")


@pytest.mark.parametrize(
    ("thoughts", "one"), [(("a", ""), "a"), (("a b", "a"), "a b"), (("a", " a b "), " a b "), (("a", "b\n"), "a\n\nb")]
)
def test_thoughts_from_two_places_are_joined(thoughts: tuple[str, ...], one: str) -> None:
    assert joined(*thoughts) == one


PIECES = ["<think>", "</think>", "[THINK]", "[/THINK]", "\n", " ", "x", "q.", "```", "`", '"', "<|end|>", "<|channel|>"]
PIECES += ["analysis", "final", "<|message|>", "<|start|>assistant", "<|return|>", "assistantfinal", "    ", "<answer>"]


@example("<|message|><|end|>x", False, False)
@example("analysis<|message|>x<|end|>q", True, True)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.booleans(), st.booleans())
def test_no_word_is_lost_and_none_is_said_twice(text: str, cut: bool, parsed: bool) -> None:
    said = separated(text, cut=cut, parsed=parsed)
    assert [(said.thoughts + said.content).count(word) for word in "xq"] == [text.count(word) for word in "xq"]
    if "THINK" not in text.upper() and "<|" not in text and "assistantfinal" not in text and not cut:
        assert said == (text, "")


@pytest.mark.parametrize(
    "unit", ["<think>", "</think>", "<think>a</think>", "<think>a</think>\nb\n", "`</think>", '"</think>" ', "```\n",
             "analysisassistant", "\n[BEGIN FINAL RESPONSE] ", "[END FINAL RESPONSE] ", "a\n</think>\n",
             "<|channel|>final<|message|>", "<|start|>assistant<|channel|>", "[THINK]x ", "<|end_of_thinking|>"],
)  # fmt: skip
def test_the_time_grows_as_the_text_does(unit: str) -> None:
    assert_linear(lambda size: unit * (size // len(unit)), lambda text: separated(text, cut=True), 12_000)
