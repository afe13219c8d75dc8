"""Keeps a project's ``node_modules`` in an image, and makes a tree ready to run with them.

    python3 node_tree.py keep FOLDER       at the end of a build, in the tree
    python3 node_tree.py ready FOLDER      offline, whenever a tree has been put in place

The work folder is emptied for every stage. So the modules of its root move to ``/node_modules``, the last folder in
which Node looks for them, and those of a workspace's members below FOLDER; a tree gets links to both. Links between
them, and to members of the workspace, are absolute then.

For Python 3.6 and newer.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any, Dict, Iterator, List

ROOT = "/node_modules"
_MODULES = "node_modules"
_PATIENCE = 600.0
"""Seconds for the scripts that build a tree."""


def keep(folder: str, tree: str) -> None:
    """Move the members' modules below the folder, and make links absolute that lead out of the ones that they are in;
    the root's own move later, as the recipe says."""
    found = sorted(module_folders(tree))
    places = {path: os.path.join(folder, os.path.relpath(path, tree)) for path in found}
    places[os.path.join(tree, _MODULES)] = ROOT
    os.makedirs(os.path.join(tree, _MODULES), exist_ok=True)
    for path in found:
        for link in _links(path):
            target = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
            if not target.startswith(f"{path}/"):
                os.unlink(link)
                os.symlink(moved(target, places), link)
    for path in found:
        if places[path] != ROOT:
            os.makedirs(os.path.dirname(places[path]), exist_ok=True)
            os.rename(path, places[path])


def moved(path: str, places: Dict[str, str]) -> str:
    """Where a path lies when its folder of modules has moved."""
    for old, new in places.items():
        if path == old or path.startswith(f"{old}/"):
            return new + path[len(old) :]
    return path


def module_folders(tree: str) -> Iterator[str]:
    """The folders of modules in a tree that are in no other one."""
    for top, folders, _ in os.walk(tree):
        if _MODULES in folders and not os.path.islink(os.path.join(top, _MODULES)):
            yield os.path.join(top, _MODULES)
        folders[:] = [it for it in folders if it not in (_MODULES, ".git")]


def _links(folder: str) -> Iterator[str]:
    for top, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(top, name)
            if os.path.islink(path):
                yield path


def ready(folder: str, tree: str) -> None:
    """Link the modules into a tree, and build it where its tests need that. A build that fails is told and no more:
    compilers write what they can, and a test that lacks something says so."""
    places = {ROOT: os.path.join(tree, _MODULES)}
    for kept in module_folders(folder) if os.path.isdir(folder) else ():
        member = os.path.join(tree, os.path.relpath(os.path.dirname(kept), folder))
        if os.path.isdir(member) and os.path.realpath(member).startswith(f"{os.path.realpath(tree)}/"):
            places[kept] = os.path.join(member, _MODULES)
    for kept, place in places.items():
        if os.path.isdir(kept) and not os.path.lexists(place):
            os.symlink(kept, place)
    for script in build_scripts(tree):
        print(f"npm run {script}", flush=True)
        try:
            subprocess.run(["npm", "run", "--silent", script], cwd=tree, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            print(f"error: npm run {script} took too long")


_BUILDS = re.compile(
    r"\b(?:npm run|npm run-script|pnpm run|pnpm|yarn run|yarn|run-s|run-p)(?: -\w+)*"
    r" ([\w:.-]*(?:build|compile|prepare|tsc)[\w:.-]*)"
)
"""A script that another one starts, by a name that says that it builds."""
_COMPILES = re.compile(r"(?:^|&&)\s*(?:npx )?(?:tsc|babel|rollup|esbuild|tsup|webpack|unbuild)\b(?!.*--noEmit)")


def build_scripts(tree: str) -> List[str]:
    """The scripts of the root's ``package.json`` that have to run before its tests: ``pretest`` where it compiles, or
    what it and ``test`` start to build; else the one that builds, where the tree lacks files that it makes: what tests
    and the package's entry import, or the entry of a member of the workspace that others need."""
    scripts = _package(tree).get("scripts")
    if not isinstance(scripts, dict):
        return []
    before, test = (str(scripts.get(name, "")) for name in ("pretest", "test"))
    if _COMPILES.search(before):
        return ["pretest"]
    found = [it for text in (before, test) for it in _BUILDS.findall(text) if it in scripts]
    makers = [it for it in _MAKERS if it in scripts and not _MAKES_NOTHING.match(str(scripts[it]))]
    if not found and makers and (any(_lacks_entry(it) for it in _members(tree)) or lacks_files(tree)):
        found = makers[:1]
    return list(dict.fromkeys(found))


_MAKERS = ("build", "compile", "prepare", "prepublishOnly", "prepublish", "prepack", "pretest")
"""Names of scripts that make what a package consists of, the likeliest first."""
_MAKES_NOTHING = re.compile(
    r"\s*(?:husky|is-ci|simple-git-hooks|echo|lint|eslint|standard|npm test|npm run lint|exit)\b"
)

_OF_TESTS = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|[._-](?:test|spec)\.\w+$")
_ASIDE = frozenset([_MODULES, ".git", "fixtures", "__fixtures__", "__mocks__", "examples", "docs"])
_IMPORTS = re.compile(
    r"(?:\brequire\(\s{0,9}|\bfrom\s{1,9}|\bimport\s{1,9}|\bimport\(\s{0,9})(['\"])(\.{1,2}(?:/[^'\"\n]{0,300})?|[\w@][^'\"\n]{0,200})\1"
)
_ENDINGS = ("", ".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx", ".json", ".node", ".vue", ".d.ts")
_MOST_FILES = 400
_MOST_READ = 200000


def lacks_files(tree: str) -> bool:
    """Whether code of the tree that its tests load imports files of the tree that are not there."""
    package = _package(tree)
    name = package.get("name")
    waiting = [os.path.join(tree, it) for it in _test_files(tree)]
    known = set(waiting)
    for path in waiting:
        for place in _imported(path, tree, name if isinstance(name, str) else ""):
            found = _entry_of(place) if os.path.isdir(place) else _existing(place)
            if not found:
                return True
            # What lies outside of the tree belongs to others.
            is_own = os.path.realpath(found).startswith(os.path.realpath(tree) + os.sep)
            if is_own and found not in known and len(known) < _MOST_FILES and _CODE.search(found):
                known.add(found)
                waiting.append(found)
    return False


_CODE = re.compile(r"\.[cm]?[jt]sx?$")


def _test_files(tree: str) -> List[str]:
    found = []
    for top, folders, names in os.walk(tree):
        folders[:] = sorted(it for it in folders if it not in _ASIDE)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(top, name), tree)
            if _CODE.search(path) and _OF_TESTS.search(path):
                found.append(path)
        if len(found) > _MOST_FILES // 2:
            break
    return found[: _MOST_FILES // 2]


def _imported(path: str, tree: str, name: str) -> Iterator[str]:
    """The places within the tree that a file imports."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_READ)
    except OSError:
        return
    for _, said in _IMPORTS.findall(text):
        if said.startswith("."):
            yield os.path.normpath(os.path.join(os.path.dirname(path), said.split("?")[0]))
        elif said == name:
            yield tree


def _existing(place: str) -> str:
    """The file that an import of a place loads; a module of TypeScript is imported by the name of its result."""
    source = re.sub(r"\.([cm]?)js(x?)$", r".\1ts\2", place)
    for path in [place + ending for ending in _ENDINGS] + [source, re.sub(r"\.ts$", ".tsx", source)]:
        if os.path.isfile(path):
            return path
    return ""


def _entry_of(folder: str) -> str:
    """The file that an import of a folder loads; without one it is empty."""
    main = _package(folder).get("main")
    named = os.path.normpath(os.path.join(folder, main)) if isinstance(main, str) and main else ""
    for place in [named, os.path.join(named, "index")] if named else []:
        if _existing(place):
            return _existing(place)
    return "" if named else _existing(os.path.join(folder, "index"))


def _members(tree: str) -> List[str]:
    """The folders of a workspace's members that others of them depend on, which links in the modules show."""
    found = []
    for top in (ROOT, *(os.path.join(ROOT, it) for it in _names(ROOT) if it.startswith("@"))):
        for name in _names(top):
            path = os.path.join(top, name)
            if os.path.islink(path) and os.path.realpath(path).startswith(f"{os.path.realpath(tree)}/"):
                found.append(os.path.realpath(path))
    return found


def _lacks_entry(folder: str) -> bool:
    return isinstance(_package(folder).get("main"), str) and not _entry_of(folder)


def _names(folder: str) -> List[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _package(folder: str) -> Dict[str, Any]:
    try:
        with open(os.path.join(folder, "package.json"), encoding="utf-8", errors="replace") as file:
            read = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


if __name__ == "__main__":
    {"keep": keep, "ready": ready}[sys.argv[1]](sys.argv[2], os.getcwd())
