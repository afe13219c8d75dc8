"""What is replaced in texts, as rows that a person can judge and that nobody can use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from prchain.core.secrets.scrub import redact_mined, replace_addresses, replace_secrets
from research.secrets.texts import SOURCES, Text

_MARK = re.compile("\ue000([0-9]+)\ue001")
_CONTEXT = 60
_SHORT = 12


def masked(secret: str) -> str:
    """The first four and the last two characters, of short ones half as many, and the length."""
    first, last = (4, 2) if len(secret) >= _SHORT else (2, 1)
    return f"{secret[:first]}..({len(secret)})..{secret[-last:]}"


@dataclass(frozen=True)
class Row:
    """One different secret of a repository, where it was first seen."""

    id: str
    """A digest of repository, kind and secret, cut to 32 bits."""
    kind: str
    secret: str
    place: str
    before: str
    after: str
    """Of the same line, with other secrets masked."""


@dataclass
class Scan:
    """What scanning a repository gave, by source and by kind."""

    repository: str
    texts: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    characters: Counter[str] = field(default_factory=Counter)
    replaced: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and source, each time."""
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The characters of these."""
    rows: dict[str, Row] = field(default_factory=dict)

    def run(self, texts: Iterable[Text]) -> Iterator[Text]:
        """Scan texts; gives each as it is after scrubbing, with the secrets masked."""
        for text in texts:
            assert text.source in SOURCES
            self.texts[text.source] += 1
            self.lines[text.source] += text.text.count("\n") + 1
            self.characters[text.source] += len(text.text)
            yield text._replace(text=self._scanned(text))

    def _scanned(self, text: Text) -> str:
        found: list[tuple[str, str]] = []

        def mark(kind: str, secret: str) -> str:
            found.append((kind, secret))
            return f"\ue000{len(found) - 1}\ue001"

        marked = replace_addresses(replace_secrets(text.text, mark), mark)
        if not found:
            return text.text

        def shown(part: str) -> str:
            return _MARK.sub(lambda match: f"[{found[int(match[1])][0]}]", part)

        for match in _MARK.finditer(marked):
            kind, secret = found[int(match[1])]
            self.replaced[kind, text.source] += 1
            self.lost[kind, text.source] += len(secret)
            name = blake2b(f"{self.repository}\0{kind}\0{secret}".encode(), digest_size=4).hexdigest()
            if name not in self.rows:
                before = shown(marked[max(match.start() - 400, 0) : match.start()].rpartition("\n")[2])[-_CONTEXT:]
                after = shown(marked[match.end() : match.end() + 400].partition("\n")[0])[:_CONTEXT]
                self.rows[name] = Row(name, kind, secret, redact_mined(text.place), before, after)
        return shown(marked)
