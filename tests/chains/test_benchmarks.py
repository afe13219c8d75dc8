"""What is known of evaluation benchmarks, and what a user adds."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from chains.stages.benchmarks import Benchmarks
from prchain.core.errors import BenchmarkListError

SIZES = {
    "SWE-bench": 19,
    "SWE-bench Multimodal": 17,
    "SWE-bench Multilingual": 41,
    "Multi-SWE-bench": 39,
    "SWE-bench Pro": 11,
    "SWE-PolyBench": 21,
}


def test_the_lists_are_as_long_as_their_sources_and_hold_no_name_twice() -> None:
    table = tomllib.loads(files("chains.stages").joinpath("benchmarks.toml").read_text(encoding="utf-8"))["benchmark"]
    lists = {benchmark["name"]: [name.lower() for name in benchmark["repositories"]] for benchmark in table}
    assert {name: len(found) for name, found in lists.items()} == SIZES
    for found in lists.values():
        assert len(set(found)) == len(found)
        assert all(re.fullmatch(r"[\w-]+/[\w.-]+", name) for name in found)


@pytest.mark.parametrize(
    ("full_name", "benchmark"),
    [
        ("sympy/sympy", "SWE-bench"),
        ("Pytest-Dev/PyTest", "SWE-bench"),
        ("prettier/prettier", "SWE-bench Multimodal, SWE-PolyBench"),
        ("tokio-rs/tokio", "SWE-bench Multilingual, Multi-SWE-bench"),
        ("nodebb/nodebb", "SWE-bench Pro"),
        ("pola-rs/polars", None),
        ("somebody/sympy", None),
    ],
)
def test_repositories_of_benchmarks_are_known_by_name(full_name: str, benchmark: str | None) -> None:
    assert Benchmarks.load().repository(full_name) == benchmark


def test_a_list_of_instances_is_read_in_each_form(tmp_path: Path) -> None:
    path = tmp_path / "held_out.txt"
    path.write_text(
        "\ufeff# held out\n\nowner/name#12\n  Owner/na.me#13  # two\nowner__name-14\nmy-org__jackson-core-15\n"
        "o__three.js-16__s2\no__x-17.reworded\nhttps://github.com/o/x/pull/18\ninstance_o__x-19\no__x_y-20\n"
    )
    benchmarks = Benchmarks.load(path)
    assert benchmarks.instances == {
        ("owner/name", 12),
        ("owner/na.me", 13),
        ("owner/name", 14),
        ("my-org/jackson-core", 15),
        ("o/three.js", 16),
        ("o/x", 17),
        ("o/x", 18),
        ("o/x", 19),
        ("o/x_y", 20),
    }
    assert benchmarks.contains("OWNER/Name", 12)
    assert not benchmarks.contains("owner/name", 15)
    assert benchmarks.repository("sympy/sympy") == "SWE-bench"


def test_without_a_list_no_instance_is_known() -> None:
    assert not Benchmarks.load().contains("sympy/sympy", 1)


@pytest.mark.parametrize(
    "line", ["owner/name", "owner name#1", "owner/name#x", "name-12", "__x-1", "a/b#1 c/d#2", "o/x#"]
)
def test_a_bad_line_is_named_with_its_place(line: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(f"owner/name#1\n{line}\n")
    with pytest.raises(BenchmarkListError) as caught:
        Benchmarks.load(path)
    assert str(caught.value) == f"list.txt, line 2: {line!r} is no instance; write owner/name#N or owner__name-N"
    assert caught.value.exit_code == 2


def test_a_list_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkListError, match=r"absent\.txt cannot be read: No such file or directory$"):
        Benchmarks.load(tmp_path / "absent.txt")
    (tmp_path / "latin").write_bytes(b"caf\xe9/x#1")
    with pytest.raises(BenchmarkListError, match="is not UTF-8 text"):
        Benchmarks.load(tmp_path / "latin")
