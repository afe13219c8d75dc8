"""Counting tokens: exact with a tokenizer and its template, else the count says that it is not."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from tests.trajectories.test_formats import sample
from trajectories.export.chat import chat_messages
from trajectories.export.tokens import TokenEstimate, TokenizerCounter, counter, cumulative_tokens

TEMPLATE = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}{{ message.reasoning_content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A tokenizer whose tokens are bytes."""
    package = pytest.importorskip("tokenizers")
    alphabet = sorted(package.pre_tokenizers.ByteLevel.alphabet())
    inner = package.Tokenizer(package.models.BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    inner.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_an_estimate_says_that_it_is_one() -> None:
    found = counter(None)
    assert found.method == "estimate" and "--tokenizer" in found.description
    assert TokenEstimate().text("abcdefgh") == 2
    assert TokenEstimate().text("é" * 4) == 2, "bytes, not characters"
    assert 0 < found.sample(sample()).trained < found.sample(sample()).total


def test_a_tokenizer_alone_counts_texts_exactly_and_says_what_it_guesses(tokenizer: Path) -> None:
    found = TokenizerCounter(tokenizer)
    assert found.method == "texts" and "no chat template" in found.description
    assert found.text("héllo") == 6 and found.text("") == 0
    trained = sum(
        len(text.encode())
        for turn in sample().turns
        if turn.train
        for text in (turn.content, turn.reasoning or "", *(call.name + call.arguments for call in turn.tool_calls))
    )
    assert found.sample(sample()).trained == trained


@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_with_a_chat_template_the_count_is_that_of_the_rendered_conversation(tokenizer: Path, place: str) -> None:
    text = TEMPLATE if place.endswith("jinja") else json.dumps({"chat_template": TEMPLATE, "eos_token": None})
    (tokenizer.parent / place).write_text(text)
    found = TokenizerCounter(tokenizer)
    assert found.method == "template"
    rendered = "".join(
        f"<{message['role']}\n{message['content']}{message.get('reasoning_content', '')}"
        + "".join(json.dumps(call["function"], ensure_ascii=False) for call in message.get("tool_calls", ()))
        + ">\n"
        for message in chat_messages(sample())
    )
    counted = found.sample(sample())
    assert counted.total == len(rendered.encode()), "each mark is one token, as < and > are here"
    assert counted.by == "template"


def test_reasoning_that_a_template_drops_is_counted_all_the_same(tokenizer: Path) -> None:
    """Qwen3's template drops the reasoning of earlier turns, and slime trains on it."""
    (tokenizer.parent / "chat_template.jinja").write_text(TEMPLATE.replace("{{ message.reasoning_content }}", ""))
    found = TokenizerCounter(tokenizer)
    thoughts = [turn.reasoning or "" for turn in sample().turns]
    silent = replace(sample(), turns=tuple(replace(turn, reasoning=None) for turn in sample().turns))
    without, counted = found.sample(silent), found.sample(sample())
    assert (without.by, counted.by) == ("template", "template_and_reasoning")
    assert counted.total == without.total + sum(len(text) + 4 * bool(text) for text in thoughts) > without.total
    assert "reasoning" in found.description


def test_a_beginning_is_counted_as_if_the_sample_ended_there(tokenizer: Path) -> None:
    for found in (TokenEstimate(), TokenizerCounter(tokenizer)):
        whole = list(cumulative_tokens(found, sample()))
        assert len(whole) == len(sample().turns) and whole[-1] == found.sample(sample())
        assert whole[4] == found.sample(replace(sample(), turns=sample().turns[:5]))


def test_how_a_tokenizer_cut_and_filled_when_it_was_saved_does_not_count(tokenizer: Path) -> None:
    package = pytest.importorskip("tokenizers")
    exact = TokenizerCounter(tokenizer).sample(sample())
    for name in ("truncation", "padding"):
        saved = package.Tokenizer.from_file(str(tokenizer))
        saved.enable_truncation(16) if name == "truncation" else saved.enable_padding(length=4096)
        saved.save(str(tokenizer))
        assert TokenizerCounter(tokenizer).sample(sample()) == exact


def test_a_template_that_refuses_is_one_line(tokenizer: Path) -> None:
    (tokenizer.parent / "chat_template.jinja").write_text("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(UsageError, match="roles must alternate"):
        TokenizerCounter(tokenizer).sample(sample())


def test_a_template_cannot_reach_out_of_its_sandbox(tokenizer: Path) -> None:
    (tokenizer.parent / "chat_template.jinja").write_text("{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(UsageError, match="refuses"):
        TokenizerCounter(tokenizer).sample(sample())


@pytest.mark.parametrize("content", ["{", '{"version": "1.0"}', ""])
def test_a_broken_tokenizer_is_one_line(tmp_path: Path, content: str) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(UsageError, match=r"is no tokenizer\.json"):
        TokenizerCounter(tmp_path / "tokenizer.json")


def test_broken_settings_beside_it_are_one_line(tokenizer: Path) -> None:
    (tokenizer.parent / "tokenizer_config.json").write_text("[]")
    with pytest.raises(UsageError, match="settings"):
        TokenizerCounter(tokenizer)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match=r"\[tokens\]"):
        counter(tmp_path / "tokenizer.json")
