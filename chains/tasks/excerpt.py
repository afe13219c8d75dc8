"""Cutting mined texts to what a prompt has room for, *largest first*; see `prchain.core.llm.excerpt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from prchain.core.git import FilePatch
from prchain.core.llm.excerpt import SHORTEST, cut, fair_cap
from prchain.core.secrets.scrub import scrub_mined

_FILES_NAMED = 200
"""How many of the files that are not shown are named."""


@dataclass(frozen=True, slots=True)
class ExcerptLimits:
    """Room in a prompt, in characters. About 120,000 in all: some 30,000 tokens, which every current model takes."""

    patch: int = 64_000
    tests: int = 16_000
    body: int = 8_000
    discussion: int = 12_000
    commits: int = 6_000
    issues: int = 12_000

    def halved(self) -> ExcerptLimits:
        """Half of each limit."""
        return ExcerptLimits(**{field.name: getattr(self, field.name) // 2 for field in fields(self)})


def excerpts(texts: Sequence[str], limit: int) -> list[str]:
    """The texts, cut largest first to `limit` characters in all (not counting the lines that mark a cut).

    Where there are too many texts to show, the first and the last ones stay.
    """
    cap = fair_cap([len(text) for text in texts], limit)
    room = max(limit // SHORTEST, 2)
    if cap < SHORTEST and len(texts) > room:
        last = room // 2
        kept = [*texts[: room - last], *texts[len(texts) - last :]]
        parts = excerpts(kept, limit)
        parts.insert(room - last, f"[... {len(texts) - room:,} more left out ...]")
        return parts
    return [cut(text, cap) for text in texts]


def patch_excerpt(files: Mapping[str, str], limit: int) -> str:
    """The patch of some files (see `file_texts`) within `limit` characters; files that find no room are named."""
    included = dict(files)
    room, hidden = limit, []
    for path in sorted(included, key=lambda path: (len(included[path]), path)):
        room -= min(len(included[path]), SHORTEST)
        if room < 0:
            hidden.append(scrub_mined(path))
            del included[path]
    parts = excerpts(list(included.values()), limit)
    if hidden:
        rest = f" and {len(hidden) - _FILES_NAMED} more" if len(hidden) > _FILES_NAMED else ""
        parts.append(f"[changed too, not shown: {cut(', '.join(sorted(hidden)[:_FILES_NAMED]), limit)}{rest}]")
    return "\n".join(parts)


def file_texts(files: Sequence[FilePatch]) -> dict[str, str]:
    """Path to patch of some files, scrubbed, as `patch_excerpt` cuts them."""
    texts: dict[str, list[str]] = {}
    for file in files:  # a file that becomes a link has two patches
        texts.setdefault(file.path, []).append(scrub_mined(file_text(file)))
    return {path: "\n".join(parts) for path, parts in texts.items()}


def file_text(file: FilePatch) -> str:
    """The patch of one file, as people read it."""
    origin = f" (from {file.old_path})" if file.old_path else ""
    change = {"A": "new file", "D": "deleted file", "R": "renamed", "C": "copied"}.get(file.status, "changed")
    lines = [f"=== {file.path}{origin}: {change}{', binary' if file.binary else ''}"]
    for hunk in file.hunks:
        lines.append(f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@ {hunk.section}")
        lines.extend(hunk.lines)
    return "\n".join(lines)
