"""Entities: what a text names of a repository and of its runs, found by pattern.

The kinds are those of P2T's referential check (app. H): paths, dotted and defined names, identifiers, lines, errors,
flags and numbers. Every rule is linear in the text, whatever stands in it; none looks beyond a line, so a text names
what each of its lines names.

Names are compared as they are spelt: case counts, and NFKC is not applied. Git's paths are bytes, two spellings of one
identifier are two names to grep, and `unicodedata.normalize` takes time quadratic in a run of combining marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, lru_cache

from prchain.core.code.identifiers import NO_NAMES, identifiers, is_code_name
from prchain.core.code.kinds import endings
from prchain.core.code.lexing import KEYWORDS
from prchain.core.leaks.vocabulary import lists
from prchain.core.secrets.scrub import ADDRESSES, TERMINAL_CODES


class EntityKind(StrEnum):
    """What is named."""

    PATH = "path"
    """A file, or a folder under a root."""
    MODULE = "module"
    """Names joined by dots of which the first has a small letter: `os.path.join`."""
    QUALIFIED = "qualified"
    """Names joined by dots of which the first has a capital letter: `Backend.describe`."""
    DEFINED = "defined"
    """A name that the text defines: `def NAME`, `class NAME`, `fn NAME`."""
    NAME = "name"
    """Any identifier that is no stop word."""
    LINE = "line"
    """A line `12`, or lines `10-20`."""
    ERROR = "error"
    """A class of errors: `KeyError`."""
    FLAG = "flag"
    """An option of a command with its dashes; one letter alone (`-n`) tells nothing."""
    NUMBER = "number"
    """A whole number of three digits or more."""


ALL_KINDS = frozenset(EntityKind)

EDGE_KINDS = frozenset(
    {
        EntityKind.PATH,
        EntityKind.MODULE,
        EntityKind.QUALIFIED,
        EntityKind.DEFINED,
        EntityKind.ERROR,
        EntityKind.NAME,
    }
)
"""Kinds by which one step can be said to use what another has shown. Take names with `defined`, so that no plain word
joins two steps; lines, flags and small numbers meet by chance."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing that a text names; `text` is normalized as its kind says."""

    kind: EntityKind
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a file that a text points at, from 1; of one line both are the same."""

    path: str
    first: int
    last: int


_SHORTEST_NAME = 3
_LONGEST_NAME = 200
_LONGEST_PATH = 300
"""Characters; what is longer is generated, or hostile, and no entity."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DATA_ENDINGS = _words(
    "json json5 jsonl yaml yml toml cfg ini md mdx rst adoc txt csv tsv xsd svg png jpg jpeg gif pdf ipynb parquet pkl "
    "npy npz gz whl sqlite3 po pot tmpl lean xlsx pem"
)
_ENDINGS_IN_FOLDERS = _words(
    "m t f s r y d R log lock env conf properties in out map diff patch zip tar pickle db bak tmp data key less fish "
    "liquid metal mustache sc make template text so bin"
)
"""Endings that are also names of attributes (`np.log`, `threading.Lock.lock`): files only behind a folder."""
_FILES = _words(
    "Makefile GNUmakefile makefile Dockerfile Containerfile Jenkinsfile Vagrantfile Rakefile Gemfile Procfile Pipfile "
    "Justfile justfile Brewfile Podfile Tiltfile Snakefile SConstruct SConscript CODEOWNERS PKGBUILD go.mod go.sum "
    "go.work Cargo.lock poetry.lock uv.lock pdm.lock yarn.lock Gemfile.lock Pipfile.lock composer.lock flake.lock "
    "MANIFEST.in requirements.in meson.build"
)
_FILES_IN_FOLDERS = _words(
    "README LICENSE LICENCE COPYING NOTICE CHANGELOG CHANGES NEWS AUTHORS VERSION BUILD WORKSPACE"
)
_DOTFILE = re.compile(
    r"\.(?:[a-z][\w-]{0,30}(?:rc|ignore)|env|flake8|editorconfig|gitattributes|gitmodules|mailmap|python-version|nvmrc)"
)
_PRODUCTS = _words(
    "node.js next.js vue.js react.js express.js three.js d3.js nuxt.js ember.js backbone.js angular.js chart.js p5.js"
)
_TOPS = _words("workspace testbed opt usr home")
"""Folders at the root of a file system in which any path counts, also one without an ending (P2T, app. H)."""
_DOMAINS = _words("com org edu gov")
_MORE_DOMAINS = _DOMAINS | _words("net io dev")

_ITSELF = _words("self cls this super")
"""What stands for another object in each class, and so tells nothing."""
_ABBREVIATIONS = _words("e.g i.e a.k.a a.m p.m w.r.t c.f n.b u.s u.k u.s.a ph.d")
_OPENERS = _words(
    "the this that these those there it if then when while we i you here now next let but and also however for in as "
    "after before so what why how please note finally first see yes no ok thanks"
)
"""Words that begin a sentence: `done.Next` is two of them without a blank."""

_HOLES = frozenset("*?{$[<%")
"""What a pattern or a variable begins with: the name before it is not whole."""

_CHUNK = re.compile(
    r"(?<![\w.+@~/-])(?:[\w+@~-]*+[./][\w.+@~/-]*+|(?:"
    + "|".join(sorted(name for name in _FILES if "." not in name))
    + r")(?![\w.+@~/-]))"
)
"""What may be a path: characters of paths with a dot or a slash among them, or a file known by its name."""
_LINE_NUMBERS = r"([0-9]{1,7})(?:(?:[ \t]?[-\u2013\u2014][ \t]?|[ \t](?:to|through)[ \t])L?([0-9]{1,7}))?(?!\w)"
_BEHIND_PATH = re.compile(
    r"(?:`?:|#L|\(|[\"'`]{0,2}\)?[,:]?[ \t]{0,2}(?:(?:at|on|around|near)[ \t])?[(\[]?"
    r"(?:[Ll]ines?[ \t]{1,2}#?|L))" + _LINE_NUMBERS
)
"""`x.py:12:5`, `x.py:10-20`, `x.py#L10-L20`, `x.ts(12,5)`, `"x.py", line 12`, `x.sh: line 12`, `x.py (lines 10-20)`."""
_CONTEXT = re.compile(r"\.\w+-([0-9]{1,7})-")
"""Behind the path of a line that `grep -A` shows."""
_DIFF_HEAD = re.compile(r"(?m)^(?:(?:---|\+\+\+) \"?(\S+)|diff --git \"?(\S+) \"?(\S+))")
_IN_DIFF = re.compile(r"[abciow]/")
"""Git's prefixes of the two sides of a diff, those of `diff.mnemonicPrefix` among them."""

_URL_MARK = re.compile(r"://|www\.")
"""What every URL has: to look for it first spares a look at each word."""
_URL = re.compile(r"(?:(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]{1,15}://|(?<![\w.])www\.)[^\s<>\"'`\\{}|)\]]*+")
_PERMALINK = re.compile(r"/(?:blob|blame|edit|raw)/[^/?#]+/([^?#]+)(?:\?[^#]*)?(#L[\dL-]+)?")
"""The end of a link to a file of a commit, as GitHub and its kind write them."""
_LONGEST_SCHEME = 16
_LONGEST_URL = 1000
_FILE_URL = re.compile(r"(?<![A-Za-z0-9])file://(?=/)")
_WINDOWS = re.compile(r"(?<!\w)[A-Za-z]:\\[^\s\"'<>|*?:]*+")
_ESCAPED_DOT = re.compile(r"(?<!\\)\\++\.")
_ESCAPE = re.compile(r"(?<!\\)\\++[nrtbwsd]")
_PATTERN = re.compile(r"(?<!\w)\w++(?<=_)(?=\*)|(?<=\*)_\w++")
"""The pieces of a pattern of names: `test_*`, `*_test`."""
_CONTRACTION = re.compile(r"n['\u2019]t\b")

_CHAIN = re.compile(r"(?<!\w)(?<!\w\.)(?<!\w::)[^\W\d]\w*+(?:(?:\.|::)[^\W\d]\w*+)++")
_DEFINES = re.compile(
    r"(?<![\w.-])(?:(?:def|defp|defmacro|defn|fn)[ \t]{1,8}(?:self\.)?|func[ \t]{0,8}\([^()\n]{0,120}\)[ \t]{0,8})"
    r"([^\W\d]\w*+)"
)
_MAY_DEFINE = re.compile(
    r"(?<![\w.-])(?:(class|struct|interface|enum|trait|function|func|protocol|macro_rules!)"
    r"|fun|sub|record|object|module|mod|namespace|union|type)(?:[ \t]{1,8}|[ \t]?\*[ \t]?)([^\W\d]\w*+)"
    r"(\(|<|[ \t]?\{|[ \t]=|[ \t](?:struct|interface|func)\b)?"
)
"""Words of which most are English, too: the name behind one counts where it looks like one, or where code goes on."""
_LINE = re.compile(r"(?<!\w)[Ll]ines?[ \t]{1,4}(?:number[ \t]|no\.?[ \t])?#?" + _LINE_NUMBERS + r"(?!\.[0-9])")
_SHORT_LINE = re.compile(r"(?<![\w./-])(#?)L" + _LINE_NUMBERS)
_ERROR = re.compile(r"[A-Z]\w*(?:Error|Exception|Warning)")
_FLAG = re.compile(
    r"(?:(?m:^)--|(?<=[\s\"'`(\[=,|])--|(?<=[ \t\"'`|])-)([A-Za-z][A-Za-z0-9]*+(?:[-_][A-Za-z0-9]++)*+)(?!\w)"
)
"""One dash at the beginning of a line is that of a diff or a list."""
_NUMBER = re.compile(r"(?<!\w)(?<![0-9]\.)[0-9]{3,}+(?!\w)(?!\.[0-9])")


def entities(
    text: str,
    *,
    roots: Collection[str] = (),
    kinds: Collection[EntityKind] = ALL_KINDS,
    defined: Collection[str] | None = None,
) -> frozenset[Entity]:
    """What a text names, of the given kinds.

    A path under one of the `roots` (absolute folders, such as the workspace) is relative to it. With `defined`, names
    are only those that have the shape of code or stand in `defined`. The words of a path are no names, and what stands
    in a URL is nothing, save the file that a permalink (`.../blob/main/x.py#L12`) points at. Escapes of JSON have to
    be resolved before. Raises `ValueError` for a root that is not absolute.
    """
    scanned = _Scanned(text, roots)
    found: set[Entity] = set()
    for kind in frozenset(kinds):
        values = set(_FOUND[kind](scanned))
        if kind is EntityKind.NAME and defined is not None:
            known = frozenset(defined)
            values = {name for name in values if name in known or is_code_name(name)}
        found.update(Entity(kind, value) for value in values)
    return frozenset(found)


def places(text: str, roots: Collection[str] = ()) -> list[Place]:
    """The lines of files that a text points at, each once, in the order they stand: of listings by `grep -n`, of
    tracebacks, of compilers, and of sentences (`x.py`, lines 10-20). Raises `ValueError` as `entities` does."""
    return list(dict.fromkeys(_Scanned(text, roots).places))


def normalized_path(path: str, roots: Collection[str] = (), *, in_diff: bool = False) -> str:
    """A path as it is compared: relative to a root that it lies under, the innermost; without `./`, `..` and empty
    parts.

    A `..` at the beginning falls away: what remains is an end of the path, whose beginning is not known. `in_diff` says
    that the path stands in the head of a diff, with git's prefix (`a/`, `b/`); elsewhere these are folders as any.
    Doing it twice changes nothing. Raises `ValueError` for a root that is not absolute.
    """
    known_roots = _root_parts(tuple(roots))
    if in_diff and _IN_DIFF.match(path):
        path = path[2:]
    parts = _parts(path)
    if not path.startswith("/"):
        return "/".join(parts)
    for root in known_roots:
        if parts[: len(root)] == root:
            return "/".join(parts[len(root) :])
    return "/" + "/".join(parts)


def is_file_ending(ending: str) -> bool:
    """Whether files are known by an ending, with or without a folder."""
    return ending in _endings() or ending in _ENDINGS_IN_FOLDERS


def is_stop_word(word: str) -> bool:
    """Whether a word is no name, however it is used: a keyword of a language, or an English word that carries no
    subject."""
    return word in _stop_words() or word.lower() in lists().function_words


@cache
def _stop_words() -> frozenset[str]:
    return KEYWORDS | NO_NAMES


@cache
def _endings() -> frozenset[str]:
    """Those of files that are known as such without a folder."""
    return (endings() | _DATA_ENDINGS) - _ENDINGS_IN_FOLDERS


def _is_name(word: str) -> bool:
    if not _SHORTEST_NAME <= len(word) <= _LONGEST_NAME or not word.strip("_"):
        return False
    return not is_stop_word(word) and not (word[0] == "L" and word[1:].isdigit())


class _Scanned:
    """One text, read once: its paths, and the rest of it."""

    def __init__(self, text: str, roots: Collection[str]) -> None:
        self._text = _plain(text)
        self._roots = tuple(roots)
        _root_parts(self._roots)  # raises also where the text names no path
        self._paths: dict[tuple[str, bool], str | None] = {}
        self.paths: set[str] = set()
        self._pointed: dict[tuple[str, str, str | None], None] = {}
        """Path, first and last line of each place, as they are spelt, in order."""
        self.rest = _bare(" ".join(self._read()))

    @cached_property
    def places(self) -> list[Place]:
        """Where the text points at lines of its paths."""
        pointed = ((path, _lines(first, last)) for path, first, last in self._pointed if path)
        return [Place(path, *lines) for path, lines in pointed if lines]

    @cached_property
    def names(self) -> set[str]:
        return {name for name in set(identifiers(self.rest)) if _is_name(name)}

    @cached_property
    def chains(self) -> set[str]:
        return {chain for match in _CHAIN.finditer(self.rest) if (chain := _chain(self.rest, match))}

    def _read(self) -> Iterator[str]:
        """The text between its paths; collects these."""
        text, at = self._text, 0
        heads = {start for match in _DIFF_HEAD.finditer(text) for start in map(match.start, (1, 2, 3))}
        for match in _CHUNK.finditer(text):
            start, end = _trimmed(text, *match.span())
            if not 0 < end - start <= _LONGEST_PATH or not _may_begin(text, start, end):
                continue
            path = self._path(text[start:end], start in heads)
            if path is None:
                context = self._context(text, start, end)
                if context is None:
                    continue
                path, number, end = context
                self._pointed[path, number, None] = None
            elif (behind := _BEHIND_PATH.match(text, end)) is not None:
                self._pointed[path, behind[1], behind[2]] = None
            elif text[end : end + 1] in _HOLES and text[end - 1] != "/" and not _is_file(path):
                path = path.rpartition("/")[0]
            elif text[end : end + 1] == "(" and "/" not in path:
                continue
            yield text[at:start]
            at = end
            if path:
                self.paths.add(path)
        yield text[at:]

    def _path(self, chunk: str, in_diff: bool) -> str | None:
        key = (chunk, in_diff)
        if key not in self._paths:
            self._paths[key] = _path(chunk, self._roots, in_diff)
        return self._paths[key]

    def _context(self, text: str, start: int, end: int) -> tuple[str, str, int] | None:
        """Path, line and end of what `grep -A` puts before a line that it shows."""
        if start and text[start - 1] != "\n":
            return None
        for match in _CONTEXT.finditer(text, start, end):
            path = self._path(text[start : match.start(1) - 1], False)
            if path:
                return path, match[1], match.end()
        return None


def _plain(text: str) -> str:
    """A text without colours, links and addresses, and with escaped dots as those that they stand for."""
    if "\x1b" in text:
        text = TERMINAL_CODES.sub("", text)
    if "://" in text or "www." in text:
        text = _without_urls(_FILE_URL.sub("", text) if "file://" in text else text)
    if "@" in text:
        text = ADDRESSES.sub(" ", text)
    if ":\\" in text:
        text = _WINDOWS.sub(" ", text)
    if "\\." in text:
        text = _ESCAPED_DOT.sub(".", text)
    return text


def _bare(rest: str) -> str:
    """The rest of a text without what is no word: escapes, patterns of names, and the halves of contractions."""
    if "\\" in rest:
        rest = _ESCAPE.sub(" ", rest)
    if "_*" in rest or "*_" in rest:
        rest = _PATTERN.sub(" ", rest)
    return _CONTRACTION.sub(" ", rest)


def _without_urls(text: str) -> str:
    """The text without its URLs, but with the files that permalinks name."""
    parts: list[str] = []
    at = 0
    for mark in _URL_MARK.finditer(text):
        start = max(at, mark.start() - _LONGEST_SCHEME)
        url = _URL.search(text, start, mark.end()) if mark.start() >= at else None
        url = None if url is None else _URL.match(text, url.start())
        if url is not None:
            parts += [text[at : url.start()], _linked(url)]
            at = url.end()
    return "".join([*parts, text[at:]])


def _linked(url: re.Match[str]) -> str:
    """What a URL says of the repository: the file of a permalink."""
    link = _PERMALINK.search(url[0]) if len(url[0]) <= _LONGEST_URL else None
    return f" {link[1]}{link[2] or ''} " if link else " "


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A chunk without the marks of diffs, options and mentions before it, and without those of sentences behind it."""
    if text[start] in "+-":
        if start == 0 or text[start - 1] == "\n":
            while start < end and text[start] in "+-":
                start += 1
        elif text[start + 1 : start + 2].isalpha() and text[start + 2 : start + 3] == "/":
            start += 2
        else:
            return start, start
    elif text[start] == "@" and text.find("/", start, end) < 0:
        start += 1
    while start < end and text[end - 1] in ".-":
        end -= 1
    return start, end


def _may_begin(text: str, start: int, end: int) -> bool:
    """Whether a path can begin here, by what stands around: not the second half of one with a variable, a pattern or a
    backslash in it, and neither behind a drive's letter nor with the port of a host."""
    before = text[max(start - 3, 0) : start]
    last = before[-1:]
    if last in {"\\", "$", "%", "}"} or (last == "*" and "*" not in text[end : end + 3]):
        return False
    if text[start] in "/." and (last in {")", "]", "*"} or (last == ">" and before[-2:-1].isalpha())):
        return False
    if last == ":":
        drive = text[start] == "/" and before[-2:-1].isalpha() and not _is_word(before[-3:-2])
        return not drive and not text[start:end].partition("/")[0].isdigit()
    return True


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _path(chunk: str, roots: tuple[str, ...], in_diff: bool) -> str | None:
    """The path that a chunk of text is, normalized: empty for a root, None for what is no path."""
    path = normalized_path(chunk, roots, in_diff=in_diff)
    if chunk[0] == "/" != path[:1]:
        return path
    if chunk.startswith("//"):  # a comment's slashes
        path = path[1:]
    first, slash, _ = path.removeprefix("/").partition("/")
    if path[:1] == "/" and slash and first in _TOPS:
        return path
    if chunk[-1] == "/" or (path[:1] != "/" and _is_elsewhere(first, bool(slash))):
        return None
    return path if _is_file(path) else None


def _is_elsewhere(first: str, is_folder: bool) -> bool:
    """Whether the first part of a relative path is a host's or a user's."""
    if not is_folder:
        return first[:1] == "~"
    return "." in first and first.rpartition(".")[2] in _MORE_DOMAINS


def _is_file(path: str) -> bool:
    """Whether a path has the name of a file."""
    _, in_folder, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if name in _FILES or _DOTFILE.fullmatch(name) or (in_folder and name in _FILES_IN_FOLDERS):
        return True
    if not dot or not any(map(str.isalnum, stem)):
        return False
    if in_folder:
        return ending in _endings() or ending in _ENDINGS_IN_FOLDERS
    if len(ending) == 1 and (len(stem) == 1 or "." in stem):  # `a.b.c` is more often a name than a file
        return False
    return ending in _endings() and stem not in _ITSELF and name.lower() not in _PRODUCTS


def _parts(path: str) -> list[str]:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return parts


@lru_cache(maxsize=256)
def _root_parts(roots: tuple[str, ...]) -> tuple[list[str], ...]:
    """The parts of each root, the longest first; the root of the file system is none."""
    for root in roots:
        if not root.startswith("/"):
            raise ValueError(f"a root is an absolute folder, not {root!r}")
    return tuple(sorted(filter(None, map(_parts, roots)), key=len, reverse=True))


def _lines(first: str, last: str | None) -> tuple[int, int] | None:
    """First and last line; of what runs backwards the first alone. There is no line 0."""
    begin, end = int(first), int(last or first)
    return (begin, max(begin, end)) if begin else None


def _line_texts(scanned: _Scanned) -> Iterator[str]:
    for place in scanned.places:
        yield _line_text(place.first, place.last)
    spans = [(match[1], match[2]) for match in _LINE.finditer(scanned.rest)]
    spans += [
        (match[2], match[3])
        for match in _SHORT_LINE.finditer(scanned.rest)
        if match[1] or match[3] or len(match[2]) > 1  # L1 and L2 are norms, or caches
    ]
    for first, last in spans:
        lines = _lines(first, last)
        if lines:
            yield _line_text(*lines)


def _line_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _chain(text: str, match: re.Match[str]) -> str:
    """The dotted name of a match, normalized; empty for what is none."""
    name = match[0].replace("::", ".")
    if len(name) > _LONGEST_NAME:
        return ""
    while name[:4].lower() in {"e.g.", "i.e."}:
        name = name[4:]
    parts = name.split(".")
    while parts and parts[0] in _ITSELF:
        del parts[0]
    name = ".".join(parts)
    if len(parts) < 2 or name.lower() in _ABBREVIATIONS:
        return ""
    after = text[match.end() : match.end() + 1]
    if after == "(":
        return name
    last = parts[-1]
    if last in _DOMAINS or name.lower() in _PRODUCTS or _is_file(match[0]):
        return ""
    sentence = len(parts) == 2 and last.istitle() and last.lower() in _OPENERS
    return "" if sentence and after != "`" else name


def _defined(scanned: _Scanned) -> Iterator[str]:
    for match in _DEFINES.finditer(scanned.rest):
        yield match[1]
    for match in _MAY_DEFINE.finditer(scanned.rest):
        if match[3] or (match[1] and (match[2][0].isupper() or is_code_name(match[2]))):
            yield match[2]


def _errors(scanned: _Scanned) -> Iterator[str]:
    return (name for name in scanned.names if _ERROR.fullmatch(name))


def _numbers(scanned: _Scanned) -> Iterator[str]:
    return (
        number for number in set(_NUMBER.findall(scanned.rest)) if len(number) <= _LONGEST_NAME and number.strip("0")
    )


def _flags(scanned: _Scanned) -> Iterator[str]:
    for match in _FLAG.finditer(scanned.rest):
        if 2 <= len(match[1]) <= _LONGEST_NAME:
            yield match[0]


_FOUND: Mapping[EntityKind, Callable[[_Scanned], Iterable[str]]] = {
    EntityKind.PATH: lambda scanned: scanned.paths,
    EntityKind.MODULE: lambda scanned: (chain for chain in scanned.chains if not chain[0].isupper()),
    EntityKind.QUALIFIED: lambda scanned: (chain for chain in scanned.chains if chain[0].isupper()),
    EntityKind.DEFINED: lambda scanned: filter(_is_name, _defined(scanned)),
    EntityKind.NAME: lambda scanned: scanned.names,
    EntityKind.LINE: _line_texts,
    EntityKind.ERROR: _errors,
    EntityKind.FLAG: _flags,
    EntityKind.NUMBER: _numbers,
}
