"""What titles have in common."""

from __future__ import annotations

from chains.edges.titles import TitleWords

TITLES = {
    1: "Add quiet mode to the exporter",
    2: "Fix exporters in quiet mode",
    3: "Parse hexFloat literals",
    4: "feat: parse HexFloats with sign",
    5: "Add mode",
    6: "Update docs",
}


def test_rare_words_weigh_more_than_those_that_many_titles_have() -> None:
    words = TitleWords(TITLES)
    assert words.common(1, 2)[1] == ("export", "quiet", "mode")
    assert words.common(1, 2)[0] > words.common(1, 5)[0] > 0


def test_names_are_compared_by_their_parts_and_without_endings() -> None:
    assert TitleWords(TITLES).common(3, 4)[1] == ("float", "hex", "parse")


def test_everyday_words_are_nothing_in_common() -> None:
    assert TitleWords(TITLES).common(1, 6) == (0, ())
