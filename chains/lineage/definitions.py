"""Which pull request introduced each function, class or constant: kept beside the owners of lines.

Names are found by pattern in the lines that a commit adds and removes. A name that a commit takes away and puts
elsewhere keeps its owner, as a function does whose signature changes. A name that is defined twice has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chains.lineage.real_lines import kind_and_family
from prchain.core.code.identifiers import bare_definitions
from prchain.core.git.line_changes import FileLines

_LONGEST_LINE = 1000
"""Bytes of a line in which definitions are searched; a longer one is generated, or hostile."""

Owned = Mapping[str, tuple[int, ...]]
"""Name to the owners of its definitions in one file."""


def text_of(lines: Iterable[bytes]) -> str:
    """Lines of code, joined and decoded, without those that are too long to be read."""
    return b"\n".join(line.rstrip(b"\r\n") for line in lines if len(line) <= _LONGEST_LINE).decode("utf-8", "replace")


@dataclass(slots=True)
class DefinitionOwners:
    """The definitions of a tree. No value is ever changed in place, so states that fork may share them."""

    files: dict[bytes, Owned] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    """The sum of the numbers of the paths that define a name: of a name that is defined once, its path's."""
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _paths: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, files: Mapping[bytes, Owned]) -> DefinitionOwners:
        """The state in which files define these names."""
        found = cls()
        for path, owned in files.items():
            found._replace(path, owned)
        return found

    def fork(self) -> DefinitionOwners:
        """The same state, for another branch."""
        return DefinitionOwners(
            dict(self.files), dict(self._counts), dict(self._places), dict(self._numbers), list(self._paths)
        )

    def in_file(self, path: bytes, name: str) -> int | None:
        """Who introduced a name that a file defines once."""
        owners = self.files.get(path, {}).get(name, ())
        return owners[0] if len(owners) == 1 else None

    def anywhere(self, name: str) -> int | None:
        """Who introduced a name that the tree defines once."""
        if self._counts.get(name) != 1:
            return None
        return self.in_file(self._paths[self._places[name]], name)

    def apply(self, owner: int, files: Iterable[FileLines]) -> None:
        """Let a commit of an owner change the definitions."""
        changes: list[tuple[FileLines, dict[str, tuple[int, ...]], Counter[str], Counter[str]]] = []
        moved: dict[str, int] = {}
        for file in files:
            known = dict(self.files.get(file.old_path, {})) if file.old_path is not None else {}
            gone, new = _changed_names(file)
            for name in gone:
                owners = known.get(name, ())
                if len(owners) == gone[name] == 1:
                    moved[name] = owners[0]
            changes.append((file, known, gone, new))
        for file, _, _, _ in changes:
            if file.old_path is not None and (file.old_path != file.new_path or file.binary):
                self._replace(file.old_path, {})
        for file, known, gone, new in changes:
            for name, count in gone.items():
                left = known.pop(name, ())[: -count or None]
                if left:
                    known[name] = left
            for name, count in new.items():
                known[name] = (*known.get(name, ()), *[moved.get(name, owner)] * count)
            if file.new_path is not None and (gone or new or file.old_path != file.new_path):
                self._replace(file.new_path, known)

    def _replace(self, path: bytes, owned: Owned) -> None:
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self._paths)
            self._paths.append(path)
        for sign, names in ((-1, self.files.get(path, {})), (1, owned)):
            for name, owners in names.items():
                count = self._counts.get(name, 0) + sign * len(owners)
                if count:
                    self._counts[name] = count
                    self._places[name] = self._places.get(name, 0) + sign * number * len(owners)
                else:
                    self._counts.pop(name, None)
                    self._places.pop(name, None)
        if owned:
            self.files[path] = owned
        else:
            self.files.pop(path, None)


def _changed_names(file: FileLines) -> tuple[Counter[str], Counter[str]]:
    """The names whose definitions a file loses and gains, net."""
    old_family = kind_and_family(file.old_path)[1] if file.old_path else None
    new_family = kind_and_family(file.new_path)[1] if file.new_path else None
    gone: Counter[str] = Counter()
    new: Counter[str] = Counter()
    if old_family is not None:
        text = text_of(line for hunk in file.hunks for line in hunk.removed)
        gone.update(bare_definitions(text, old_family) if text else ())
    if new_family is not None:
        text = text_of(line for hunk in file.hunks for line in hunk.added)
        new.update(bare_definitions(text, new_family) if text else ())
    return gone - new, new - gone
