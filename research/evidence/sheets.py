"""What a reader gets of a pair or chain: texts without references between pull requests, and patches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prchain.core.code.reference import split
from prchain.core.git import GitRepository, parse_patch

_PATCH_LIMIT = 5_000
"""Characters of a stage's source patch that are shown."""
_TEXT_LIMIT = 1_200
_REFERENCE = re.compile(
    r"https?://\S+|(?:[\w.-]+/[\w.-]+)?#\d+|\b(?:GH|gh|PR|pr|issue|pull request)[- ]?#?\d+|\b[0-9a-f]{7,40}\b"
)


@dataclass(frozen=True, slots=True)
class SheetStage:
    """One stage as a sheet needs it."""

    base_sha: str
    landed_sha: str
    landed_at: str
    messages: tuple[str, ...]


def sheet(name: str, repository: GitRepository, stages: Sequence[SheetStage]) -> str:
    """The page: no numbers of pull requests, no addresses, no commit ids, no confidence, no strategy."""
    lines = [f"# {name}"]
    for position, stage in enumerate(stages, 1):
        lines += ["", f"## stage {position}, {stage.landed_at[:10]}", ""]
        lines += [_quoted(message) for message in stage.messages]
        lines += ["", "```diff", _patch(repository, stage), "```"]
    return "\n".join(lines) + "\n"


def blanked(text: str) -> str:
    """The text without what names another pull request, issue or commit."""
    return _REFERENCE.sub("[...]", text)


def _quoted(message: str) -> str:
    return "\n".join(f"> {line}" for line in blanked(message[:_TEXT_LIMIT]).splitlines()) + "\n"


def _patch(repository: GitRepository, stage: SheetStage) -> str:
    text = repository.patch_text(stage.base_sha, stage.landed_sha).decode("utf-8", "replace")
    reference = split(parse_patch(text))
    paths = [file.path for file in reference.code]
    source = repository.patch_text(stage.base_sha, stage.landed_sha, paths).decode("utf-8", "replace")
    tests = ", ".join(file.path for file in reference.test)
    others = ", ".join(path for path in reference.paths if path not in paths and path not in tests)
    cut = f"\n... {len(source) - _PATCH_LIMIT:,} more characters" if len(source) > _PATCH_LIMIT else ""
    also = f"\n(tests changed, {reference.test_lines} lines: {tests[:300]})" if tests else "\n(no tests changed)"
    return blanked_index(source[:_PATCH_LIMIT]) + cut + also + (f"\n(also changed: {others[:300]})" if others else "")


def blanked_index(patch: str) -> str:
    """A patch without the lines that name blobs."""
    return re.sub(r"(?m)^index [0-9a-f]+\.\.[0-9a-f]+.*\n", "", patch)
