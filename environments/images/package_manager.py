"""Which package manager a project of Node has, and which release of it: npm, pnpm or yarn."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from environments.images.wanted_node import package_table

NAMES = ("npm", "pnpm", "yarn")
LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
"""Lock files by the manager that writes them; of several the first one counts."""

_NAMED = re.compile(r"(npm|pnpm|yarn)@\^?(\d{1,4})((?:\.\d{1,5}){2}(?:-[0-9A-Za-z.-]{1,40})?)?(?:\+.*)?")
_LOCK_VERSION = re.compile(r"(?m)^lockfileVersion: ['\"]?(\d{1,2})\.(\d{1,2})")
_BERRY = re.compile(r"(?m)^__metadata:\s*\n\s{1,8}version: ['\"]?(\d{1,2})")
_YARN_PATH = re.compile(r"(?m)^yarnPath: \S{0,100}yarn-(\d{1,2}\.\d{1,4}\.\d{1,4})\.c?js")

_NPM_OF_NODE = {8: 6, 10: 6, 12: 6, 14: 6, 16: 8, 18: 10, 20: 10, 22: 10}
"""The major version of npm that comes with one of Node: https://nodejs.org/en/download/releases"""
_NEWEST_NPM = 11
_PNPM_OF_NODE = {8: 3, 10: 5, 12: 6, 14: 7, 16: 8}
"""The newest major version of pnpm that runs on one of Node: https://pnpm.io/installation#compatibility"""
_NEWEST_PNPM = 10


@dataclass(frozen=True, slots=True)
class PackageManager:
    """A manager, the package that has it, which releases of that, and what it was chosen by."""

    name: str
    package: str
    version: str
    """An exact version, or a major one, of which the newest is taken."""
    by: str
    lock: str = ""
    """The lock file that it reads; empty without one."""

    @property
    def berry(self) -> bool:
        """Whether it is yarn 2 or newer, which takes other options."""
        return self.package == "@yarnpkg/cli-dist"


def npm_of_node(major: int) -> int:
    """The major version of npm that comes with a Node."""
    return _NPM_OF_NODE.get(major - major % 2, _NEWEST_NPM)


def choose_manager(texts: Mapping[str, str], paths: Collection[str], node: int) -> PackageManager:
    """The manager of a project with these manifests (path to text) and `paths`, for a Node.

    The field ``packageManager`` comes first, then Volta, then the lock file; a project without any has npm.
    """
    package = package_table(texts.get("package.json", ""))
    lock = next((path for path in LOCKS if path in paths), "")
    for by, said in (("packageManager", package.get("packageManager")), *_of_volta(package.get("volta"))):
        found = _NAMED.fullmatch(said) if isinstance(said, str) and len(said) < 300 else None
        if found:
            own = lock if LOCKS.get(lock) == found[1] else next((it for it, of in LOCKS.items() if of == found[1]), "")
            version = found[2] + (found[3] or "")
            return PackageManager(found[1], _package(found[1], version), version, by, own if own in paths else "")
    name = LOCKS.get(lock, "pnpm" if "pnpm-workspace.yaml" in paths else "npm")
    version = _version(name, texts.get(lock, ""), texts.get(".yarnrc.yml", ""), node)
    return PackageManager(name, _package(name, version), version, lock or "the day", lock)


def _of_volta(volta: Any) -> list[tuple[str, Any]]:
    return (
        [("volta", f"{name}@{volta[name]}") for name in ("pnpm", "yarn", "npm") if name in volta]
        if isinstance(volta, dict)
        else []
    )


def _package(name: str, version: str) -> str:
    return "@yarnpkg/cli-dist" if name == "yarn" and int(version.partition(".")[0]) > 1 else name


def _version(name: str, lock: str, yarn_settings: str, node: int) -> str:
    even = node - node % 2
    if name == "npm":
        # From npm 7 on lock files have another shape, which 6 does not read.
        newer = re.search(r'"lockfileVersion": [23]\b', lock[:2000]) is not None and node >= 12
        return str(max(npm_of_node(node), 8 if newer else 0))
    if name == "pnpm":
        newest = _PNPM_OF_NODE.get(even, _NEWEST_PNPM)
        found = _LOCK_VERSION.search(lock[:2000])
        if not found:
            return str(newest)
        of_lock = {5: {3: 6, 4: 7}.get(int(found[2]), 5), 6: 8, 9: 9}.get(int(found[1]), newest)
        return str(of_lock)
    path, berry = _YARN_PATH.search(yarn_settings[:5000]), _BERRY.search(lock[:2000])
    if path:
        return path[1]
    if berry:
        return "4" if int(berry[1]) > 6 else "3" if int(berry[1]) > 4 else "2"
    return "1"
