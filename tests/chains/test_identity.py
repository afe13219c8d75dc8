"""The id of a chain is what the chain is."""

from __future__ import annotations

from chains.identity import LENGTH, chain_id

STAGES = [(1, "a" * 40), (2, "b" * 40)]


def test_the_id_depends_on_repository_numbers_commits_and_order_and_on_nothing_else() -> None:
    first = chain_id("github.com", "Shop/Till", STAGES)
    assert first == chain_id("github.com", "shop/till", STAGES)
    others = [
        chain_id("github.com", "shop/other", STAGES),
        chain_id("example.org", "shop/till", STAGES),
        chain_id("github.com", "shop/till", STAGES[::-1]),
        chain_id("github.com", "shop/till", [(1, "a" * 40), (2, "c" * 40)]),
        chain_id("github.com", "shop/till", [(1, "a" * 40), (3, "b" * 40)]),
    ]
    assert len({first, *others}) == 6
    assert len(first) == LENGTH


def test_an_id_is_the_same_on_every_machine() -> None:
    assert chain_id("github.com", "shop/till", STAGES) == "535acb4df26497b1"
