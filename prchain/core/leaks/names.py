"""Names of the code in a text, in whatever case and number they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prchain.core.code.identifiers import is_code_name, name_parts
from prchain.core.leaks.facts import SHORTEST_NAME, StageFacts
from prchain.core.leaks.finding import Finding, finding
from prchain.core.leaks.folding import digest
from prchain.core.leaks.library import builtin_names
from prchain.core.leaks.reading import TextReading, Word
from prchain.core.leaks.vocabulary import is_plain, lists

_SHORTEST_SQUASHED = 8
"""Letters from which on a name written as one word (`lazyframe`) is known again."""


@dataclass(frozen=True)
class _Names:
    """A set of names and the forms they are known by."""

    exact: Collection[str]
    parts: Collection[tuple[str, ...]]
    squashed: Collection[str]
    standing: Collection[str]


@lru_cache(maxsize=256)
def _names(names: frozenset[str], standing: frozenset[str] = frozenset()) -> _Names:
    joined = {parts for name in names if (parts := name_parts(name))}
    squashed = {"".join(parts) for parts in joined if len(parts) > 1}
    return _Names(names, joined, {word for word in squashed if len(word) >= _SHORTEST_SQUASHED}, standing)


def name_findings(reading: TextReading, chain: Sequence[StageFacts], position: int, kind: str) -> Iterator[Finding]:
    """Names that the stages introduce or change. Own and later ones leak; those that stand by now are warnings."""
    exempt = _exempt_words(reading, chain, position)
    order = sorted(range(1, len(chain) + 1), key=lambda stage: (stage != position, stage < position, stage))
    for word in reading.words:
        if len(word.text) < SHORTEST_NAME or _is_exempt(word.text, exempt):
            continue
        hit = next(
            (stage for stage in order if names(word, _names(chain[stage - 1].introduced, chain[stage - 1].standing))),
            None,
        )
        if hit is not None and (hit >= position or kind != "issue"):
            if (
                any(names(word, _names(facts.changed), alike=False) for facts in chain[:position] or chain)
                and hit != position
            ):
                yield finding("changed_name", "warning", word.spelling or word.text, hit)
            else:
                own = hit == position
                told = own and _is_told(word, chain[hit - 1])
                yield finding(
                    "introduced_name" if own else "other_stage_name",
                    "leak" if hit >= position and not told else "warning",
                    word.spelling or word.text,
                    hit,
                )
        elif kind != "issue" and position and names(word, _names(chain[position - 1].changed), alike=False):
            yield finding("changed_name", "warning", word.spelling or word.text, position)


def _is_told(word: Word, facts: StageFacts) -> bool:
    """Whether people said the name, or it stands as the option of a command (`--no-cache` for `no_cache`)."""
    return names(word, _names(facts.told & facts.introduced)) or digest(f"--{word.spelling or word.text}") in facts.told


def names(word: Word, name_set: _Names, *, alike: bool = True) -> bool:
    """Whether a word of the text is one of the names.

    A word that is plain English needs to be marked as code. With `alike`, other spellings count: `maxRetries` for
    `max_retries`, plurals, and a word unknown to English that is the name written as one.
    """
    for text in _singulars(word.text):
        if text in name_set.exact and (word.marked or _stands_out(text)):
            return True
    # `staticmethod` is Python's, whatever a patch calls `static_method`.
    if not alike or any(text in name_set.standing or text in builtin_names() for text in _singulars(word.text)):
        return False
    stands_out = _stands_out(word.text)
    if not word.marked and not stands_out:
        return False
    for text in _singulars(word.text):
        parts = name_parts(text)
        # The value "module" is not the name `MODULE`.
        # `/mid1` is an example, whatever a test calls `mid_1`.
        words = sum(map(str.isalpha, parts))
        if parts in name_set.parts and (words > 1 if len(parts) > 1 else word.marked and not is_plain(text)):
            return True
        if len(parts) == 1 and parts[0] in name_set.squashed and not is_plain(text):
            return True
    return False


def shown_names(reading: TextReading, introduced: Collection[str]) -> set[str]:
    """Which of some names a text has, spelt as they are, and as names: a plain word only where it is marked."""
    words = (word for word in reading.words if word.text in introduced)
    return {word.text for word in words if word.marked or _stands_out(word.text)}


def _stands_out(text: str) -> bool:
    """Whether a word needs no mark to be read as a name."""
    if text.lower() in lists().brands:
        return False
    return is_code_name(text) or not is_plain(text)


def _singulars(text: str) -> Iterator[str]:
    yield text
    if len(text) > SHORTEST_NAME and text.endswith("s"):
        yield text[:-1]
        if text.endswith("es"):
            yield text[:-2]


def _exempt_words(reading: TextReading, chain: Sequence[StageFacts], position: int) -> frozenset[str]:
    """What may be named: the interface of this stage and the earlier ones (of all, before the first), and words of
    named paths."""
    stages = chain if position == 0 else chain[:position]
    return frozenset({*reading.path_words, *(name for facts in stages for name in facts.interface)})


def _is_exempt(text: str, exempt: frozenset[str]) -> bool:
    return any(form in exempt for form in _singulars(text)) or text.lower() in exempt
