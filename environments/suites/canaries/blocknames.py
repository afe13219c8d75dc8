"""Tests proper of JavaScript and Rust that have another name in a run, as those of Python have
(`environments.suites.canaries.renames`). Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting, renamed_slot
from environments.suites.canaries.names import NewNames
from prchain.core.code.kinds import FileKind, kind_of


@dataclass(frozen=True, slots=True)
class NamedBlocks:
    """How the tests of a language have their names. `head` finds them, with the groups `before`, `name` and `after`;
    what `asked_for` finds may look at what tests are called."""

    head: re.Pattern[str]
    asked_for: re.Pattern[str]

    def renamed(self, path: str, text: str, found: PlantedFile, planting: Planting, names: NewNames) -> PlantedFile:
        """A file with canaries in which tests have other names, too, as `renames.renamed_python` gives them. `text` is
        the file's own."""
        own = [it["name"] for it in self.head.finditer(text)]
        if planting.slots is None:
            chosen = [] if self.asked_for.search(text) else [it for it in enumerate(own, 1) if it[1] in planting.lone]
        else:
            chosen = [it for it in enumerate(own, 1) if renamed_slot(path, it[0]) in planting.slots]
        said = Counter(it["name"] for it in self.head.finditer(found.text))
        others: dict[str, str] = {}
        renamed: list[Canary] = []
        for number, name in chosen:
            if said[name] == 1:
                others[name] = names.draw(planting.draw, planting.taken, name)
                planting.taken.add(others[name])
                renamed.append(Canary(renamed_slot(path, number), CanaryKind.TRUE, path, others[name], name))
        if not renamed:
            return found
        made = self.head.sub(lambda it: f"{it['before']}{others.get(it['name'], it['name'])}{it['after']}", found.text)
        return PlantedFile(made, (*found.canaries, *renamed))


_TITLE = re.compile(
    r"^(?P<before>[ \t]*(?:it|test)\(\s*(?P<quote>['\"`]))(?P<name>(?:(?!(?P=quote))[^\\\n]){1,200})"
    r"(?P<after>(?P=quote)\s*,)",
    re.M,
)
_PLAIN_TITLE = re.compile(r"(?! )(?!.* > )(?!.*\$\{)[^#\x00-\x1f]+(?<! )")
"""Such a title stands in any report as in the file."""
_TITLES_ASKED_FOR = re.compile(
    r"\bcurrentTest\b|\bfullTitle\b|\btitlePath\b|\bcurrentTestName\b|\bexpect\.getState\(|\btask\.(?:name|id)\b"
    r"|\btest\.(?:title|name|fn|parent)\b|\b(?:t|ctx|context)\.(?:name|fullName|task)\b|\brunnable\(|\bthis\.test\b"
)
_QUOTED = re.compile(rb"'([^'\\\n]{1,200})'|\"([^\"\\\n]{1,200})\"|`([^`\\]{1,200})`")
_CODE = (b".js", b".cjs", b".mjs", b".ts", b".cts", b".mts", b".jsx", b".tsx", b".json", b".yml", b".yaml")
_BY_TITLE = re.compile(
    r"--f?grep\b|--testNamePattern\b|--test-name-pattern\b|--test-skip-pattern\b"
    r"|\bmocha\b[^\"\n&|]{0,200} -[gf] |\b(?:jest|vitest)\b[^\"\n&|]{0,200} -t |\bava\b[^\"\n&|]{0,200} -m "
    r"|^[ \t]*[\"']?(?:f?grep|testNamePattern)[\"']?\s*:",
    re.M,
)
_JS_SETTINGS = re.compile(
    rb"(?:package\.json|\.mocharc\.\w+|(?:jest|vitest|vite|ava)\.config\.\w+|\.taprc|mocha\.opts)"
)


def lone_titles(texts: Iterable[tuple[bytes, bytes]]) -> frozenset[str]:
    """The titles that stand once among a tree's tests of JavaScript, and nowhere else as a text by itself or in a
    snapshot; none where settings choose tests by title, or what is shared by tests looks at their titles."""
    titles, quoted = Counter[str](), Counter[str]()
    kept: list[str] = []
    for path, text in texts:
        name = path.rpartition(b"/")[2]
        if b"node_modules/" in path or b"bench" in path:
            continue
        if b"snapshot" in path.lower() or name.endswith(b".snap"):
            kept.append(text.decode("utf-8", "replace"))
        elif name.endswith(_CODE) or _JS_SETTINGS.fullmatch(name):
            shown = text.decode("utf-8", "replace")
            found = [it["name"] for it in _TITLE.finditer(shown)]
            is_shared = not found and kind_of(path.decode("utf-8", "replace")) is FileKind.TEST
            if (_JS_SETTINGS.fullmatch(name) and _BY_TITLE.search(shown)) or (
                is_shared and _TITLES_ASKED_FOR.search(shown)
            ):
                return frozenset()
            titles.update(found)
            quoted.update(b"".join(it).decode("utf-8", "replace") for it in _QUOTED.findall(text))
    alone = (it for it, count in titles.items() if count == 1 and quoted[it] <= 1 and _PLAIN_TITLE.fullmatch(it))
    return frozenset(it for it in alone if not any(it in text for text in kept))


_FUNCTION = re.compile(r"(?P<before>#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?fn\s+)(?P<name>\w+)(?P<after>\s*\()")
_FUNCTIONS_ASKED_FOR = re.compile(
    r"thread::current\(|\bfunction_name!|\btype_name|\binsta::|\bassert_\w*snapshot!|\bexpect_file!|\bgoldie\b"
    r"|\bstd::any::"
)
_WORD = re.compile(rb"\w+")


def lone_functions(texts: Iterable[tuple[bytes, bytes]]) -> frozenset[str]:
    """The names of a tree's tests of Rust that stand in no other place: as words in its texts, and anywhere in its
    paths."""
    names = set[str]()
    said = Counter[bytes]()
    paths: list[str] = []
    for path, text in texts:
        paths.append(path.decode("utf-8", "replace"))
        said.update(_WORD.findall(text))
        if path.endswith(b".rs"):
            names.update(it["name"] for it in _FUNCTION.finditer(text.decode("utf-8", "replace")))
    alone = [it for it in names if said[it.encode()] == 1]
    places = "\n".join(paths)
    return frozenset(it for it in alone if it not in places)


JAVASCRIPT_NAMES = NamedBlocks(_TITLE, _TITLES_ASKED_FOR)
RUST_NAMES = NamedBlocks(_FUNCTION, _FUNCTIONS_ASKED_FOR)
