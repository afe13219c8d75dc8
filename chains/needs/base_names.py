"""Which names a repository knows at B_t: those that stand in any of its texts, and those that its source defines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from prchain.core.code.identifiers import defined_names
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.code.lexing import family_of
from prchain.core.git.words import standing


@dataclass(frozen=True, slots=True)
class BaseNames:
    """Of the names that were asked for: those that stand in a text, and of these those that a source file defines."""

    standing: frozenset[str]
    defined: frozenset[str]


def names_at_base(
    files: Iterable[tuple[Collection[str], bytes]], words: Collection[str], names: Collection[str]
) -> BaseNames:
    """Look up `words` in the texts of a tree, and which of `names` its source files define.

    A word may stand anywhere (in a licence, a string, a call of another library): that tells nobody that the
    repository has such a function. `files` are paths and content, as `GitRepository.text_files` gives them.
    """
    defined: set[str] = set()

    def texts() -> Iterator[bytes]:
        for paths, content in files:
            missing = set(names) - defined
            source = next((path for path in paths if kind_of(path) is FileKind.SOURCE and family_of(path)), None)
            if source is not None and (found := standing([content], missing)):
                lines = content.decode("utf-8", "replace").split("\n")
                defined.update(found & defined_names(lines, source))
            yield content

    read = texts()
    found = standing(read, words)
    for _ in read if names else ():  # `standing` ends with the last word, and definitions may come later
        pass
    return BaseNames(frozenset(found), frozenset(defined))
