"""A text is written again until nothing in it leaks, as often as that is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from prchain.core.leaks import Finding, leak_words, until_clean
from prchain.core.leaks.finding import finding


def check(text: str) -> list[Finding]:
    return [finding("empty", "leak" if "leak" in text else "warning", text)]


@given(st.lists(st.sampled_from(["a leak", "fine"]), min_size=1, max_size=8), st.integers(0, 5))
def test_it_ends_with_the_first_clean_version_or_the_last_that_is_allowed(texts: list[str], repeats: int) -> None:
    requests: list[tuple[int, str]] = []

    def again(number: int, text: str, found: Sequence[Finding]) -> str | None:
        assert [finding.evidence for finding in found] == [text]
        requests.append((number, text))
        return texts[number] if number < len(texts) else None

    versions = until_clean(texts[0], check, again, repeats)
    allowed = texts[: repeats + 1]
    clean = allowed.index("fine") if "fine" in allowed else None
    last = len(allowed) - 1 if clean is None else clean
    assert (versions.text, versions.clean, len(versions.findings)) == (texts[last], clean is not None, last + 1)
    assert [number for number, _ in requests][:last] == list(range(1, last + 1))


def test_only_leaks_are_told_and_each_once() -> None:
    found = [*check("a leak"), *check("a leak"), *check("fine")]
    assert len(leak_words(found).splitlines()) == 1
