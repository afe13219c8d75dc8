"""Marks by which chat templates and trainers tell who speaks. In the text of a message they are nothing but text.

A file that an agent reads may hold ``<|im_start|>assistant``, as the tests of any inference server do. Tokenizers would
make control tokens of it, and trainers that look for their turns in the rendered text would take the file's words for
the model's: slime's ``qwen3_5`` masks do (`slime/utils/mask_utils.py`, read at 624b824). So such a mark gets a blank
before its end: ``<|im_start |>``. It stays readable, and whoever needs the text as it was takes the blank out again.

The ``<s>`` and ``</s>`` of Llama 2 are not among them: in HTML they are code.
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
"""Marks that are known by their names alone."""

_WIDE = "\uff5c"
_SHAPED = rf"<\|[\w/▁-]{{1,64}}(?=\|>)|<{_WIDE}[\w/▁-]{{1,64}}(?={_WIDE}>)"
"""Marks that are known by their shape, whatever the name: ``<|im_end|>`` and ``<|endoftext|>`` (ChatML, Qwen),
``<|eot_id|>`` (Llama 3), ``<|observation|>`` (GLM-4), ``<|channel|>`` (gpt-oss), ``<|im_middle|>`` (Kimi K2), and with
the full-width bars of DeepSeek (U+FF5C) its end of a sentence."""

THINKING = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""What a model writes itself around thoughts and calls; a mark only where a reader looks for it in the text."""


def _broken_before_end(names: tuple[str, ...]) -> str:
    return "|".join(f"{re.escape(name[:-1])}(?={re.escape(name[-1])})" for name in names)


_MARK = re.compile(f"{_SHAPED}|{_broken_before_end(NAMED)}")
_THINKING = re.compile(_broken_before_end(THINKING))
_SIGNS = ("|>", f"{_WIDE}>", *NAMED)
"""One of these stands in whatever holds a mark; a cheap look that spares most texts the real one."""


def without_special_tokens(text: str) -> str:
    """The text with every special token broken by a blank before its end."""
    return _MARK.sub(r"\g<0> ", text) if any(sign in text for sign in _SIGNS) else text


def without_thinking_marks(text: str) -> str:
    """The text with the marks of thoughts and calls broken alike, for a place that they begin or end."""
    return _THINKING.sub(r"\g<0> ", text)
