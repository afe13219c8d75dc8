"""The shape of the code: `python -m research.shape [FOLDER]` of a checkout, here without one.

Prints a row a package with its modules and its lines of code; of the installed packages the largest modules, the names
that several classes have, and the floors: how many modules stand on one another, along the longest way of imports; of
this checkout also the commands with many options, and the longest page of help. A line of code has a token that is
neither comment nor docstring.
Compare checkouts after the formatter, which sets the lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import networkx as nx

from prchain.core.console.terminal import counted, say, say_table

INSTALLED = ("prchain", "sql", "miner", "chains", "environments", "trajectories")
PACKAGES = (*INSTALLED, "research", "tests")
_LARGEST = 10
_HERE = Path(__file__).parents[1]
_MANY = 20
"""Commands with more options are named."""
_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines with code on them. Raises `SyntaxError`."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def modules(root: Path) -> dict[str, str]:
    """Path from the root to text, of every Python module of the project's packages."""
    found = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in found}


def shared_names(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Class name to modules, of the names that several modules of the installed packages give to a class."""
    named: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        if path.startswith(tuple(f"{package}/" for package in INSTALLED)):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    named[node.name].append(path)
    return {name: paths for name, paths in sorted(named.items()) if len(paths) > 1}


def longest_way(texts: Mapping[str, str], *, inside: bool) -> list[str]:
    """The longest way of imports among the installed packages, from its top: dotted names.

    Those inside functions count where `inside`; those for the checker of types alone never do. Raises
    `networkx.NetworkXUnfeasible` where imports go round.
    """
    installed = {_dotted(path): text for path, text in texts.items() if path.partition("/")[0] in INSTALLED}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(installed)
    for name, text in installed.items():
        graph.add_edges_from((name, other) for other in _imports(ast.parse(text), installed, inside) if other != name)
    return nx.dag_longest_path(graph)


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _imports(node: ast.AST, known: Mapping[str, str], inside: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in known)
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    yield from [name for name in (f"{module}.{alias.name}", module) if name in known][:1]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not inside:
                continue
            case _:
                yield from _imports(child, known, inside)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the shape of a checkout."""
    parser = argparse.ArgumentParser(prog="python -m research.shape", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=_HERE)
    root = parser.parse_args(arguments).folder
    texts = modules(root)
    lines = {path: code_lines(text) for path, text in texts.items()}
    rows: dict[str, list[int]] = {package: [] for package in PACKAGES}
    for path, count in lines.items():
        rows[path.partition("/")[0]].append(count)
    table = [[package, f"{len(counts):,}", f"{sum(counts):,}"] for package, counts in rows.items()]
    installed = [count for package in INSTALLED for count in rows[package]]
    table.append(["installed", f"{len(installed):,}", f"{sum(installed):,}"])
    say_table(["package", "modules", "lines of code"], table)
    say()
    owned = [(path, count) for path, count in lines.items() if path.partition("/")[0] in INSTALLED]
    largest = sorted(owned, key=lambda item: -item[1])[:_LARGEST]
    say_table(["largest modules installed", "lines of code"], [[path, f"{count:,}"] for path, count in largest])
    say()
    shared = shared_names(texts)
    say(counted(len(shared), "class name") + " of several modules")
    for name, paths in shared.items():
        say(f"  {name}: {', '.join(paths)}")
    say()
    ways = [longest_way(texts, inside=inside) for inside in (True, False)]
    say(f"{len(ways[0])} floors with imports inside functions, {len(ways[1])} at the top of modules")
    for name in ways[0]:
        say(f"  {name}")
    if root.resolve() == _HERE:
        _say_options()


def _say_options() -> None:
    from research.options_page import all_commands

    shown = sorted(all_commands(), key=lambda one: (-len(one.options), one.words))
    longest = max(shown, key=lambda one: one.help_lines)
    many = [one for one in shown if len(one.options) > _MANY]
    say()
    rows = [[one.words, len(one.options), one.help_lines] for one in many]
    say_table([f"of {len(shown)} commands those over {_MANY} options", "options", "lines of help"], rows)
    say(f"the longest page of help is of `{longest.words}`: {longest.help_lines} lines at 80 columns")


if __name__ == "__main__":
    main()
