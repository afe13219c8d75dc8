"""Debian's packages that CI and Dockerfiles install before a project's tests: libraries that it is compiled against,
and programs that tests start.

They are wished for, as far as Debian has them by these names: CI mostly runs on Ubuntu. What brings its own language,
compiler or browser, and what only builds documentation, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from environments.images.buildtree import BuildTree
from environments.images.globs import matches
from environments.images.wanted_python import CI_FILES

FILES = (*CI_FILES, ".gitlab-ci.yml", ".cirrus.yml", "Dockerfile", ".devcontainer/Dockerfile")
"""Globs of the files that are asked."""

MOST = 40
"""Packages that are wished for at most; who names more installs a desktop."""

_MOST_FILES, _MOST_READ = 30, 200_000

_OTHER_WORK = re.compile(r"docs?|publish|release|deploy|lint|wheels?|codeql|stale|bench|format|style", re.IGNORECASE)
"""In the name of a workflow that runs no tests."""

# Files are hostile: every repetition is bounded.
_APT = re.compile(
    r"\b(?:apt|apt-get|aptitude)(?:[ \t]+-{1,2}[^\s;&|]{1,60}){0,10}[ \t]+install[ \t]+([^\n;&|#>]{1,2000})"
)
_OF_ACTION = re.compile(
    r"cache-apt-pkgs-action[^\n]{0,100}\n(?:[^\n]{0,200}\n){0,3}?\s{1,40}packages:[ \t]*([^\n]{1,1000})"
)
_OF_TRAVIS = re.compile(r"(?m)^\s{0,20}packages:[ \t]*(?:&\w{1,40})?[ \t]*\n((?:\s{1,40}- [^\n]{1,100}\n?){1,60})")
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{1,60}")
_BRINGS_ITS_OWN = re.compile(
    r"(?:lib)?python[0-9.]*(?:-.*)?|pypy.*|texlive.*|latex.*|docker.*|containerd.*|podman.*|google-chrome.*|chromium.*"
    r"|firefox.*|node.*|npm|yarn|golang.*|rust.*|cargo|ruby.*|openjdk.*|default-j.*|maven|gradle|snapd|qemu.*|linux-.*"
    r"|wine.*|.*mingw.*|(?:gcc|g\+\+|gfortran|clang|llvm|lldb|lld)(?:-[0-9].*)?|dotnet.*|mono-.*|ubuntu-.*|php.*|ghc.*"
    r"|git|curl|wget|sudo|build-essential|software-properties-common|apt-.*|ca-certificates|gnupg.*|lsb-release|pandoc"
    r"|ccache|gdb|valgrind|lcov|vim|nano|tmux|openssh-.*|cuda.*|nvidia.*"
)


def wished_packages(tree: BuildTree) -> tuple[str, ...]:
    """Names of Debian's packages that a tree's CI installs, each once, sorted; the first `MOST` of them."""
    found = dict.fromkeys(name for path in files_of_ci(tree) for name in named(path, _text(tree.read(path))))
    return tuple(sorted(list(found)[:MOST]))


def files_of_ci(tree: BuildTree) -> list[str]:
    """The paths of a tree's files of CI, without those of workflows that run no tests; of many the first."""
    return sorted(path for path in tree.paths if matches(path, FILES) and not _is_other_work(path))[:_MOST_FILES]


def named(path: str, text: str) -> Iterator[str]:
    """The packages that a file of CI names, without those of a language, a browser or a toolchain."""
    text = re.sub(r"\\\r?\n", " ", text[:_MOST_READ])
    groups: list[str] = [*_APT.findall(text), *_OF_ACTION.findall(text)]
    if path == ".travis.yml":
        groups += [re.sub(r"(?m)^\s*- ", " ", lines) for lines in _OF_TRAVIS.findall(text)]
    for word in " ".join(groups).split():
        name = word.strip("'\"")
        if _NAME.fullmatch(name) and not _BRINGS_ITS_OWN.fullmatch(name):
            yield name


def _is_other_work(path: str) -> bool:
    return "/workflows/" in path and bool(_OTHER_WORK.search(path.rpartition("/")[2]))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
