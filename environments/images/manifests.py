"""The manifests of a tree: the files that declare its dependencies, and a hash over what they declare.

Two trees whose manifests agree share an image, so what says nothing of dependencies (a version that each release
raises, settings of a linter, comments) stays out of the hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from environments.images.globs import matches
from environments.images.python_project import dynamic_files, is_workspace_member, tox_deps
from environments.images.recipes import Recipe
from environments.images.requirement_lines import lock_pins, plain_lines
from environments.images.wishes import CI, ci_installs, nox_installs

HASH_LENGTH = 16

_BUILDS_OF_HATCH = ("metadata", "build", "envs")

_TOOLS: Mapping[str, tuple[str, ...] | None] = {
    "poetry": ("dependencies", "dev-dependencies", "group", "extras", "package-mode", "source"),
    "uv": None,
    "pdm": ("dev-dependencies", "resolution", "source"),
    "hatch": _BUILDS_OF_HATCH,
    "flit": ("metadata",),
}
"""Which tables of a tool declare dependencies; None: all."""

_PROJECT = ("dependencies", "optional-dependencies", "requires-python", "dynamic")

_SETUP_CFG = ("install_requires", "setup_requires", "tests_require", "python_requires", "dependency_links")

_PACKAGE_JSON = (
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "optionalDependencies",
    "overrides",
    "resolutions",
    "workspaces",
    "engines",
    "packageManager",
    "bundleDependencies",
    "type",
)


def manifest_paths(
    paths: Collection[str], recipe: Recipe, pyproject: str = "", named: Collection[str] = ()
) -> tuple[str, ...]:
    """The paths of a tree that are manifests for the recipe, sorted; `pyproject` is the text of that file, and `named`
    are files that other manifests name."""
    extra_paths = {*named, *(dynamic_files(pyproject) if pyproject else ())}
    if pyproject:
        extra_paths |= {
            path for path in paths if path.endswith("/pyproject.toml") and is_workspace_member(path, pyproject)
        }
    return tuple(sorted(path for path in paths if path in extra_paths or matches(path, recipe.manifests)))


def manifest_hash(manifests: Mapping[str, bytes], recipe: Recipe, base_image: str) -> str:
    """The hash in an image's name, of its manifests (path to content), its recipe and its base image.

    It leaves out the day as of which packages were resolved, and what the base image holds: the first stage that needs
    an image decides the day for all that share it (`environments.images.provide` notes a long distance), and an image
    stays when its base is pulled anew under the same name. To renew either, build with `rebuild`, or name the base by
    its digest.
    """
    digest = hashlib.sha256(f"1\0{recipe.digest()}\0{base_image}\0".encode())
    for path in sorted(manifests):
        content = relevant(path, manifests[path])
        if content:
            digest.update(path.encode("utf-8", "surrogatepass") + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()[:HASH_LENGTH]


def image_name(repository: str, manifests: str) -> str:
    """The image's name: ``prchain/<owner>--<name>:<hash>``, in the letters that image names may have.

    A GitHub name with other letters gets a hash of its own.
    """
    plain = repository.lower().replace("/", "--")
    name = re.sub(r"[^a-z0-9._-]", "-", plain).strip("._-")
    name = re.sub(r"\.{2,}|_{3,}|[._-]*[._][._-]+|-+[._]+", "-", name) if not _component(name) else name
    if name != plain:
        name = f"{name[:80]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
    return f"prchain/{name}:{manifests}"


def _component(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*", name) is not None


def relevant(path: str, content: bytes) -> bytes:
    """What a manifest declares of dependencies, in a form that is equal for equal meanings; the whole manifest, where
    its format is unknown. Empty where it declares none."""
    text = content.decode("utf-8", "surrogateescape")
    try:
        relevant_text = _relevant_text(path, text)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return content
    return content if relevant_text is None else relevant_text.encode("utf-8", "surrogateescape")


def _relevant_text(path: str, text: str) -> str | None:
    name = path.rpartition("/")[2]
    if name == "pyproject.toml":
        return _plain(_pyproject(tomllib.loads(text)))
    if name == "setup.cfg":
        return _plain(_setup_cfg(text))
    if name == "setup.py":
        return re.sub(r"(?m)^\s*(?:__version__|version|VERSION)\s*=\s*['\"][^'\"]*['\"],?\s*$|^\s*#.*$\n?", "", text)
    if path in CI:
        return "\n".join(ci_installs(text))
    if path == "noxfile.py":
        return "\n".join(nox_installs(text))
    if name == "tox.ini":
        return "\n".join(tox_deps(text))
    if (name.endswith(".lock") and name in {"uv.lock", "poetry.lock", "pdm.lock"}) or name == "Pipfile.lock":
        return "\n".join(lock_pins(name, text)) or None
    if name == "package.json":
        table = json.loads(text)
        return _plain({key: table[key] for key in _PACKAGE_JSON if key in table})
    if name in {"package-lock.json", "npm-shrinkwrap.json"}:
        table = json.loads(text)
        table.pop("version", None)
        table.get("packages", {}).get("", {}).pop("version", None)
        return _plain(table)
    if name.endswith(".txt"):
        return "\n".join(plain_lines(text))
    return None


def _pyproject(table: Mapping[str, Any]) -> dict[str, Any]:
    project, tool = table.get("project", {}), table.get("tool", {})
    tools = {}
    for name, keys in _TOOLS.items():
        tables = {key: value for key, value in tool.get(name, {}).items() if keys is None or key in keys}
        if tables:
            tools[name] = tables
    found = {
        "build-system": table.get("build-system"),
        "project": {key: project[key] for key in _PROJECT if key in project},
        "dependency-groups": table.get("dependency-groups"),
        "dynamic": tool.get("setuptools", {}).get("dynamic", {}).get("dependencies"),
        "tool": tools,
    }
    return {key: value for key, value in found.items() if value}


def _setup_cfg(text: str) -> dict[str, Any]:
    import configparser  # noqa: PLC0415  for this file alone

    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    found = {}
    if parser.has_section("options"):
        found["options"] = {
            key: plain_lines(value or "") for key, value in parser.items("options") if key in _SETUP_CFG
        }
    if parser.has_section("options.extras_require"):
        found["extras"] = {key: plain_lines(value or "") for key, value in parser.items("options.extras_require")}
    return {key: value for key, value in found.items() if value}


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str) if value else ""
