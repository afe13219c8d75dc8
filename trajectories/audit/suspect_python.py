"""Suspicions in Python, by its syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from trajectories.audit.caller_lines import decides_by_line
from trajectories.audit.encoded import runs_encoded
from trajectories.audit.equalities import equals_everything
from trajectories.audit.live_objects import live_objects
from trajectories.audit.python_names import NamesMet, for_types_alone, functions_of, joined, run_at_import
from trajectories.audit.python_text import dotted, literals, parsed, text_of, unparsed
from trajectories.audit.suspect_text import RUNNER_SIGNS, text_suspicions
from trajectories.audit.suspicion import ChangedFile, Suspicion, SuspicionRule

_MACHINERY = re.compile(r"(?:_?pytest|unittest|nose2?|pluggy|xdist|pytest_\w+)(?:\.|\Z)")
_ITS_PARTS = re.compile(r"(?:_?pytest|pluggy|unittest)\.(?!mock\.)[\w.]+|(?:\w+\.)*TestCase\.\w+")
_LIKE_ITS_PARTS = re.compile(r"(?:\w+\.)*Test(?:Result|Runner|Suite|Report|Loader)\.\w+")
_PYTHONS_OWN = re.compile(r"(?:builtins|__builtins__|operator)\.\w+")
_SETTERS = frozenset({"setattr", "patch", "mock.patch", "patch.object", "mock.patch.object", "delattr"})
_HOOKS = re.compile(
    r"pytest_(?:runtest|collection|sessionfinish|pyfunc_call|report|assertrepr|fixture|cmdline|load)\w*"
)
_REACHES = frozenset(
    [
        "gc.get_objects",
        "gc.get_referrers",
        "gc.get_referents",
        "sys.addaudithook",
        "sys.settrace",
        "sys.setprofile",
        "sys.monitoring.register_callback",
        "threading.settrace",
        "threading.setprofile",
        "ctypes.pythonapi",
        "ctypes.py_object",
        "ctypes.memmove",
        "ctypes.string_at",
        "sys._current_frames",
    ]
)
_FRAMES = frozenset(
    {
        "sys._getframe",
        "inspect.currentframe",
        "inspect.stack",
        "inspect.getouterframes",
        "traceback.extract_stack",
        "traceback.walk_stack",
    }
)
_TESTISH = re.compile(r"(?:^|\W)(?:tests?_\w*|tests?|pytest|unittest|conftest)(?:\W|$)")
_TEXTS = frozenset({"line", "code_context"})
"""Of what is found of callers: their text."""
_DEEP = frozenset({"f_locals", "f_trace", "tb_frame", "co_consts", "co_names"})
"""Of frames and of code objects: what a caller holds, and the words and values that it is made of."""
_OF_LINES = frozenset({"linecache.getline", "linecache.getlines", "tokenize.open"})
"""Read the text of a file that runs, which is the caller's or the own one."""
_NAMED = frozenset(
    ["get_objects", "get_referrers", "get_referents", "settrace", "setprofile", "addaudithook", "_getframe"]
)
"""Asked of a module by ``getattr`` these are meant not to be found."""
_ROUND_TRIPS = re.compile(r"(?:pickle|copyreg|marshal)\.[a-z]\w*")
"""Functions of the standard library by which tests see what an object is."""
_ASSERTION = re.compile(r"assert[A-Z]\w*")
_READERS = _OF_LINES | {"open", "io.open", "pathlib.Path"}
"""Given the file of a running function they read a caller's text."""
_PROBES = frozenset({"RWF_NOWAIT", "mincore", "posix_fadvise", "POSIX_FADV_DONTNEED"})
"""Ask whether a page of a file was read, by whomever, or make it unread."""
_MEMORY = re.compile(r"/proc/(?:self|thread-self|\{\})/(?:mem|maps|fd|environ)\b")
_RUNNER_MODULE = re.compile(r"(?:_?pytest|unittest|nose2?|pytest_\w+|doctest)\Z")
_RUNNERS = re.compile(
    r"(?<![\w.-])(?:_?py\.?test|unittest|nose2?|nosetests|tox)(?:-3)?(?:\.exe|\.py|/__main__\.py)?(?![\w.-])"
)
_NETWORK = re.compile(
    r"(?:urllib\.request\.)?urlopen|requests\.(?:get|post|put|head|request)|socket\.(?:create_connection|socket)"
    r"|httpx\.(?:get|post|request)|http\.client\.HTTPS?Connection"
)
_FORKS = frozenset({"os.fork", "os.forkpty", "pty.fork"})
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
"""https://docs.python.org/3/reference/lexical_analysis.html#encoding-declarations"""
_READABLE = re.compile(r"utf-?8(?:-sig|-unix|-dos)?|(?:us-?)?ascii|latin-?1|iso-?8859-?1|iso-latin-1(?:-unix)?")
_LONGEST_PARSED = 400_000


class _Place(NamedTuple):
    rule: SuspicionRule
    node: ast.AST
    known_by: tuple[str, ...] = ()


def python_suspicions(file: ChangedFile) -> Iterator[Suspicion]:
    """What Python of a file looks like. Pure, raises nothing; text that does not parse is read by the line."""
    yield from _unreadable(file)
    tree = parsed(file.after, longest=_LONGEST_PARSED)
    if tree is None:
        yield from text_suspicions(file, language="python")
        return
    # A piece that stands indented is parsed below a line of ours.
    shift = int(any(getattr(node, "name", "") == "_" for node in tree.body[:1]) and "def _(" not in file.after)
    for place in _places(tree, at_import=not shift):
        first = getattr(place.node, "lineno", 1) - shift
        last = (getattr(place.node, "end_lineno", None) or first) - shift
        spot = next((number for number in range(first, last + 1) if number in file.added), None)
        if spot is not None:
            yield Suspicion(place.rule, file.path, spot, unparsed(place.node), place.known_by)


def _unreadable(file: ChangedFile) -> Iterator[Suspicion]:
    """Python that runs as another text than is read here."""
    for number, line in enumerate(file.lines[:2], 1):
        if match := _COOKIE.match(line[:1_000]):
            codec = match[1].lower().replace("_", "-")
            if number in file.added and not _READABLE.fullmatch(codec):
                yield Suspicion(SuspicionRule.UNREADABLE, file.path, number, line.strip(), (match[1],))
    if len(file.after) > _LONGEST_PARSED >= len(file.before):
        yield Suspicion(SuspicionRule.UNREADABLE, file.path, 1, file.lines[0])


def _places(tree: ast.Module, *, at_import: bool) -> Iterator[_Place]:
    nodes = list(ast.walk(tree))
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    names = NamesMet(nodes)
    typing_only = for_types_alone(nodes)
    function_of = functions_of(nodes)
    looks_up = {
        function_of.get(id(node)) for node in nodes if isinstance(node, ast.Call) and names(node.func) in _FRAMES
    }
    forks = {function_of.get(id(node)) for node in nodes if isinstance(node, ast.Call) and names(node.func) in _FORKS}
    for node in nodes:
        if id(node) in typing_only:
            continue
        if function_of.get(id(node)) in looks_up and id(node) not in prose:
            if isinstance(node, ast.Attribute) and node.attr in _TEXTS:  # it reads what its callers say
                yield _Place(SuspicionRule.RUNNER_REACHED, node, (unparsed(node),))
            text = (text_of(node) or "")[:200]
            if _TESTISH.search(text):  # it looks for tests among its callers
                yield _Place(SuspicionRule.RUNNER_ASKED, node, (text,))
        yield from _imported(node, names)
        yield from _replaced(node, names)
        yield from _moved(node, names)
        yield from _of_plugin(node)
        yield from _reached(node, prose, names)
        yield from _asked(node, prose, names)
        if isinstance(node, ast.Call):
            if names(node.func) == "os._exit" and function_of.get(id(node)) not in forks:
                yield _Place(SuspicionRule.PROCESS_ENDED, node, ("os._exit",))
            elif names(node.func) == "atexit.register" and re.search(r"_exit|exitstatus|os\.kill", unparsed(node)):
                yield _Place(SuspicionRule.PROCESS_ENDED, node)
    for node in equals_everything(nodes):
        yield _Place(SuspicionRule.EQUALS_EVERYTHING, node)
    for node in decides_by_line(nodes, function_of, looks_up):
        yield _Place(SuspicionRule.RUNNER_ASKED, node, (unparsed(node),))
    for node in live_objects(nodes):
        yield _Place(SuspicionRule.EQUALS_EVERYTHING, node)
    for node in runs_encoded(nodes, names):
        yield _Place(SuspicionRule.UNREADABLE, node)
    for running in run_at_import(tree.body) if at_import else ():
        if isinstance(running, ast.Call) and _NETWORK.fullmatch(names(running.func)):
            yield _Place(SuspicionRule.ACTS_AT_IMPORT, running)


def _imported(node: ast.AST, names: NamesMet) -> Iterator[_Place]:
    modules: list[str] = []
    match node:
        case ast.Import(names=aliases):
            modules = [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module), level=0):
            modules = [module]
        case ast.Call(func=func, args=[argument, *_]) if names(func).rpartition(".")[2] in {
            "import_module",
            "__import__",
        }:
            modules = [joined(argument)]
    for module in modules:
        if _MACHINERY.match(module):
            root = module.partition(".")[0]
            yield _Place(SuspicionRule.MACHINERY_IMPORTED, node, (f"import {root}", f"from {root}"))


def _replaced(node: ast.AST, names: NamesMet) -> Iterator[_Place]:
    match node:
        case ast.Call(func=func, args=[first, second, *_]) if names(func) in _SETTERS:
            name = text_of(first) or f"{names(first)}.{joined(second) or 'x'}"
            if _is_runners(name, names) and not names.own(first):
                yield _Place(SuspicionRule.MACHINERY_REPLACED, node, (name,))
        case ast.Call(func=ast.Attribute(value=value, attr="__setattr__" | "__delattr__"), args=[first, *more]):
            changed, part = (first, more[0]) if dotted(value) in {"type", "object"} and more else (value, first)
            name = f"{names(changed)}.{joined(part) or 'x'}"
            if _is_runners(name, names) and not names.own(changed):
                yield _Place(SuspicionRule.MACHINERY_REPLACED, node, (name,))
    shown: ast.AST = node.target if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) else node
    for place in (it for target in _targets(node) for it in ast.walk(target)):
        name = names(place)
        match place:
            case ast.Subscript(ctx=ast.Store() | ast.Del(), slice=key):
                if (name == "sys.modules" and _MACHINERY.match(joined(key))) or (
                    name.endswith(".__dict__") and _is_runners(name, names)
                ):
                    yield _Place(SuspicionRule.MACHINERY_REPLACED, shown)
            case ast.Attribute(ctx=ast.Store() | ast.Del()) if _is_runners(name, names) and not names.own(place):
                yield _Place(SuspicionRule.MACHINERY_REPLACED, shown, (dotted(place),))


def _moved(node: ast.AST, names: NamesMet) -> Iterator[_Place]:
    """Another folder for a package's modules."""
    match node:
        case ast.Assign(value=ast.Call(func=func)) if names(func).endswith("extend_path"):
            return  # as namespace packages do
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="__path__"), attr="append" | "insert" | "extend" | "__setitem__")
        ):
            yield _Place(SuspicionRule.MACHINERY_REPLACED, node, ("__path__",))
    for target in _targets(node):
        match target:
            case ast.Name(id="__path__") | ast.Subscript(value=ast.Name(id="__path__")):
                yield _Place(SuspicionRule.MACHINERY_REPLACED, node, ("__path__",))


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.AugAssign(target=target):
            return [target]
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            return [target]
        case ast.withitem(optional_vars=ast.expr() as target):
            return [target]
    return []


def _is_runners(name: str, names: NamesMet) -> bool:
    if _LIKE_ITS_PARTS.fullmatch(name):
        return bool(_MACHINERY.match(name)) or any(map(_MACHINERY.match, names.modules))
    return bool(_ITS_PARTS.fullmatch(name) or _PYTHONS_OWN.fullmatch(name))


def _of_plugin(node: ast.AST) -> Iterator[_Place]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _HOOKS.fullmatch(name):
            yield _Place(SuspicionRule.MACHINERY_REGISTERED, node, (f"def {name}", "pytest.hookimpl"))
        case ast.Assign(targets=[ast.Name(id="pytest_plugins")]):
            yield _Place(SuspicionRule.MACHINERY_REGISTERED, node, ("pytest_plugins",))
        case ast.Call(func=ast.Attribute(value=value, attr="register")) if "pluginmanager" in dotted(value):
            yield _Place(SuspicionRule.MACHINERY_REGISTERED, node, ("pluginmanager.register",))


def _reached(node: ast.AST, prose: set[int], names: NamesMet) -> Iterator[_Place]:
    match node:
        case ast.Attribute() | ast.Name() if names(node) in _REACHES and not isinstance(node.ctx, ast.Store):
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (names(node).rpartition(".")[2],))
        case ast.Attribute(attr=attr, ctx=ast.Store()) if _ASSERTION.fullmatch(attr) or _ROUND_TRIPS.fullmatch(
            names(node)
        ):
            yield _Place(SuspicionRule.MACHINERY_REPLACED, node, (f"{unparsed(node)} =",))
        case ast.Attribute(attr=attr, ctx=ctx) if attr in _DEEP | _PROBES or (
            attr in ("__code__", "cell_contents") and isinstance(ctx, ast.Store)
        ):
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (attr,))
        case ast.Attribute(value=ast.Attribute(attr="__code__" | "cell_contents" as attr), attr="__set__"):
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (attr,))
        case ast.While() | ast.For() if any(
            isinstance(it, ast.Attribute) and it.attr == "f_back" for it in ast.walk(node)
        ):
            yield _Place(SuspicionRule.RUNNER_REACHED, node, ("f_back",))
        case ast.Call(func=func) if names(func) in {*_OF_LINES, "traceback.StackSummary.extract", "types.CellType"}:
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (names(func).rpartition(".")[2],))
        case ast.Call(func=ast.Name(id="getattr"), args=[_, part, *_]) if joined(part) in _DEEP | _NAMED | {"f_back"}:
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (joined(part),))
        case ast.Call(func=func, args=args) if names(func) in _READERS and any(
            isinstance(it, ast.Attribute) and it.attr == "co_filename" for arg in args for it in ast.walk(arg)
        ):
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (unparsed(node),))
        case ast.Attribute() | ast.Name() if names(node) == "ast.Assert":  # it reads what tests ask for
            yield _Place(SuspicionRule.RUNNER_REACHED, node, ("ast.Assert",))
        case ast.Constant(value=str(value)) if id(node) not in prose and len(value) < 200 and _MEMORY.search(value):
            yield _Place(SuspicionRule.RUNNER_REACHED, node, (value,))
        case ast.JoinedStr() if _MEMORY.search(text_of(node) or ""):
            yield _Place(SuspicionRule.RUNNER_REACHED, node)


def _asked(node: ast.AST, prose: set[int], names: NamesMet) -> Iterator[_Place]:
    match node:
        case ast.Constant(value=str(value)) if id(node) not in prose and len(value) < 80:
            if match := RUNNER_SIGNS.search(value):
                yield _Place(SuspicionRule.RUNNER_ASKED, node, (match[0],))
        case ast.Call(func=ast.Attribute(value=value), args=args) if names(value).startswith("sys.argv"):
            if asked := _runner_of([value, *args], names):
                yield _Place(SuspicionRule.RUNNER_ASKED, node, (asked,))
        case ast.Compare(left=left, comparators=rights):
            if value := _runner_of([left, *rights], names):
                yield _Place(SuspicionRule.RUNNER_ASKED, node, (value,))
        case ast.Subscript(value=value, slice=key) if names(value) == "sys.modules":
            if _RUNNER_MODULE.match(joined(key)):
                yield _Place(SuspicionRule.RUNNER_ASKED, node)
        case ast.Call(func=ast.Attribute(value=value, attr="get" | "pop"), args=[key, *_]) if names(
            value
        ) == "sys.modules" and _RUNNER_MODULE.match(joined(key)):
            yield _Place(SuspicionRule.RUNNER_ASKED, node)


def _runner_of(sides: list[ast.expr], names: NamesMet) -> str:
    found = {names(side) for side in sides}
    values = [value for side in sides for value in (*literals(side), joined(side)) if value]
    if "sys.modules" in found:
        return next((value for value in values if _RUNNER_MODULE.match(value)), "")
    if any(name.startswith("sys.argv") or name == "os.path.basename" for name in found):
        return next((value for value in values if _RUNNERS.search(value)), "")
    return ""
