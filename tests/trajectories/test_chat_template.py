"""Chat templates are untrusted programs: they can only render, and their errors become `UsageError`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from trajectories.export.chat_template import template_beside

MESSAGES = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
CONTENTS = "{% for one in messages %}{{ one.content }}{% endfor %}"


def rendered(folder: Path, source: str) -> str:
    (folder / "chat_template.jinja").write_text(source)
    template = template_beside(folder)
    assert template is not None
    return template(MESSAGES, ())


def configured(folder: Path, stored: object) -> str:
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": stored}))
    template = template_beside(folder)
    assert template is not None
    return template(MESSAGES, ())


def test_what_stands_in_generation_is_printed(tmp_path: Path) -> None:
    source = (
        "{% for one in messages %}{% if one.role == 'user' %}{{ one.content }}{% else %}"
        "{% generation %}<{{ one.content }}>{% endgeneration %}{% endif %}{% endfor %}"
    )
    assert rendered(tmp_path, source) == "a<b>"


@pytest.mark.parametrize(
    "stored",
    [
        CONTENTS,
        [{"name": "other", "template": "x"}, {"name": "default", "template": CONTENTS}],
        {"other": "x", "default": CONTENTS},
    ],
)
def test_of_several_templates_the_default_one_is_taken(tmp_path: Path, stored: object) -> None:
    assert configured(tmp_path, stored) == "ab"


def test_no_template_is_none(tmp_path: Path) -> None:
    assert template_beside(tmp_path) is None
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<s>"}}))
    assert template_beside(tmp_path) is None


@pytest.mark.parametrize(
    "stored",
    [
        5,
        True,
        {"a": "x"},
        [1],
        ["x"],
        [{"name": "default"}],
        [{"name": "a", "template": "x"}],
        {"default": 5},
        {"default": {"default": "x"}},
    ],
)
def test_settings_that_hold_no_template_are_one_line(tmp_path: Path, stored: object) -> None:
    with pytest.raises(UsageError, match="settings"):
        configured(tmp_path, stored)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1 / 0 }}",
        "{{ messages[99].content }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ 'a' + 1 }}",
        "{{ range(10 ** 9) | list }}",
        "{{ raise_exception('no') }}",
    ],
)
def test_what_a_template_raises_is_one_line(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError, match="refuses a conversation") as caught:
        rendered(tmp_path, source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source", ["{% for %}", "{% generation %}x", "{{", "{% nothing %}", "(" * 3 + "{{ " + "(" * 5_000]
)
def test_what_is_no_template_is_one_line(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        rendered(tmp_path, source)
