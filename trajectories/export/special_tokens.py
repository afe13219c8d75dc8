"""Special tokens, with which chat templates and trainers mark who speaks; here they occur in the text of a message.

A file that an agent reads may hold ``<|im_start|>assistant``, as the tests of any inference server do. Tokenizers would
turn it into control tokens, and trainers that search the rendered text for turns would take the file's words for the
model's: slime's ``qwen3_5`` masks do (`slime/utils/mask_utils.py`, read at 624b824). So such a mark gets a blank before
its end: ``<|im_start |>``. It stays readable, and removing the blank restores the text.

The ``<s>`` and ``</s>`` of Llama 2 are not included: in HTML they are code.
"""

from __future__ import annotations

import re

NAMED = (
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
)
"""Marks that are recognised by name."""

_WIDE = "\uff5c"
_SHAPED = rf"<\|[\w/▁-]{{1,64}}(?=\|>)|<{_WIDE}[\w/▁-]{{1,64}}(?={_WIDE}>)"
"""Marks that are recognised by shape, with any name: ``<|im_end|>`` and ``<|endoftext|>`` (ChatML, Qwen),
``<|eot_id|>`` (Llama 3), ``<|observation|>`` (GLM-4), ``<|channel|>`` (gpt-oss), ``<|im_middle|>`` (Kimi K2), and with
the full-width bars of DeepSeek (U+FF5C) its end of a sentence."""

THINKING = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""Marks that a model itself writes around thoughts and calls; they matter only where a reader searches for them."""


def _broken_before_end(names: tuple[str, ...]) -> str:
    return "|".join(f"{re.escape(name[:-1])}(?={re.escape(name[-1])})" for name in names)


_MARK = re.compile(f"{_SHAPED}|{_broken_before_end(NAMED)}")
_THINKING = re.compile(_broken_before_end(THINKING))
_SIGNS = ("|>", f"{_WIDE}>", *NAMED)
"""Every text with a mark holds one of these; a cheap check that saves the regular expression for most texts."""


def without_special_tokens(text: str) -> str:
    """The text with every special token broken by a blank before its end."""
    return _MARK.sub(r"\g<0> ", text) if any(sign in text for sign in _SIGNS) else text


def without_thinking_marks(text: str) -> str:
    """The text with the marks of thoughts and calls broken in the same way, for use between such marks."""
    return _THINKING.sub(r"\g<0> ", text)
