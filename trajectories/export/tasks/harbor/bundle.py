"""Our own modules as one file that an image's Python runs: a module, and all that it imports."""

from __future__ import annotations

import ast
import importlib.util
import io
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from prchain.core.code.syntax_trees import syntax_tree
from prchain.core.errors import UsageError

PYTHON = (3, 11)
"""What our own modules are written for."""

_OWN = ("prchain", "environments", "trajectories")
_CARRIED = ("tomli_w", "identify")
"""Packages of others that go with them: small, of pure Python, and free to give away with their licence."""
_LEFT_OUT = {"identify/vendor/licenses.py": b"LICENSES = ()\n"}
"""Files of these that are large and serve what is not used here: the texts of licences, to tell one by its words."""
_LATER = ("git",)
"""Packages that are imported where they are used, which is nowhere in a container."""
_FOLDERS = {
    "environments.suites.runners": ".py",
    "environments.suites.reporters": ".py",
    "prchain.core.git": "",
}
"""Packages of which all files go along: they are found by their folder."""
_DATE = (2000, 1, 1, 0, 0, 0)

# Nothing is unpacked: what lies where an agent's processes can write is not believed.
_MAIN = """\
import runpy, sys
if sys.version_info < {python}:
    sys.exit("this file needs Python {words} or newer, and the image's is older")
sys.dont_write_bytecode = True
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


@cache
def bundle(module: str) -> bytes:
    """A zip that Python runs as `module`, the same bytes for the same sources. Raises `UsageError` where the module
    imports a package that is neither Python's nor ours."""
    files = {"__main__.py": _MAIN.format(python=PYTHON, words=".".join(map(str, PYTHON)), module=module).encode()}
    for name in sorted(_closure([module, *_members()])):
        path = _path(name)
        files[_place(name, path)] = path.read_bytes()
    for package, ending in _FOLDERS.items():
        folder = _path(package).parent
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and (path.suffix != ".py" or ending == ".py"):
                files[f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    for package in _CARRIED:
        files.update(_carried(package))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for place, content in sorted(files.items()):
            packed.writestr(zipfile.ZipInfo(place, _DATE), content, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def _members() -> list[str]:
    folder = _path("environments.suites.runners").parent
    return [f"environments.suites.runners.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem[0] != "_"]


def _closure(names: Iterable[str]) -> set[str]:
    """Our modules that these import when they are imported, and the packages around them."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        above = name.rpartition(".")[0]
        waiting += [above] if above else []
        tree = syntax_tree(_path(name).read_text(encoding="utf-8"))
        for imported in _imported(tree.body):
            waiting += _ours(imported, name)
    return found


def _imported(body: Iterable[ast.stmt]) -> Iterator[str]:
    """What statements import at the top of a module; what only a type checker reads is left out."""
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=rest):
                yield from _imported(rest)
            case ast.If(body=inner, orelse=rest) | ast.Try(body=inner, orelse=rest):
                yield from _imported([*inner, *rest])
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                continue


def _ours(name: str, by: str) -> list[str]:
    """The module of ours that an imported name is, or is in; none for Python's own. Raises `UsageError`."""
    first = name.partition(".")[0]
    if first in _OWN:
        return [name if _is_module(name) else name.rpartition(".")[0]]
    spec = importlib.util.find_spec(first)
    if first not in (*_CARRIED, *_LATER) and spec is not None and "site-packages" in (spec.origin or ""):
        raise UsageError(f"{by} imports {first}, which no image has: it cannot be part of a grader")
    return []


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _path(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def _place(name: str, path: Path) -> str:
    return name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")


def _carried(package: str) -> Iterator[tuple[str, bytes]]:
    folder = _path(package).parent
    for path in sorted(folder.rglob("*.py")):
        place = f"{package}/{path.relative_to(folder).as_posix()}"
        yield place, _LEFT_OUT.get(place, b"") or path.read_bytes()
    try:
        known = distribution(package).files or []
    except PackageNotFoundError:
        known = []
    for file in known:
        if file.name.upper() in ("LICENSE", "LICENSE.TXT", "LICENSE.MD"):
            yield f"{package}/{file.name}", Path(str(file.locate())).read_bytes()
