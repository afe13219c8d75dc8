"""Cutting mined texts to what a prompt has room for, and saying what was left out.

What is cut was scrubbed before: half of a key or a token has no longer the shape by which it is known.

The policy has one name, *largest first*: as many characters as there are too many are taken from the longest texts,
until all that were cut are equally long; of each, the head and the tail stay. Short texts stay whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from prchain.git import FilePatch
from prchain.scrub import scrub_mined

SHORTEST = 240
"""Characters below which an excerpt of a file says nothing; the largest files are then named only."""

_NAMED = 200
"""How many files are named of those that are not shown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Room in a prompt, in characters. About 120,000 in all: some 30,000 tokens, which every current model takes."""

    patch: int = 64_000
    tests: int = 16_000
    body: int = 8_000
    discussion: int = 12_000
    commits: int = 6_000
    issues: int = 12_000

    def halved(self) -> Limits:
        """Half of it everywhere."""
        return Limits(**{one.name: getattr(self, one.name) // 2 for one in fields(self)})


def fair_cap(lengths: Sequence[int], limit: int) -> int:
    """The greatest cap for which the lengths, none longer than the cap, sum up to `limit` at most."""
    left = max(limit, 0)
    for place, length in enumerate(sorted(lengths)):
        rest = len(lengths) - place
        if length * rest > left:
            return left // rest
        left -= length
    return max(lengths, default=0)


def cut(text: str, cap: int) -> str:
    """The text, or its first and last lines within `cap` characters with a line between them that says what is gone."""
    if len(text) <= cap:
        return text
    head = text[: cap - cap // 3]
    tail = text[len(text) - cap // 3 :]
    # Whole lines, unless there is hardly one.
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if -1 < (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    gone = len(text) - len(head) - len(tail)
    return f"{head}\n[... {gone:,} characters left out ...]\n{tail}"


def excerpts(texts: Sequence[str], limit: int) -> list[str]:
    """The texts, cut largest first to `limit` characters in all (beside the lines that say so).

    Of texts too many to be shown, the first and the last ones stay.
    """
    cap = fair_cap([len(text) for text in texts], limit)
    room = max(limit // SHORTEST, 2)
    if cap < SHORTEST and len(texts) > room:
        last = room // 2
        kept = [*texts[: room - last], *texts[len(texts) - last :]]
        shown = excerpts(kept, limit)
        shown.insert(room - last, f"[... {len(texts) - room:,} more left out ...]")
        return shown
    return [cut(text, cap) for text in texts]


def patch_excerpt(files: Mapping[str, str], limit: int) -> str:
    """The patch of some files (see `file_texts`) within `limit` characters; files too many to be shown are named."""
    shown = dict(files)
    room, hidden = limit, []
    for path in sorted(shown, key=lambda path: (len(shown[path]), path)):
        room -= min(len(shown[path]), SHORTEST)
        if room < 0:
            hidden.append(scrub_mined(path))
            del shown[path]
    parts = excerpts(list(shown.values()), limit)
    if hidden:
        more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
        parts.append(f"[changed too, not shown: {cut(', '.join(sorted(hidden)[:_NAMED]), limit)}{more}]")
    return "\n".join(parts)


def file_texts(files: Sequence[FilePatch]) -> dict[str, str]:
    """Path to patch of some files, scrubbed, as `patch_excerpt` cuts them."""
    texts: dict[str, list[str]] = {}
    for file in files:  # one that becomes a link has two
        texts.setdefault(file.path, []).append(scrub_mined(file_text(file)))
    return {path: "\n".join(parts) for path, parts in texts.items()}


def file_text(file: FilePatch) -> str:
    """The patch of one file, as people know it."""
    moved = f" (from {file.old_path})" if file.old_path else ""
    what = {"A": "new file", "D": "deleted file", "R": "renamed", "C": "copied"}.get(file.status, "changed")
    lines = [f"=== {file.path}{moved}: {what}{', binary' if file.binary else ''}"]
    for hunk in file.hunks:
        lines.append(f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@ {hunk.section}")
        lines.extend(hunk.lines)
    return "\n".join(lines)
