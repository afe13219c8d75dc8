"""Manifests whose values are of other types than their format wants: what cannot be read counts as not said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.images.plans import Pythons, make_plan
from environments.images.python_project import read_project

PATHS = [
    ("build-system",),
    ("build-system", "requires"),
    ("build-system", "build-backend"),
    ("project",),
    ("project", "name"),
    ("project", "dependencies"),
    ("project", "requires-python"),
    ("project", "dynamic"),
    ("project", "optional-dependencies"),
    ("project", "optional-dependencies", "test"),
    ("dependency-groups",),
    ("dependency-groups", "test"),
    ("tool",),
    ("tool", "poetry"),
    ("tool", "poetry", "name"),
    ("tool", "poetry", "package-mode"),
    ("tool", "poetry", "extras"),
    ("tool", "poetry", "dependencies"),
    ("tool", "poetry", "dependencies", "python"),
    ("tool", "poetry", "dev-dependencies"),
    ("tool", "poetry", "dev-dependencies", "a"),
    ("tool", "poetry", "group"),
    ("tool", "poetry", "group", "test"),
    ("tool", "poetry", "group", "test", "dependencies"),
    ("tool", "poetry", "group", "test", "dependencies", "a"),
    ("tool", "poetry", "group", "test", "dependencies", "a", "extras"),
    ("tool", "poetry", "group", "test", "dependencies", "a", "git"),
    ("tool", "uv"),
    ("tool", "uv", "dev-dependencies"),
    ("tool", "uv", "workspace"),
    ("tool", "uv", "workspace", "members"),
    ("tool", "uv", "workspace", "exclude"),
    ("tool", "pdm"),
    ("tool", "pdm", "dev-dependencies"),
    ("tool", "pdm", "dev-dependencies", "test"),
    ("tool", "hatch"),
    ("tool", "hatch", "envs"),
    ("tool", "hatch", "envs", "default"),
    ("tool", "hatch", "envs", "default", "dependencies"),
    ("tool", "hatch", "envs", "default", "extra-dependencies"),
    ("tool", "setuptools"),
    ("tool", "setuptools", "dynamic"),
    ("tool", "setuptools", "dynamic", "dependencies"),
    ("tool", "setuptools", "dynamic", "dependencies", "file"),
    ("tool", "setuptools", "dynamic", "optional-dependencies"),
    ("tool", "setuptools", "dynamic", "optional-dependencies", "test"),
    ("package",),
    ("package", "name"),
    ("package", "source"),
]
"""Keys that readers ask for; the last three are those of lock files."""
ODD: tuple[Any, ...] = (
    5,
    1.5,
    True,
    "",
    "x",
    [],
    {},
    [5],
    [[]],
    [{}],
    ["a", 5],
    {"a": 5},
    {"": []},
    {"include-group": "test"},
)

LEAVES = st.integers() | st.booleans() | st.floats() | st.text(st.characters(min_codepoint=32, max_codepoint=126))
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


def toml(value: Any) -> str:
    """A value as TOML; tables within a line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(it)}" for key, it in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}.get(text := json.dumps(value), text)


def document(values: list[tuple[tuple[str, ...], Any]]) -> str:
    tables: dict[str, Any] = {}
    for path, value in values:
        table = tables
        for name in path[:-1]:
            table = table[name] if isinstance(table.get(name), dict) else table.setdefault(name + "x", {})
        table[path[-1]] = value
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in tables.items())


def nested(path: tuple[str, ...], value: Any) -> str:
    for name in reversed(path[1:]):
        value = {name: value}
    return f"{json.dumps(path[0])} = {toml(value)}\n"


class Tree:
    """A tree of texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.paths = frozenset(texts)

    def read(self, path: str) -> bytes:
        return self.texts[path].encode("utf-8", "surrogatepass")

    def write_tar(self, file: IO[bytes], owner: int) -> None:
        raise NotImplementedError


def plan(**texts: str) -> None:
    pythons = Pythons(frozenset({(3, 8), (3, 11)}), (3, 11), datetime(2023, 1, 1, tzinfo=UTC))
    make_plan(
        "o/n", Tree({name.replace("__", "."): text for name, text in texts.items()}), base_image="b", pythons=pythons
    )


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_a_value_of_another_type_ends_no_plan(path: tuple[str, ...]) -> None:
    for value in ODD:
        text = nested(path, value)
        plan(pyproject__toml=text, poetry__lock=text, uv__lock=text, Pipfile__lock=json.dumps({"default": value}))


def test_what_is_said_beside_it_still_counts() -> None:
    text = '[project]\nname = 3\ndependencies = "x"\n[build-system]\nrequires = 5\n[dependency-groups]\ntest = ["a"]\n'
    found = read_project({"pyproject.toml": text})
    assert (found.installable, found.groups) == (True, {"test": ("a",)})


@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES), max_size=4))
def test_any_values_end_no_plan(values: list[tuple[tuple[str, ...], Any]]) -> None:
    plan(pyproject__toml=document(sorted(values, key=lambda it: len(it[0]))))


_LINES = st.sampled_from(
    ["[options]", "[options.extras_require]", "[metadata]", "[tool:pytest]", "[testenv]", "[", "]", "name", "name = ",
     "install_requires", "install_requires =", "    a>1", "tests_require = a; b", "python_requires = 3", "deps = %(x)s",
     "extras = a,b", "\ttest", "test : x", "= y", "# c", "\x0b", "[options]x"]
)  # fmt: skip


@given(st.lists(_LINES | st.text(max_size=12), max_size=12).map("\n".join))
def test_any_lines_of_a_configuration_end_no_plan(text: str) -> None:
    plan(setup__cfg=text, tox__ini=text, setup__py="from setuptools import setup\nsetup()\n")
