"""What hidden tests need: how it is told, stored and held against a query."""

from __future__ import annotations

import pytest

from prchain.core.code.needs import Need, full_query, interface_of, names_of, parse_needs, unmet, verdict_of, worst

SIZE = Need("parameter", "max_size", "dump_cookie", "src/http.py", ("tests/test_http.py::TestDump::test_long",))
LARGE = Need("text", "cookie is too large", tests=("tests/test_http.py",))
LONG = Need("text", "x" * 300, tests=("tests/test_http.py::test_all",), withheld="longer than 200 characters")


def test_names_and_texts_stand_below_the_query_each_with_its_place() -> None:
    text = full_query("Do it.", [SIZE, LARGE])
    assert text.startswith("Do it.\n\nInterface: ")
    assert "- `max_size`: parameter of `dump_cookie`, src/http.py\n" in text
    assert text.endswith('\n- "cookie is too large"')
    assert full_query("Do it.", []) == "Do it."


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (Need("function", "now", "", "a/io.py"), "`now`: function, a/io.py"),
        (Need("method", "close", "Pool", "a.py"), "`close`: method of `Pool`, a.py"),
        (Need("name", "now"), "`now`"),
        (Need("name", "now", "", "a.rs"), "`now`: a.rs"),
        (Need("text", 'say "no"\t'), '"say \\"no\\"\\t"'),
    ],
)
def test_the_words_of_a_need_name_what_is_known_of_it(need: Need, words: str) -> None:
    assert need.words() == words


def test_the_paper_tells_no_interface_and_what_is_withheld_is_never_told() -> None:
    assert interface_of([SIZE, LONG]) == (SIZE,)
    assert interface_of([SIZE, LONG], "paper") == ()


def test_a_need_is_met_by_the_interface_or_by_the_words_of_the_query() -> None:
    needs = [SIZE, LARGE, LONG]
    assert unmet("Do it.", needs) == [LONG]
    assert unmet("Do it.", needs, "paper") == needs
    assert unmet("Take max_size; say that the cookie\n is too large.", needs, "paper") == [LONG]
    assert unmet("Take max_sizes.", [SIZE], "paper") == [SIZE]


def test_where_tests_are_proved_only_what_these_use_is_needed() -> None:
    ids = ["tests/test_http.py::TestDump::test_long[a]", "tests/test_other.py::test_all"]
    assert unmet("", [SIZE, LARGE, LONG], "paper", ids) == [SIZE, LARGE]
    assert unmet("", [SIZE, LONG], "paper", ["tests/test_http.py::TestDump::test_longer"]) == []
    assert unmet("", [SIZE], "paper", ["pkg TestLong"]) == [SIZE]
    assert unmet("", [SIZE], "paper", []) == []


def test_what_is_stored_is_read_again_and_a_bare_name_too() -> None:
    needs = (SIZE, LARGE, LONG)
    assert parse_needs([need.row() for need in needs]) == needs
    assert parse_needs(["now"]) == (Need("name", "now"),)
    assert parse_needs([{"kind": "no such", "text": "now"}]) == (Need("name", "now"),)


def test_the_ids_of_cargo_name_no_file() -> None:
    """`demo src/a.rs tests::reads` was taken for a test of a file `demo src/a.rs tests`."""
    need = Need("name", "max_depth", tests=("src/a.rs",))
    assert unmet("", [need], "paper", ["demo src/a.rs tests::reads"]) == [need]


def test_a_verdict_is_the_worst_of_what_is_known() -> None:
    unseen = Need("unseen", "tests/a.rb", withheld="tests in ruby are not read")
    assert [verdict_of(needs) for needs in ([], [unseen], [unseen, LONG])] == ["solvable", "unseen", "not_solvable"]
    assert worst(["solvable", "not_solvable", "unseen"]) == "not_solvable"
    assert interface_of([unseen]) == () and names_of([unseen]) == ()
    assert unmet("tests/a.rb", [unseen]) == [unseen]
