"""What the shape of the code counts; and that a class of the installed packages has a name of its own."""

from __future__ import annotations

from pathlib import Path

from research.shape import code_lines, longest_way, modules, shared_names

ONE_NOUN = {
    "Chain": {"prchain/api.py", "sql/tables/chained.py"},
    "ChainStage": {"prchain/api.py", "sql/tables/chained.py"},
    "Citation": {"miner/citations/model.py", "sql/tables/mined.py"},
    "Proof": {"prchain/api.py", "environments/proofs/proof.py"},
    "Repository": {"prchain/api.py", "sql/tables/mined.py"},
    "Trajectory": {"prchain/api.py", "sql/tables/rolled.py"},
}
"""Names that several classes have because they are views of one thing: its table, and what is handed out of it."""

SOURCE = '''
"""A docstring
of two lines."""

# a comment
X = """a text
that is no docstring"""  # counts twice


def f(
    a,
):
    """Nothing."""
    return a
'''


def test_a_line_of_code_is_one_with_code_on_it() -> None:
    assert code_lines(SOURCE) == 6
    assert code_lines("") == code_lines('"""Only words."""\n') == 0


def test_no_two_classes_of_the_installed_packages_share_a_name() -> None:
    texts = modules(Path(__file__).parents[2])
    assert len(texts) > 500
    assert {name: set(paths) for name, paths in shared_names(texts).items()} == ONE_NOUN


def test_floors_are_counted_along_the_longest_way_of_imports_that_run() -> None:
    texts = {
        "sql/a.py": "from sql import b\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sql.e import E",
        "sql/b.py": "import os\ntry:\n    from sql.c import C\nfinally:\n    pass",
        "sql/c.py": "class C:\n    def f(self):\n        import sql.d",
        "sql/d/__init__.py": "",
        "sql/e.py": "import sql.a",
        "tests/t.py": "import sql.e",
    }
    assert longest_way(texts, inside=True) == ["sql.e", "sql.a", "sql.b", "sql.c", "sql.d"]
    assert longest_way(texts, inside=False) == ["sql.e", "sql.a", "sql.b", "sql.c"]
