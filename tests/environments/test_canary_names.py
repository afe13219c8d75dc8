"""Names of canaries, beside those of the repository's other tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from environments.suites.canaries.names import NewNames, unused_word
from environments.workplace import StageSuite
from tests.environments.stageworld import Changes, stage_world, test_file

INHERITED = {f"test_{first}_{second}" for first in ("sign", "load") for second in ("key", "bytes", "file")}


def test_no_canary_has_the_name_of_another_file_s_test_which_a_class_could_inherit(tmp_path: Path) -> None:
    """In the place of an inherited test a canary took that one out of the run: tests of itsdangerous were flaky."""
    bodies = {name.removeprefix("test_"): "self.fail()" for name in sorted(INHERITED)}
    start: Changes = {"tests/test_signer.py": test_file("cart", **bodies)}
    names = set()
    with stage_world(tmp_path, start=start, chains=((1,),)) as world:
        suite = StageSuite.of(world.workplace(), world.chain.stages[0], world.patches())
        assert suite.files == ("tests/test_prices.py",)
        for _ in range(15):
            names |= {it.name for it in suite.planted(suite.landed, None).canaries}
    assert names and not names & INHERITED


def with_own(tests: Sequence[str], names: Collection[str]) -> float:
    """The share of names with a word that no test's name has but the one itself."""
    known = Counter(word for name in tests for word in {*name.lower().split("_")})
    least = 1 if names is tests else 0
    return sum(any(known[word] == least for word in name.lower().split("_")) for name in names) / len(names)


def test_as_many_canaries_as_tests_have_a_word_of_their_own() -> None:
    tests = [f"test_{verb}_{noun}" for verb in ("load", "sign", "pack") for noun in ("key", "file")]
    tests += ["test_sign_unicode", "test_load_twice", "test_pack_nothing"]
    words = ["Signer", "unsign_all", "payload", "separator", "salted"]
    made = [NewNames.of_functions(tests, tests, words).draw(Random(seed), tests) for seed in range(400)]
    assert abs(with_own(tests, made) - with_own(tests, tests)) < 0.1
    assert {"payload", "separator", "signer"} & {word for name in made for word in name.split("_")}
    none = [NewNames.of_functions(tests[:6], tests[:6], words).draw(Random(seed), tests[:6]) for seed in range(50)]
    assert not {"payload", "separator", "signer"} & {word for name in none for word in name.split("_")}


def test_titles_have_the_beginning_of_one_and_the_end_of_another() -> None:
    titles = ["should make a session", "should keep what it is given", "ends (twice)", "knows ${it} \\n"]
    words = {word for title in titles for word in title.split(" ")}
    for seed in range(100):
        title = NewNames.of_titles(titles, ["store"]).draw(Random(seed), titles)
        begin = title.split(" ")[0]
        assert begin in {"should", "ends", "knows"} and title not in titles and len(title.split(" ")) >= 2
        assert {*title.split(" ")} <= {*words, "it", "n", "store"} and not {*"${}\\'\"`"} & {*title}


@given(st.lists(st.text(), min_size=1), st.lists(st.text()), st.integers())
def test_any_names_make_a_new_one_that_no_other_has(tests: list[str], identifiers: list[str], seed: int) -> None:
    for names in (NewNames.of_functions(tests, (), identifiers), NewNames.of_titles(tests, identifiers)):
        assert names.draw(Random(seed), tests) not in tests


def test_a_new_word_is_no_reserved_one() -> None:
    """A canary of mocha began with `const null`, and its file could not be read."""

    class Dice(Random):
        def randint(self, a: int, b: int) -> int:
            return 4

        def choice(self, seq: Any) -> Any:
            return letters.pop(0)

    letters = [*"null", *"abcdef"]
    assert unused_word("", Dice()) == "nullabcdef"
