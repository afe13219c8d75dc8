"""The texts of a generated world: ordinary prose, citations of every kind, and text that only looks like one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

T = TypeVar("T")

WORDS = (
    "parser",
    "cache",
    "index",
    "loader",
    "schema",
    "buffer",
    "socket",
    "retry",
    "token",
    "cursor",
    "window",
    "filter",
    "planner",
    "writer",
    "reader",
    "merge",
    "lexer",
    "router",
    "session",
    "handler",
    "timeout",
    "encoder",
    "decoder",
    "matcher",
    "resolver",
    "scheduler",
    "worker",
    "channel",
    "stream",
    "batch",
)
VERBS = (
    "Add",
    "Fix",
    "Speed-up",
    "Remove",
    "Rework",
    "Document",
    "Test",
    "Simplify",
    "Guard",
    "Split",
    "Rename",
    "Extend",
)
PREFIXES = ("", "", "", "", "", "BUG: ", "MAINT: ", "feat(core): ", "fix: ", "[core] ", "DOC: ")

AWKWARD_BODIES: tuple[str | None, ...] = (
    None,
    "",
    "NUL \x00 inside, and one more\x00",
    "a lone surrogate \ud83d here and \udc00 there",
    "emoji 🙈🏽, عربى, 日本語, e\u0301, zero\u200bwidth, \ufeffBOM",
    "CRLF line\r\nand another\r\n\r\n<!-- template: fixes #NNN -->\r\n",
    "control \x01\x02\x1f\x7f and \u2028 separators \u2029",
    "long " * 12_000,
    "<script>alert(1)</script>{{7*7}}${jndi:x}'; DROP TABLE pull_requests; --",
)


class Cited(NamedTuple):
    """A text, and whether GitHub would close the target because of it."""

    text: str
    closes: bool = False


@dataclass(frozen=True)
class Target:
    """A target of citations: a number of a repository and, where it landed, a commit."""

    repository: str
    number: int
    url: str
    sha: str | None


# Each takes the target `t`; GitHub links all of them.
_NUMBERS = (
    "See #{n} for the discussion.",
    "Same approach as in #{n}.",
    "cc the people from GH-{n}",
    "gh-{n} had the same symptom.",
    "Compare {r}#{n}.",
    "Details: {u}",
    "As {u}#issuecomment-1 says.",
    "Follow-up to #{n}.",
    "This is a follow up of {r}#{n}",
    "Depends on #{n}",
    "Depends-on: #{n}",
    "Stacked on #{n}.",
    "Stacked on top of {u}",
    "Supersedes #{n}.",
    "Replaces #{n}, which went stale.",
    "Part of #{n}.",
    "Split out of #{n}.",
    "Duplicate of #{n}",
    "Builds on #{n}; please review that first.",
    "Introduced in #{n}.",
    "Regression from #{n}: the {w} was dropped.",
)
_CLOSING = ("Fixes #{n}", "fixes: #{n}", "Closes #{n}.", "Resolves {r}#{n}", "close #{n}", "FIXED #{n}")
_SHAS = (
    "Broken since {s7}.",
    "Introduced by {s}.",
    "See {r}@{s}.",
    "See someone@{s7}",
    "First seen in {root}/commit/{s}",
)

# Look like citations of {n} and are none.
DECOYS = (
    "```\nfixes #{n}\n```",
    "Use `#{n}` as the anchor.",
    "> Fixes #{n}\n\nNo, it does not.",
    "<!-- Fixes #{n} -->",
    "The colour is #12{n}ab, was #{n:06d}.",
    "It&#39;s page.html#{n} that breaks.",
    "1. step #1\n2. step #2\n3. item #3",
    "someoneelse/project#{n} is about another project.",
    "https://github.evil.example/acme/widgets/pull/{n}",
    "https://notgithub.example/acme/widgets/issues/{n}",
    "abc#{n} and {n}# are names.",
    "<details><summary>Log</summary>\n\nfixes #{n}\n\n</details>",
    "Changelog: #1, #2, #3, #4, #5, #6, #7, #8, #9, #10, #11, #12",
    "The build of {n}0 commits took deadbeef seconds.",
)


def choose(rng: random.Random, things: Sequence[T]) -> T:
    """Return one of the things; three times as fast as `Random.choice`: a large world consists mostly of choices."""
    return things[int(rng.random() * len(things))]


def sentence(rng: random.Random) -> str:
    pick = partial(choose, rng)
    return f"{pick(VERBS)} the {pick(WORDS)} {pick(WORDS)} so that the {pick(WORDS)} of the {pick(WORDS)} holds."


def title(rng: random.Random) -> str:
    pick = rng.choice
    return f"{pick(PREFIXES)}{pick(VERBS)} {pick(WORDS)} {pick(WORDS)}"


def citation(rng: random.Random, target: Target) -> Cited:
    """Return a sentence that cites the target in a form that GitHub recognises."""
    roll = rng.random()
    if target.sha and roll < 0.15:
        template, closes = rng.choice(_SHAS), False
    elif roll < 0.4:
        template, closes = rng.choice(_CLOSING), True
    else:
        template, closes = rng.choice(_NUMBERS), False
    sha = target.sha or ""
    root = target.url.rsplit("/", 2)[0]
    text = template.format(
        n=target.number, r=target.repository, u=target.url, s=sha, s7=sha[:7], root=root, w=rng.choice(WORDS)
    )
    return Cited(text, closes)


def decoy(rng: random.Random, number: int) -> str:
    return rng.choice(DECOYS).format(n=number)


def comment(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.3:
        return choose(rng, ("LGTM", "Thanks!", "+1", "Please rebase.", "ping", "Done.", ":shipit:"))
    return " ".join(sentence(rng) for _ in range(1 + int(rng.random() * 3)))
