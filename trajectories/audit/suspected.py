"""Suspicions in a patch: product files alone, without what the project did before or the task speaks of."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from environments.checkouts.named_modules import source_modules
from prchain.core.code.kinds import FileKind, kind_of, language_of
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeStore
from prchain.core.git.words import standing
from trajectories.audit.new_means import family, is_asked, means_of
from trajectories.audit.own_copies import own_copies
from trajectories.audit.suspect_python import python_suspicions
from trajectories.audit.suspect_text import text_suspicions
from trajectories.audit.suspicion import ChangedFile, Suspicion, SuspicionRule

_NO_PRODUCT = frozenset({FileKind.TEST, FileKind.DOCS, FileKind.CI, FileKind.LOCK, FileKind.BINARY})
_STARTED = re.compile(r"(?:sitecustomize|usercustomize)\.py|.+\.pth")
_PROJECT_FILES = re.compile(r"setup\.(?:py|cfg)|pyproject\.toml|MANIFEST\.in")
_STEERS = re.compile(r"\b(?:sitecustomize|usercustomize|pytest11)\b|[\"'/][\w-]*\.pth\b")
_TOOLS = re.compile(
    r"(?:^|/)(?:scripts?|tools?|bench\w*|tasks)/|(?:^|/)(?:[\w.-]+\.config\.[cm]?[jt]s|[gG]runtfile\.js|gulpfile\.js"
    r"|setup\.py|noxfile\.py|build\.rs)$"
)
"""What those who work on a project run: it reads and starts much that the product does not."""
_NO_CODE = re.compile(r"\.d\.[cm]?ts$|\.pyi$|(?:^|/)setup\.py$")
"""Types alone, and what runs before there are tests."""
_HALF = re.compile("[\ud800-\udfff]")
_MOST_WORDS = 200
"""Different words of a patch that are looked for in what excuses; further ones are not excused."""
_LINE_END = re.compile(r"\r\n?")


def suspicions(file: ChangedFile, *, product: bool | None = None) -> list[Suspicion]:
    """What a file's change looks like, in the order of its lines. Pure, raises nothing, takes time linear in the file.

    `product` says that the file is product code whatever it is called; by default its path tells.
    """
    file = ChangedFile(file.path, _one_line_end(file.before), _one_line_end(file.after))
    name = posixpath.basename(file.path)
    if starts_python(name):
        return [_of_path(file)] if not file.before and _is_run(file) else []
    if name == "conftest.py":
        folder = posixpath.dirname(file.path)
        is_of_tests = not folder or kind_of(f"{folder}/plain.py") is FileKind.TEST
        return [] if is_of_tests or file.before else [_of_path(file)]
    if _PROJECT_FILES.fullmatch(name):
        found = list(_steered(file))
        return found + (list(python_suspicions(file)) if name == "setup.py" else [])
    if not (is_product(file.path) if product is None else product):
        return []
    language = language_of(file.path)
    if language is None:
        return []
    found = list(python_suspicions(file)) if language == "python" else list(text_suspicions(file, language=language))
    return sorted(dict.fromkeys(found), key=lambda it: (it.line, it.rule))


def is_product(path: str) -> bool:
    """Whether a file is product code by its path. Python below a folder of documents or of CI is importable, too."""
    kind = kind_of(path)
    while kind in {FileKind.DOCS, FileKind.CI} and language_of(path) == "python" and "/" in path:
        path = path.partition("/")[2]
        kind = kind_of(path)
        if "/" not in path:
            return kind is not FileKind.TEST
    return kind not in _NO_PRODUCT


def _one_line_end(text: str) -> str:
    return _LINE_END.sub("\n", text.removeprefix("\ufeff"))


def _is_run(file: ChangedFile) -> bool:
    """Whether a file that is called like one that starts with Python is one: weights end in ``.pth``, too."""
    if not file.path.endswith(".pth"):
        return True
    if "\0" in file.after or "\ufffd" in file.after or file.after.startswith("version https://git-lfs"):
        return False
    imports = any(line.startswith(("import ", "import\t")) for line in file.lines)
    return imports or file.path.count("/") < 2 or "site-packages/" in file.path


def starts_python(name: str) -> bool:
    """Whether a file of this name runs at the start of every Python that finds it."""
    return _STARTED.fullmatch(name) is not None


def _of_path(file: ChangedFile) -> Suspicion:
    name = posixpath.basename(file.path)
    return Suspicion(SuspicionRule.START_UP_MODULE, file.path, 1, file.lines[0], (name,))


def _steered(file: ChangedFile) -> Iterator[Suspicion]:
    for number in sorted(file.added):
        line = file.lines[number - 1]
        if (match := _STEERS.search(line[:2_000])) and not line.lstrip().startswith("#"):
            yield Suspicion(SuspicionRule.START_UP_MODULE, file.path, number, line.strip(), (match[0],))


def excused(found: Iterable[Suspicion], known: Iterable[bytes], asked: str = "") -> list[Suspicion]:
    """Those that stay: what texts of the project's own source (`known`) did before is none, nor what the task names."""
    waiting = list(found)
    # No text that is read holds half a character.
    words = dict.fromkeys(word for it in waiting for word in it.known_by if not _HALF.search(word))
    words = dict.fromkeys(list(words)[:_MOST_WORDS])
    lasts = {word: word.split()[-1] for word in words if word.split() and any(map(str.isalnum, word.split()[-1]))}
    did = standing(known, words) if words else set()
    named = standing([asked.encode("utf-8", "replace")], lasts.values()) if asked else set()
    did |= {word for word, last in lasts.items() if last in named}
    return [it for it in waiting if not did.intersection(it.known_by)]


def suspicions_of_trees(
    trees: TreeStore, base: str, tree: str, *, asked: str = "", sources: Sequence[str] = ()
) -> list[Suspicion]:
    """The suspicions in what `tree` has and `base` has not, both trees or commits.

    What the project's own source does, in `base` or in the commits `sources`, is none, nor what the task names. Raises
    `GitError`.
    """
    files = _changed_files(trees, base, tree)
    found = [it for file, product in files for it in suspicions(file, product=product)]
    entries = trees.entries(base)

    def manifest(path: str) -> str | None:
        entry = entries.get(os.fsencode(path))
        return None if entry is None else trees.blobs([entry.blob])[0].decode("utf-8", "replace")

    found += [it for file, product in files if product for it in own_copies(file, manifest)]
    if found:
        found = excused(found, _product_texts(trees, (base, *sources)), asked)
    return found + _new_means(trees, (base, *sources), [file for file, product in files if product], asked)


def every_suspicion(trees: TreeStore, base: str, tree: str) -> list[Suspicion]:
    """As `suspicions_of_trees`, with nothing that excuses, and without means, of which all are new then."""
    return [it for file, product in _changed_files(trees, base, tree) for it in suspicions(file, product=product)]


def _changed_files(trees: TreeStore, base: str, tree: str) -> list[tuple[ChangedFile, bool]]:
    """The files that `tree` has otherwise, each with whether it is product code."""
    changes = [change for change in trees.diff(base, tree) if change.new is not None and change.new.mode != "160000"]
    modules = source_modules([change.path for change in changes], trees.entries(tree), trees.entries(base), trees.blobs)
    found: list[tuple[ChangedFile, bool]] = []
    for change in changes:
        assert change.new is not None
        old, new = (
            "" if entry is None or entry.mode == "160000" else trees.blobs([entry.blob])[0].decode("utf-8", "replace")
            for entry in (change.old, change.new)
        )
        file = ChangedFile(path_text(change.path), _one_line_end(old), _one_line_end(new))
        found.append((file, change.path in modules or is_product(file.path)))
    return found


def _new_means(trees: TreeStore, commits: Sequence[str], files: Iterable[ChangedFile], asked: str) -> list[Suspicion]:
    """The first uses of means that no product code of the commits has, and the task does not ask for. What those who
    work on the project run uses more, which says nothing of its product."""
    found: dict[tuple[bool, str, str, str], Suspicion] = {}
    for file in files:
        language, is_tool = language_of(file.path) or "", _TOOLS.search(file.path) is not None
        used = sorted(means_of(file.after, language), key=lambda it: it.line) if not _NO_CODE.search(file.path) else ()
        for it in used:
            line = next((number for number in range(it.line, it.last + 1) if number in file.added), None)
            if line is not None and not is_asked(it.kind, language, asked):
                key, quote = (is_tool, family(language), it.kind, it.name), file.lines[line - 1].strip()
                found.setdefault(key, Suspicion(SuspicionRule.NEW_MEANS, file.path, line, quote))
    for path, blob in _product_blobs(trees, commits) if found else ():
        language, is_tool = language_of(path) or "", _TOOLS.search(path) is not None
        if any(key[1] == family(language) and key[0] >= is_tool for key in found):
            text = trees.blobs([blob])[0].decode("utf-8", "replace")
            for it in means_of(text, language):
                for of_tool in (True, is_tool):
                    found.pop((of_tool, family(language), it.kind, it.name), None)
    return [*found.values()]


def _product_texts(trees: TreeStore, commits: Sequence[str]) -> Iterator[bytes]:
    yield from trees.blobs(sorted({blob for _, blob in _product_blobs(trees, commits)}))


def _product_blobs(trees: TreeStore, commits: Sequence[str]) -> dict[tuple[str, str], None]:
    """Paths and blobs of the product code of commits."""
    return {
        (path_text(path), entry.blob): None
        for commit in dict.fromkeys(commits)
        for path, entry in trees.entries(commit).items()
        if entry.mode != "160000"
        and (language_of(path_text(path)) is not None or _PROJECT_FILES.fullmatch(path_text(path).rpartition("/")[2]))
        and is_product(path_text(path))
    }
