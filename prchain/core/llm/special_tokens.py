"""Special tokens, with which chat templates and trainers mark who speaks; here they occur in the text of a message.

A file that an agent reads may hold ``<|im_start|>assistant``, as the tests of any inference server do. Tokenizers would
turn it into control tokens: in an export, and in a prompt, where a server that renders the conversation by a template
reads the candidate's words as another turn's. Trainers that search the rendered text for turns would take the file's
words for the model's: slime's ``qwen3_5`` masks do (`slime/utils/mask_utils.py`, read at 624b824). So such a mark gets
a blank before its end: ``<|im_start |>``. It stays readable, and removing the blank restores the text.

The ``<s>`` and ``</s>`` of Llama 2 are not included: in HTML they are code. Nor is Mistral's ``[ARGS]``, which stands
in the usage of programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

NAMED = (
    "<bos>",
    "<eos>",
    "<start_of_turn>",
    "<end_of_turn>",  # Gemma 2 and 3: tokenizer_config.json
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",  # Mistral: mistral-common's SpecialTokens
    "[gMASK]",
    "<sop>",  # GLM-4: tokenizer_config.json
    "[THINK]",
    "[/THINK]",  # Magistral: mistral-common's SpecialTokens
    "<|turn>",
    "<turn|>",
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",  # Gemma 4: tokenizer_config.json
    "\u25c1think\u25b7",
    "\u25c1/think\u25b7",  # Kimi-VL: tokenizer_config.json
    "<<SYS>>",
    "<</SYS>>",  # Llama 2
    "[TOOL_CONTENT]",
    "[CALL_ID]",
    "[MODEL_SETTINGS]",
    "[/MODEL_SETTINGS]",  # Mistral: mistral-common's SpecialTokens
    "<eop>",  # GLM-4
    "]~!b[",
    "]~b]",
    "[e~[",  # MiniMax M2: chat_template.jinja
    "[|system|]",
    "[|user|]",
    "[|assistant|]",
    "[|tool|]",
    "[|endofturn|]",  # EXAONE: tokenizer_config.json
    "<role>SYSTEM</role>",
    "<role>HUMAN</role>",
    "<role>ASSISTANT</role>",
    "<role>OBSERVATION</role>",  # Ling, Ring: chat_template.jinja
    "<seed:bos>",
    "<seed:eos>",  # Seed-OSS: tokenizer_config.json
    "<end_of_utterance>",  # SmolVLM
    "<start_of_image>",
    "<image_soft_token>",  # Gemma 3: a server counts them, and looks for as many images
)
"""Marks that are recognised by name."""

_WIDE = "\uff5c"
_SHAPES = (
    *((rf"<{bar}[\w/▁:-]{{1,64}}", rf"{bar}>") for bar in (r"\|", _WIDE)),
    (r"<(?:SPECIAL_|unused|reserved_)[0-9]{1,6}", ">"),
    (r"<extra_id_[01]", ">"),
    (r"\[unused[0-9]{1,6}", r"\]"),
)
"""Marks that are recognised by shape, with any name, in two halves: ``<|im_end|>`` and ``<|endoftext|>`` (ChatML,
Qwen), ``<|eot_id|>`` (Llama 3), ``<|observation|>`` (GLM-4), ``<|channel|>`` (gpt-oss), ``<|im_middle|>`` (Kimi K2),
``<|think:end|>`` (Solar Open 2), and with the full-width bars of DeepSeek (U+FF5C) its end of a sentence. With a
number ``<SPECIAL_11>`` and ``<extra_id_1>`` (Nemotron's turns), ``<unused94>`` (MedGemma), ``<reserved_106>``
(Baichuan), ``[unused9]`` (openPangu)."""

THINKING = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""Marks that a model itself writes around thoughts and calls; they matter only where a reader searches for them."""


def _halves(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(re.escape(name[:-1]), re.escape(name[-1])) for name in names]


def _whole(halves: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    return re.compile("|".join(f"{first}(?={last})" for first, last in halves))


_MARK = _whole([*_SHAPES, *_halves(NAMED)])
_BROKEN = re.compile("|".join(f"{first} {last}" for first, last in (*_SHAPES, *_halves(NAMED))))
_THINKING = _whole(_halves(THINKING))
_SIGNS = ("|>", f"{_WIDE}>", "<SPECIAL_", "<extra_id_", "<unused", "<reserved_", "[unused", *NAMED)
"""Every text with a mark holds one of these; a cheap check that saves the regular expression for most texts."""


def without_special_tokens(text: str) -> str:
    """The text with every special token broken by a blank before its end."""
    return _MARK.sub(r"\g<0> ", text) if any(sign in text for sign in _SIGNS) else text


def without_thinking_marks(text: str) -> str:
    """The text with the marks of thoughts and calls broken in the same way, for use between such marks."""
    return _THINKING.sub(r"\g<0> ", text)


def broken_tokens(text: str) -> set[str]:
    """The special tokens that stand broken in a text."""
    return set(_BROKEN.findall(text))


def mended(text: str, broken: Iterable[str]) -> str:
    """The text with these broken tokens whole again: what is said of a text that was shown with them."""
    for mark in broken:
        text = text.replace(mark, mark[::-1].replace(" ", "", 1)[::-1])
    return text
