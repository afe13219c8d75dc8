"""The role of a file in a change, by its path alone: source, test, docs and the rest.

The outermost folder with a meaning decides: what lies in ``tests/vendor/`` is test, in ``vendor/x/tests/`` vendored.
Where no folder has one, the file's name decides, by the conventions of its own language's test runners and tools. A
word inside another is no convention: `latest.py`, `contest.py` and `attestation/` are source.

Where conventions leave it open: benchmarks are tests (they exercise the code, and Cargo builds them beside its tests),
examples and a root ``website/`` are docs, notebooks too; snapshots are tests. A folder ``testing`` is a test folder
only at the root: below it ships to users (numpy, pandas, sympy and polars have such a package). Folders are compared
without case, names of files with it, save where the tools themselves do not care (README, LICENSE, Makefile).
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

_CACHED = 1 << 16


class FileKind(StrEnum):
    """The role of a file in a change."""

    SOURCE = "source"
    TEST = "test"
    DOCS = "docs"
    LOCK = "lock"
    GENERATED = "generated"
    VENDORED = "vendored"
    CI = "ci"
    CONFIG = "config"
    DATA = "data"
    BINARY = "binary"


class _Language(NamedTuple):
    """A language: what `identify` calls it, and how its test runners find test files by name."""

    tags: tuple[str, ...]
    tests: str = ""
    """Of a file's name, whole."""


_JS_TESTS = r"(?:.+\.(?:test|tests|spec|test-d|cy|e2e|bench)|.+[-_](?:test|spec)|tests?)\.[cm]?[jt]sx?"
_C_TESTS = (
    r"test_.+\.\w+|.+_(?:test|tests|unittest|unittests|gtest|browsertest)\.\w+|[a-z]+-tests?\.\w+"
    r"|(?:.*[a-z0-9])Tests?\.\w+"
)

LANGUAGES: dict[str, _Language] = {
    # pytest: https://docs.pytest.org/en/stable/explanation/goodpractices.html ; Django: tests.py
    "python": _Language(("python", "pyi"), r"test_.*\.pyi?|.+_test\.py|tests\.py|conftest\.py"),
    "cython": _Language(("cython",), r"test_.*\.pyx"),
    # Jest, Vitest, Mocha, AVA, tsd, Cypress; Ember and old React write name-test.js, Deno name_test.ts
    "typescript": _Language(("ts", "tsx"), _JS_TESTS),
    "javascript": _Language(("javascript", "jsx"), _JS_TESTS),
    "vue": _Language(("vue",)),
    "svelte": _Language(("svelte",)),
    "astro": _Language(("astro",)),
    # Inline `mod tests` stays with its source; a module file of that name is compiled for tests only
    "rust": _Language(("rust",), r"tests?\.rs|.+_tests?\.rs|test_.+\.rs"),
    "go": _Language(("go",), r".+_test\.go"),
    # Surefire's and Failsafe's default patterns, below src/main never
    "java": _Language(("java",), r"(?:.*[A-Za-z0-9])(?:Test|Tests|TestCase)\.java|.*[a-z0-9]IT(?:Case)?\.java"),
    "kotlin": _Language(("kotlin",), r"(?:.*[A-Za-z0-9])(?:Test|Tests|Spec)\.kt|.*[a-z0-9]IT\.kt"),
    "scala": _Language(("scala",), r"(?:.*[A-Za-z0-9])(?:Test|Tests|Spec|Suite)\.scala"),
    "groovy": _Language(("groovy",), r"(?:.*[A-Za-z0-9])(?:Test|Tests|Spec)\.groovy"),
    "cuda": _Language(("cuda",), _C_TESTS),
    "objective-c": _Language(("objective-c", "objective-c++"), r"(?:.*[A-Za-z0-9])Tests?\.mm?"),
    "c++": _Language(("c++",), _C_TESTS),
    "c": _Language(("c",), _C_TESTS),
    "c#": _Language(("c#",), r"(?:.*[A-Za-z0-9])Tests?\.cs"),
    "f#": _Language(("f#",), r"(?:.*[A-Za-z0-9])Tests?\.fs"),
    "ruby": _Language(("ruby",), r".+_(?:spec|test)\.rb|test_.+\.rb|(?:spec|test)_helper\.rb"),
    "php": _Language(("php",), r"(?:.*[A-Za-z0-9])Test\.php"),
    "swift": _Language(("swift",), r"(?:.*[A-Za-z0-9])Tests?\.swift"),
    "dart": _Language(("dart",), r".+_test\.dart"),
    "elixir": _Language(("elixir",), r".+_test\.exs|test_helper\.exs"),
    "erlang": _Language(("erlang",), r".+_(?:SUITE|tests)\.erl"),
    "haskell": _Language(("haskell",), r".*Spec\.hs|.*Test\.hs"),
    "ocaml": _Language(("ocaml",), r"test_.+\.mli?|.+_test\.mli?"),
    "clojure": _Language(("clojure", "clojurescript"), r".+_test\.clj[cs]?"),
    "lua": _Language(("lua", "luau"), r".+_(?:spec|test)\.lua"),
    "julia": _Language(("julia",), r"runtests\.jl"),
    "r": _Language(("r",), r"test[-_].+\.[rR]"),
    "perl": _Language(("perl",)),
    "zig": _Language(("zig",)),
    "nim": _Language(("nim",)),
    "fortran": _Language(("fortran",)),
    "solidity": _Language(("solidity",), r".+\.t\.sol"),
    "shell": _Language(("shell", "bash", "zsh", "fish", "bats"), r".+\.bats|.+[-_]test\.sh|test[-_].+\.sh"),
    "powershell": _Language(("powershell",), r".+\.Tests\.ps1"),
    "batch": _Language(("batch",)),
    "assembly": _Language(("asm",)),
    "sql": _Language(("sql",)),
    "html": _Language(("html", "jinja", "handlebars", "ejs", "erb", "twig", "mustache", "liquid", "pug", "nunjucks")),
    "css": _Language(("css", "scss", "sass", "less", "stylus")),
    "graphql": _Language(("graphql",)),
    "protobuf": _Language(("proto",)),
    "terraform": _Language(("terraform", "hcl")),
    "nix": _Language(("nix",)),
    "emacs-lisp": _Language((), r".+-tests?\.el"),
    "vim": _Language(("vim",)),
    "grammar": _Language(()),
    "xslt": _Language(("xsl",)),
}

_MORE_ENDINGS = {
    "mts": "typescript",
    "cts": "typescript",
    "pxi": "cython",
    "pyw": "python",
    "phpt": "php",
    "t": "perl",
    "pm": "perl",
    "j2": "html",
    "hbs": "html",
    "tpl": "html",
    "ml": "ocaml",
    "mli": "ocaml",
    "m": "objective-c",
    "mm": "objective-c",
    "f90": "fortran",
    "f": "fortran",
    "el": "emacs-lisp",
    "xsh": "shell",
    "metal": "c++",
    "ipp": "c++",
    "tcc": "c++",
    "g4": "grammar",
    "lark": "grammar",
    "pest": "grammar",
    "y": "grammar",
    "ebnf": "grammar",
}
"""Endings that `identify` does not know, or knows as something else."""

_JVM = {"java", "kotlin", "scala", "groovy"}

# Folders, by one component. A whole word: `tests`, `integration_tests`, `tests-e2e`, never `attestation` or `latest`.
_TEST_FOLDER = re.compile(
    r"tests|(?:.+[-_.])?tests(?:[-_.].+)?|test|unit[-_]?tests?|integration[-_]?test|functional[-_]?test"
    r"|androidtest\w*|integrationtest|testfixtures|jvmtest|commontest|jstest|nativetest|iostest"
    r"|(?:.+\.)(?:unit|integration|functional)?tests?|test[-_]?data|test[-_]?cases|test[-_]?fixtures"
    r"|test[-_]?resources|__tests?__|__mocks__|__snapshots__|__fixtures__|__testfixtures__|e2e|cypress|specs"
    r"|jstests|testsuite|test[-_]suite"
)
_TEST_ROOTS = {"testing", "spec", "t"}
_BENCHMARKS = {"benches", "bench", "benchmarks", "benchmark", "asv_bench"}
_DOC_FOLDERS = {"docs", "doc", "documentation", "examples", "example", "demos", "demo", "tutorials", "cookbook", "man"}
_DOC_ROOTS = {"website", "blog", "gallery"}
_FRAGMENTS = {
    "changelog",
    "changelog.d",
    "changelogs",
    "changelog_unreleased",
    "changes",
    "changes.d",
    "newsfragments",
    "news",
    "news.d",
    "upcoming_changes",
    "releasenotes",
    "release_notes",
    "release-notes",
    "whatsnew",
    ".changeset",
    ".changes",
    ".chronus",
}
_VENDORED = {
    "vendor",
    "vendors",
    "vendored",
    "vendored_packages",
    "_vendor",
    "_vendored",
    "third_party",
    "third-party",
    "thirdparty",
    "3rdparty",
    "node_modules",
    "bower_components",
    "extern",
    "externals",
    "godeps",
    "pods",
    ".yarn",
    "site-packages",
}
_GENERATED = {"generated", "__generated__", "_generated", "_antlr", "autogenerated", "auto_generated"}
_CI_ROOTS = {
    ".github",
    ".gitlab",
    ".circleci",
    ".azure-pipelines",
    "azure-pipelines",
    ".buildkite",
    ".travis",
    ".ci",
    "ci",
    ".jenkins",
    ".woodpecker",
    ".devcontainer",
    ".tekton",
    ".teamcity",
    ".drone",
    ".semaphore",
    ".cirrus",
    ".gitea",
    ".forgejo",
    ".kokoro",
    "appveyor",
}
_CONFIG_FOLDERS = {".vscode", ".idea", ".cargo", ".config", ".husky", ".mvn", ".cursor", ".claude"}

_SHIPPED_TESTS = ("django/test/",)
"""Folders of test conventions' names that are part of what the project ships."""

# Files, by their names.
_LOCK = re.compile(
    r"(?i)package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.ya?ml|yarn\.lock|bun\.lockb?|deno\.lock|go\.sum"
    r"|go\.work\.sum|gradle\.lockfile|package\.resolved|cartfile\.resolved|packages\.lock\.json"
    r"|[\w.-]*conda-lock\.ya?ml|.+\.lock|.+\.lock\.(?:json|hcl|ya?ml)"
)
_GENERATED_NAME = re.compile(
    r".+\.pb\.(?:go|cc|h|rs|dart|swift)|.+\.pb\.gw\.go|.+_pb2(?:_grpc)?\.pyi?|.+_pb\.(?:js|d\.ts|ts|rb)|.+\.min\.(?:js|css|mjs)"
    r"|.+\.(?:js|css|mjs|ts)\.map|.+[._]generated\.\w+(?:\.\w+)?|.+\.(?:g|freezed|mocks)\.dart"
    r"|.+\.(?:g|[Dd]esigner)\.cs|zz_generated.*|.+\.gen\.(?:go|ts|tsx|rs)|bindata\.go|parsetab\.py|lextab\.py"
    r"|parser\.out|.+\.(?:sha1|sha256|sha512|md5)"
)
_CI_NAME = re.compile(
    r"(?i)\.gitlab-ci\.ya?ml|\.travis\.ya?ml|\.?appveyor\.ya?ml|azure-pipelines.*\.ya?ml|jenkinsfile|bors\.toml"
    r"|\.pre-commit-config\.ya?ml|\.drone\.ya?ml|\.cirrus\.(?:ya?ml|star)|\.?codecov\.ya?ml|\.?readthedocs\.ya?ml"
    r"|\.?renovate\.json5?|\.renovaterc(?:\.json)?|\.mergify\.ya?ml|\.woodpecker\.ya?ml|\.git-blame-ignore-revs|codeowners"
    r"|netlify\.toml|vercel\.json|\.gitpod\.ya?ml|\.lgtm\.ya?ml|\.landscape\.ya?ml|\.coveralls\.ya?ml|circle\.ya?ml"
    r"|\.codeclimate\.ya?ml|\.semaphore\.ya?ml|\.sourcery\.ya?ml|\.deepsource\.toml|dependabot\.ya?ml|cloudbuild\.ya?ml"
)
_DOCS_NAME = re.compile(
    r"(?i)(?:readme|changelog|changes|history|news|authors|contributors|contributing|license|licence|copying|notice"
    r"|maintainers|security|code_of_conduct|todo|install|faq|release[-_]?notes?|acknowledge?ments|patents|credits"
    r"|thanks)(?:[-._][\w.-]*)?|citation\.cff|citation|mkdocs\.ya?ml|\.mailmap|\.all-contributorsrc|llms(?:-full)?\.txt"
    r"|.+\.(?:md|markdown|mdx|rst|rest|adoc|asciidoc|ipynb|tex|bib|qmd|1|3|7|org|textile)"
)
_CONFIG_NAME = re.compile(
    r"(?i)pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|noxfile\.py|pytest\.ini|mypy\.ini|ruff\.toml|manifest\.in|pipfile"
    r"|(?=[\w.-]*requirements)[\w.-]+\.(?:txt|in)|constraints[\w.-]*\.txt|environment[\w.-]*\.ya?ml|pixi\.toml"
    r"|package\.json|[jt]sconfig.*\.json|lerna\.json|nx\.json|turbo\.json|biome\.jsonc?|pnpm-workspace\.ya?ml"
    r"|deno\.jsonc?|[\w.-]+\.(?:config|conf|workspace)\.[cm]?[jt]s|gruntfile\.\w+|gulpfile\.\w+"
    r"|cargo\.toml|rust-toolchain(?:\.toml)?|rustfmt\.toml|clippy\.toml|deny\.toml|cross\.toml"
    r"|go\.(?:mod|work)|composer\.json|gemfile|rakefile|[\w.-]+\.gemspec|phpunit\.xml(?:\.dist)?|phpstan\.neon.*"
    r"|pom\.xml|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?|gradle\.properties|gradlew(?:\.bat)?|build\.sbt"
    r"|[\w.-]+\.(?:csproj|fsproj|vbproj|vcxproj|sln|slnx|props|targets|podspec|cabal|opam|nimble)|mix\.exs|rebar\.config"
    r"|cmakelists\.txt|[\w.-]+\.cmake|configure(?:\.(?:ac|in))?|meson(?:\.build|_options\.txt|\.options)|sconstruct"
    r"|sconscript|makefile(?:\.\w+)?|gnumakefile|[\w.-]+\.mk|justfile|taskfile\.ya?ml|build(?:\.bazel)?|workspace|wscript"
    r"|(?:.+\.)?(?:dockerfile|containerfile)(?:\..+)?|docker-compose[\w.-]*\.ya?ml|\.?bumpversion\.(?:cfg|toml)|asv\.conf[\w.]*\.json"
    r"|\.release-please-manifest\.json|release-please-config\.json|flake\.nix|default\.nix|shell\.nix|make\.bat|package\.swift"
    r"|pubspec\.yaml|[_.]?typos\.toml|dprint\.json|cspell[\w.-]*\.json|knip\.\w+|\.[\w.-]*(?:rc|ignore|config|version)"
    r"|\.[\w.-]+\.(?:json[c5]?|ya?ml|toml|cfg|ini|[cm]?[jt]s)|\.(?:gitattributes|gitmodules|editorconfig|flake8|env[\w.-]*)"
)
_SNAPSHOT = re.compile(r".+\.(?:snap|snap\.new|ambr|phpt|bats)|.+\.snap\.\w+")
_PROGRAMS = {"bin", "scripts", "tools", "libexec"}
"""Folders whose files without an ending are programs."""
_TEXT_AT_ROOT = re.compile(r"(?i).+\.txt")


@lru_cache(maxsize=_CACHED)
def kind_of(path: str) -> FileKind:
    """The kind of the file at `path` (in a git tree: relative, with ``/``). Total: every text has a kind."""
    *folders, name = path.split("/")
    if not path.startswith(_SHIPPED_TESTS) and not any("/" + shipped in path for shipped in _SHIPPED_TESTS):
        kind = _kind_of_folders([folder.lower() for folder in folders], name)
        if kind is not None:
            return kind
    return _kind_of_name(folders, name)


def named_like_test(path: str) -> bool:
    """Whether a module of Python is a test by its name alone, in no folder of tests; ``conftest.py`` is none."""
    *folders, name = path.split("/")
    by_name = kind_of(path) is FileKind.TEST and _kind_of_folders([it.lower() for it in folders], name) is None
    return by_name and language_of(path) == "python" and name != "conftest.py"


@lru_cache(maxsize=_CACHED)
def language_of(path: str) -> str | None:
    """The language of the file at `path` by its name, one of `LANGUAGES`; None for prose, data and unknown endings."""
    name = path.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _MORE_ENDINGS:
        return _MORE_ENDINGS[ending]
    tags = _tags(name)
    return next((language for language, row in LANGUAGES.items() if not tags.isdisjoint(row.tags)), None)


def is_text(path: str) -> bool | None:
    """Whether the file at `path` is one of text, by its name; None where the name does not say."""
    name = path.rpartition("/")[2]
    if "text" in _tags(name):
        return True  # an image, too, may be: SVG
    return False if _is_binary(name) else True if kind_of(path) is FileKind.SOURCE else None


@cache
def endings() -> frozenset[str]:
    """The endings of files, without dot and in small letters, that are written in one of `LANGUAGES`."""
    from identify.extensions import EXTENSIONS  # noqa: PLC0415  loaded when a path is read, not on import

    known = {tag for row in LANGUAGES.values() for tag in row.tags}
    return frozenset(_MORE_ENDINGS).union(ending for ending, tags in EXTENSIONS.items() if not known.isdisjoint(tags))


def _kind_of_folders(folders: list[str], name: str) -> FileKind | None:
    """What the outermost folder with a meaning says; None where none has one."""
    inside = False
    for depth, folder in enumerate(folders):
        if depth == 0 and folder in _CI_ROOTS:
            return FileKind.CI
        if folder in _CONFIG_FOLDERS:
            return FileKind.CONFIG
        if folder in _VENDORED:
            return FileKind.VENDORED
        if _TEST_FOLDER.fullmatch(folder) or (depth == 0 and folder in _TEST_ROOTS):
            return FileKind.TEST
        if folder == "spec" and name.endswith((".rb", ".js", ".ts", ".php")):
            return FileKind.TEST
        if folder in _GENERATED or (folder == "dist" and not inside):
            return FileKind.GENERATED
        if folder in _FRAGMENTS and language_of(name) is None:
            return FileKind.DOCS
        if not inside:
            if folder in _BENCHMARKS:
                return FileKind.TEST
            if folder in _DOC_FOLDERS or (depth == 0 and folder in _DOC_ROOTS):
                return FileKind.DOCS
        # Below these a folder is a part of the program: src/pkg/docs/ writes documentation.
        inside = inside or folder in {"src", "lib", "pkg", "internal", "app"}
    return None


def _kind_of_name(folders: list[str], name: str) -> FileKind:
    if _CI_NAME.fullmatch(name):
        return FileKind.CI
    if _LOCK.fullmatch(name):
        return FileKind.LOCK
    if _SNAPSHOT.fullmatch(name) or _is_test_name(folders, name):
        return FileKind.TEST
    if _GENERATED_NAME.fullmatch(name):
        return FileKind.GENERATED
    if _CONFIG_NAME.fullmatch(name):
        return FileKind.CONFIG
    language = language_of(name)
    if language is None and (_DOCS_NAME.fullmatch(name) or (not folders and _TEXT_AT_ROOT.fullmatch(name))):
        return FileKind.DOCS
    if language is not None or ("." not in name and folders and folders[-1] in _PROGRAMS):
        return FileKind.SOURCE
    return FileKind.BINARY if _is_binary(name) else FileKind.DATA


def _is_test_name(folders: list[str], name: str) -> bool:
    language = language_of(name)
    if language is None or not LANGUAGES[language].tests:
        return False
    return (
        not (language in _JVM and ("src", "main") in pairwise(folders))
        and re.fullmatch(LANGUAGES[language].tests, name) is not None
    )


_MORE_BINARY = {
    "mo",
    "pyc",
    "a",
    "o",
    "lib",
    "class",
    "wasm",
    "npy",
    "npz",
    "pkl",
    "pickle",
    "parquet",
    "feather",
    "avro",
    "orc",
    "db",
    "sqlite",
    "sqlite3",
    "xz",
    "zst",
    "7z",
    "lz4",
    "xlsx",
    "xls",
    "xlsb",
    "ods",
    "docx",
    "pptx",
    "mp3",
    "mp4",
    "mov",
    "webm",
    "ogg",
    "bin",
    "dat",
    "h5",
    "hdf5",
    "mat",
    "onnx",
    "pt",
    "psd",
    "heic",
    "svgz",
    "arrow",
    "ipc",
}


def _is_binary(name: str) -> bool:
    ending = name.rpartition(".")[2].lower()
    tags = _tags(name)
    return ending in _MORE_BINARY or "binary" in tags or "image" in tags


def _tags(name: str) -> set[str]:
    """What `identify` says of a file's name."""
    from identify.identify import tags_from_filename  # noqa: PLC0415  loaded when a path is read, not on import

    tags: set[str] = tags_from_filename(name)
    return tags
