"""The build plan of a tree: the recipe that fits, the image's name, and the inputs of the recipe's steps."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from environments.images.added_requirements import added_requirements
from environments.images.buildtree import BuildTree
from environments.images.debian_wishes import wished_packages
from environments.images.globs import matches
from environments.images.image_plan import ImagePlan
from environments.images.inside.wanted import as_pep_440
from environments.images.manifests import HASH_LENGTH, image_name, manifest_hash, manifest_paths
from environments.images.nested_projects import nested_manifests
from environments.images.node_project import (
    Nodes,
    added_packages,
    node_files,
    read_node_project,
    scripted_runner,
)
from environments.images.python_project import PythonProject, extra_patterns, plain_name, read_project
from environments.images.recipes import Recipe, choose
from environments.images.requirement_lines import flat_lines, plain_lines
from environments.images.wanted_go import choose_go
from environments.images.wanted_python import SAYS, Choice, Minor, choose_python, era_of, named_pythons
from environments.images.wishes import named_extras, named_files, wished_extras, wishes
from environments.sandboxes.sandbox import WORKDIR
from environments.suites.makefiles import MAKEFILE
from environments.suites.runners import RUNNERS
from prchain.core.timestamps import stamp

DEFAULT_VERSION = "0.0.1"
"""For a repository without a tag that is a version."""


def make_plan(
    repository: str,
    tree: BuildTree,
    *,
    base_image: str,
    folder: Path | None = None,
    version: str = DEFAULT_VERSION,
    tag: str = "",
    recipe: Recipe | None = None,
    pythons: Pythons | None = None,
    nodes: Nodes | None = None,
    go_refused: str | None = None,
    landed: BuildTree | None = None,
) -> ImagePlan:
    """The plan for a tree of `repository` (``owner/name``).

    `folder` holds the user's recipes; `version` is given to tools that would read it from git's tags, and in a build
    they read `tag`; `recipe` replaces the one that fits; `pythons` and `nodes` are the interpreters to choose from, and
    `go_refused` says why no Go can be had but Debian's (empty: one can; None: none is chosen); of `landed`, M_t's tree,
    are the requirements that it adds. Raises `NoRecipe`, `RecipeError`.
    """
    recipe = recipe or choose(tree.paths, repository, folder)
    contents = _manifests(recipe, tree)
    texts = _texts(contents)
    added: tuple[str, ...] = ()
    if landed is not None and recipe.language in _ADDED:
        added = _ADDED[recipe.language](texts, _texts(_manifests(recipe, landed)))
    chosen = _chosen_python(recipe, tree, texts, pythons)
    is_default = chosen is None or pythons is None or chosen.minor == pythons.default
    # What is not the base image's own makes it another base.
    base = base_image if is_default or chosen is None else f"{base_image} python {chosen.text}"
    wished = wished_packages(tree)
    base = f"{base} with {' '.join(wished)}" if wished else base
    plain_base = base
    base = f"{base} and {' '.join(sorted(added))}" if added else base
    node = read_node_project(tree, texts, nodes) if recipe.language == "javascript" else None
    base = f"{base} {node.words}" if node and node.words else base
    go = choose_go(texts) if recipe.language == "go" and go_refused is not None else None
    refused, go = (go_refused or "", None) if go and go_refused else ("", go)
    base = f"{base} go {go.text}" if go else base
    way = f"{recipe.digest()} {plain_base} {node.words if node else ''} {go.text if go else ''}"
    of_node = {**node.variables, "WISHED": " ".join(added)} if node else {}
    files, variables = (node_files(), of_node) if node else _build_inputs(recipe, texts, added)
    if recipe.language == "python":
        variables |= {"INTERPRETER": chosen.text, "ERA": stamp(era_of(chosen.minor))} if chosen else _NO_PYTHON
    runner, test = scripted_runner(_with_makefile(tree, texts)) if node and recipe.name == "node" else ("", "")
    runner = runner or runner_for(recipe, texts)
    return ImagePlan(
        repository=repository,
        recipe=recipe,
        image=image_name(repository, manifest_hash(contents, recipe, base)),
        manifests=tuple(contents),
        files=files,
        variables=variables,
        environment=version_variables(recipe, texts, version),
        runner=runner,
        test=recipe.test or test,
        python=chosen,
        default_python=is_default,
        added=added,
        tag=tag if _PLAIN_TAG.fullmatch(tag) else "",
        node=node,
        go=go,
        go_refused=refused,
        wished_packages=wished,
        way=hashlib.sha256(way.encode()).hexdigest()[:HASH_LENGTH],
    )


def _with_makefile(tree: BuildTree, texts: Mapping[str, str]) -> Mapping[str, str]:
    return {**texts, MAKEFILE: _text(tree.read(MAKEFILE))} if MAKEFILE in tree.paths else texts


_ADDED = {"python": added_requirements, "javascript": added_packages}
"""What a landing begins to need, by language."""


def _manifests(recipe: Recipe, tree: BuildTree) -> dict[str, bytes]:
    pyproject = _text(tree.read("pyproject.toml")) if "pyproject.toml" in tree.paths else ""
    paths = manifest_paths(tree.paths, recipe, pyproject)
    contents = {path: tree.read(path) for path in paths}
    if recipe.language != "python":
        return contents
    known = _texts(contents)
    root = read_project(known)
    nested = () if root.installable or root.members else nested_manifests(tree.paths)
    paths = manifest_paths(tree.paths, recipe, pyproject, (*named_files(known), *nested))
    return {path: contents[path] if path in contents else tree.read(path) for path in paths}


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    return {path: _text(content) for path, content in contents.items()}


_INSIDE = (
    "forget_tree.py",
    "wanted.py",
    "lacking.py",
    "unmet.py",
    "told_metadata.py",
    "as_pip.sh",
    "runner.sh",
    "plugins.txt",
)
_NO_PYTHON = {"INTERPRETER": "", "ERA": ""}


@dataclass(frozen=True, slots=True)
class Pythons:
    """The interpreters to choose from, the base image's own, and the day on which the stage landed."""

    offered: frozenset[Minor]
    default: Minor
    day: datetime


_MOST_SAYING = 100
"""Files that are asked on which Pythons a project is checked."""


def _chosen_python(recipe: Recipe, tree: BuildTree, texts: Mapping[str, str], pythons: Pythons | None) -> Choice | None:
    if recipe.language != "python" or pythons is None:
        return None
    paths = sorted(path for path in tree.paths if matches(path, SAYS) and path not in texts)[:_MOST_SAYING]
    says = {path: _text(tree.read(path)) for path in paths}
    requires = recipe.python or read_project(texts).requires_python
    return choose_python(requires, named_pythons({**texts, **says}), pythons.day, pythons.offered, pythons.default)


def runner_for(recipe: Recipe, texts: Mapping[str, str]) -> str:
    """The name of the runner whose sign is in the manifests, for the recipe's language; or else the recipe's own."""
    signs = [(runner.sign, runner.name) for runner in RUNNERS.values() if runner.sign]
    candidates = [
        (sign.rank, name)
        for sign, name in signs
        if sign.language == recipe.language and sign.text in texts.get(sign.file, "")
    ]
    return min(candidates)[1] if candidates else recipe.runner


def version_variables(recipe: Recipe, texts: Mapping[str, str], version: str) -> dict[str, str]:
    """The variables that tell a version to the tools whose signs are in the manifests."""
    return {
        rule.variable: version for rule in recipe.versions if any(re.search(rule.sign, text) for text in texts.values())
    }


# A tag is hostile: one separator at most, and always one of the words between two of them, else this takes for ever.
_VERSION_OF_TAG = re.compile(
    r"(?:^|[^0-9.])(\d+(?:\.\d+){1,3}(?:[-_.]?(?:alpha|beta|pre|post|dev|rc|a|b|c)(?:[-_.]?\d+)?)*)$"
)
_LONGEST_TAG = 100
_PLAIN_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,99}")


def version_of_tags(tags: Sequence[str]) -> str:
    """The version (PEP 440) of the last tag that has one, e.g. ``release-1.4.2`` is 1.4.2 and ``v2.0-beta.1`` 2.0b1;
    `tags` are in the order of history."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415  loaded with the first plan

    for tag in reversed(tags):
        found = _VERSION_OF_TAG.search(tag[-_LONGEST_TAG:])
        with suppress(InvalidVersion):
            if found:
                return str(Version(found[1]))
    return DEFAULT_VERSION


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").removeprefix("\ufeff")


def _build_inputs(
    recipe: Recipe, texts: Mapping[str, str], added: Sequence[str] = ()
) -> tuple[dict[str, bytes], dict[str, str]]:
    if recipe.language != "python":
        return {}, {}
    project = read_project(texts)
    extras = project.chosen_extras() if recipe.extras is None else recipe.extras
    fewer_extras = project.chosen_extras(fewer=True) if recipe.extras is None else recipe.extras
    named = _named_extras(project, texts) if recipe.extras is None else recipe.extras
    extras = tuple(dict.fromkeys((*extras, *named)))
    of_named = [f"{re.escape(plain_name(extra))}$" for extra in named]
    patterns, fewer_patterns = (
        [*(extra_patterns(fewer=it) if recipe.extras is None else ()), *of_named] for it in (False, True)
    )
    lists = {
        "requirements.txt": _requirements(recipe, project, texts),
        "flat.txt": _requirements(recipe, project, texts, flat=True),
        "fewer.txt": _requirements(recipe, project, texts, flat=True, fewer=True),
        "least.txt": ["pytest", *project.build_requires, *recipe.requirements],
        "constraints.txt": list(project.pins),
        "build.txt": list(project.build_requires),
        "wished.txt": [*added, *wishes(texts)],
    }
    files = {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in lists.items()}
    inside = resources.files("environments.images") / "inside"
    files |= {name: (inside / name).read_bytes() for name in _INSIDE}
    variables: dict[str, Any] = {
        "PYTHON": recipe.python or project.requires_python,
        "EDITABLE": _editable(project, extras),
        "EDITABLE_FEWER": _editable(project, dict.fromkeys((*fewer_extras, *named))),
        "EDITABLE_LEAST": _editable(project, None),
        "FOLDERS": " ".join(["."] if project.installable else [f"./{folder}" for folder in project.members]),
        "EXTRAS": " ".join(patterns),
        "EXTRAS_FEWER": " ".join(fewer_patterns),
    }
    return files, variables


def _editable(project: PythonProject, extras: Iterable[str] | None) -> str:
    """Options of pip that put the project in, or what stands for it, with extras; None: without any."""
    if project.installable:
        return f"--editable .{_in_brackets(extras or ())}"
    of_members = {it: () if extras is None else project.member_extras.get(it, ()) for it in project.members}
    return " ".join(f"--editable ./{folder}{_in_brackets(names)}" for folder, names in of_members.items())


def _in_brackets(extras: Iterable[str]) -> str:
    names = [extra for extra in extras if re.fullmatch(r"[A-Za-z0-9._-]+", extra)]
    return f"[{','.join(names)}]" if names else ""


_ITSELF = re.compile(r"(?:-e|--editable)[ =]*['\"]?\./?(?:\[[^\]]*\])?['\"]?$")


def _named_extras(project: PythonProject, texts: Mapping[str, str]) -> list[str]:
    """The extras with which requirement files, tox or CI name the project itself."""
    lines = [line for path in project.chosen_files() for line in flat_lines(path, texts)]
    return list(dict.fromkeys((*named_extras(lines), *wished_extras(texts))))


def _requirements(
    recipe: Recipe, project: PythonProject, texts: Mapping[str, str], *, flat: bool = False, fewer: bool = False
) -> list[str]:
    """The requirements of a list. A flat one has each on a line, without the project itself, which is put in by other
    means; requirement files may name that, too."""
    if recipe.requirement_files is not None:
        files = [path for path in texts if matches(path, recipe.requirement_files)]
    else:
        files = [path for path in project.chosen_files(fewer=fewer) if plain_lines(texts[path])]
    groups = project.chosen_groups(fewer=fewer)
    lines = ["pytest", *project.build_requires, *groups, *recipe.requirements]
    for path in files:
        lines += flat_lines(path, texts) if flat else [f"-r {WORKDIR}/{path}"]
    if not groups and not files and not project.chosen_extras():
        lines += project.tox_requirements
    if flat:
        lines = [as_pep_440(line) for line in lines if not _ITSELF.match(line)]
    return list(dict.fromkeys(lines))
