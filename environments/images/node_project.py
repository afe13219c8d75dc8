"""What a build needs to know of a project of Node: which Node, which package manager, and the files of its steps."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

from environments.images.buildtree import BuildTree
from environments.images.globs import matches
from environments.images.package_manager import PackageManager, choose_manager, npm_of_node
from environments.images.wanted_node import SAYS, NodeChoice, choose_node, package_table
from environments.suites.makefiles import MAKEFILE
from environments.suites.package_scripts import chosen_script, with_options
from environments.suites.runners import RUNNERS
from prchain.core.errors import NoRecipe

LANGUAGE = "javascript"

DEBIANS = frozenset({"nodejs", "npm"})
"""Packages of Debian that are for where no Node of the time can be had."""

_INSIDE = ("npm_package.py", "node_tree.py", "node.sh")
_OF_DEBIAN = 18
"""The major version of Debian 12."""
_MOST_SAYING = 100
"""Files that are asked on which Node a project is checked."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The day on which the stage landed, and why no Node can be had but Debian's; empty where one can."""

    day: datetime
    refused: str = ""


@dataclass(frozen=True, slots=True)
class NodeProject:
    """A project of Node."""

    manager: PackageManager
    node: NodeChoice | None = None
    """None: the base image's release of Debian has it."""
    refused: str = ""

    @property
    def words(self) -> str:
        """What it stands on beside the base image, for the image's name."""
        return f"node {self.node.major}" if self.node else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """For people: what was chosen, and by what."""
        manager = self.manager
        chosen = f"{manager.name} {manager.version}, by {manager.by}"
        if self.node is None:
            return (*([f"node of Debian: {self.refused}"] if self.refused else []), chosen)
        against = f", against {self.node.against}" if self.node.against else ""
        return (f"node {self.node.major}, by {self.node.by}{against}", chosen)

    @property
    def variables(self) -> dict[str, str]:
        """Variables of the build's steps."""
        manager, major = self.manager, self.node.major if self.node else _OF_DEBIAN
        return {
            "MANAGER": manager.name,
            "MANAGER_PACKAGE": manager.package,
            "MANAGER_VERSION": manager.version,
            "NPM_VERSION": str(npm_of_node(major)),
            "LOCK": manager.lock,
        }

    def beside(self, packages: Collection[str]) -> tuple[str, ...]:
        """Of a recipe's packages of Debian those that an image needs beside its Node."""
        return tuple(it for it in packages if self.node is None or it.partition("=")[0] not in DEBIANS)


def read_node_project(tree: BuildTree, texts: Mapping[str, str], nodes: Nodes | None) -> NodeProject:
    """The project in a tree whose manifests have these `texts`; without `nodes` none is chosen."""
    node = None
    if nodes is not None and not nodes.refused:
        paths = sorted(path for path in tree.paths if matches(path, SAYS) and path not in texts)[:_MOST_SAYING]
        node = choose_node({**texts, **{path: _text(tree.read(path)) for path in paths}}, nodes.day)
    manager = choose_manager(texts, tree.paths, node.major if node else _OF_DEBIAN)
    return NodeProject(manager, node, nodes.refused if nodes else "")


_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-z0-9~][a-z0-9._~-]{0,100}")
_RANGE = re.compile(r"[\w.^~<>=*-]{1,40}")
_OF_REGISTRY = re.compile(r"[\w.^~<>=*| -]{0,200}")
_MOST_ADDED = 20
"""Packages; a landing that needs more anew has made another project of it."""


def added_packages(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The packages of the registry that the ``package.json`` of manifests `after` names and that of those `before` does
    not, as npm is asked for them; both are path to content, of B_t and M_t. Another version is no other package."""
    known, wanted = (_named(texts.get("package.json", "")) for texts in (before, after))
    found = [
        f"{name}@{said}" if _RANGE.fullmatch(said) else name
        for name, said in wanted.items()
        if name not in known and _NAME.fullmatch(name) and _OF_REGISTRY.fullmatch(said)
    ]
    return tuple(found[:_MOST_ADDED])


def _named(text: str) -> dict[str, str]:
    package = package_table(text)
    tables = [table for kind in _DEPENDENCIES if isinstance(table := package.get(kind), dict)]
    return {name: said for table in reversed(tables) for name, said in table.items() if isinstance(said, str)}


def scripted_runner(texts: Mapping[str, str]) -> tuple[str, str]:
    """The runner that the scripts of a project start, and the command of our own that loads tests as they do, empty
    where that is the runner's; both are empty where no script starts one. Raises `NoRecipe` where they start one alone
    that we have none for."""
    script = chosen_script(texts.get("package.json", ""), texts.get(MAKEFILE, ""))
    if script is None:
        return "", ""
    if not script.known:
        if any(
            it.sign and it.sign.language == LANGUAGE and it.sign.text in texts["package.json"]
            for it in RUNNERS.values()
        ):
            return "", ""
        raise NoRecipe(f"its scripts run tests with {script.runner}, which no runner of ours stands for")
    template = RUNNERS[script.runner].template
    own = with_options(template, script)
    return script.runner, "" if own == template else own


def node_files() -> dict[str, bytes]:
    """Files of ``$BUILD``."""
    inside = resources.files("environments.images") / "inside"
    return {name: (inside / name).read_bytes() for name in _INSIDE}


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
