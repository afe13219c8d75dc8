"""Which pull requests the filters refuse, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains.edges.graph import Sign
from chains.meanings import MEANINGS
from chains.stages.filters import OUTCOMES, PERMISSIVE, Filters, PullFacts, drop
from chains.stages.worth import StageWorth
from prchain.core.code.reference import Reference, split
from prchain.core.errors import SettingsError
from prchain.core.git.patches import FilePatch, Hunk


def patch(path: str, lines: int = 10) -> FilePatch:
    return FilePatch(path, hunks=(Hunk(1, 0, 1, lines, "", tuple(f"+call_{n}()" for n in range(lines))),))


def reference(*paths: str) -> Reference:
    return split([patch(path) for path in paths])


COMMENT = split([FilePatch("src/a.py", hunks=(Hunk(1, 0, 1, 6, "", ("+# why",) * 6),))])
GOOD = PullFacts(7, "Stream results of the parser", reference("src/a.py", "tests/test_a.py"), licence="MIT")

RENAMED = split(
    [FilePatch("src/shop.py", hunks=(Hunk(1, 5, 1, 5, "", ("-cart = Cart()",) * 5 + ("+cart = Basket()",) * 5),))]
)
_LINES = tuple(f"call_{n}({n})" for n in range(10))
MOVED = split(
    [
        FilePatch("src/a.py", hunks=(Hunk(1, 10, 1, 0, "", tuple(f"-{line}" for line in _LINES)),)),
        FilePatch("src/b.py", hunks=(Hunk(1, 0, 1, 10, "", tuple(f"+{line}" for line in _LINES)),)),
    ]
)
DROPPED = {
    "benchmark_repository": replace(GOOD, benchmark="SWE-bench"),
    "benchmark_instance": replace(GOOD, benchmark_instance=True),
    "licence_unknown": replace(GOOD, licence=None),
    "licence": replace(GOOD, licence="GPL-3.0"),
    "patch_unreadable": replace(GOOD, reference=None),
    "nothing_changed": replace(GOOD, reference=Reference()),
    "revert": replace(GOOD, reverts=3),
    "reverted": replace(GOOD, reverted_by=9),
    "backport": replace(GOOD, backport_of=3),
    "dependency_bump": replace(GOOD, subject="Bump django from 4.1 to 4.2", reference=reference("requirements.txt")),
    "release": replace(GOOD, subject="Release 1.2.0", reference=reference("CHANGELOG.md", "src/_version.py")),
    "bot_housekeeping": replace(GOOD, by_bot=True, subject="Update the sponsors", reference=reference("sponsors.yaml")),
    "docs_only": replace(GOOD, reference=reference("docs/a.md", "README.md")),
    "tests_only": replace(GOOD, reference=reference("tests/test_a.py")),
    "ci_only": replace(GOOD, reference=reference(".github/workflows/ci.yml")),
    "lock_only": replace(GOOD, reference=reference("uv.lock")),
    "generated_only": replace(GOOD, reference=reference("api/a_pb2.py")),
    "vendored_only": replace(GOOD, reference=reference("vendor/a/a.go")),
    "no_source": replace(GOOD, reference=reference("docs/a.md", "tests/test_a.py")),
    "config_only": replace(GOOD, reference=reference("pyproject.toml", "tests/test_a.py")),
    "data_only": replace(GOOD, reference=reference("src/prompt.yaml", "pyproject.toml")),
    "cosmetic": replace(GOOD, reference=COMMENT),
    "renames_only": replace(GOOD, reference=RENAMED),
    "moves_only": replace(GOOD, reference=MOVED),
    "source_too_small": replace(GOOD, reference=split([patch("src/a.py", 4), patch("tests/test_a.py", 90)])),
    "source_too_large": replace(GOOD, reference=split([patch("src/a.py", 1501)])),
    "too_many_files": replace(GOOD, reference=reference(*(f"src/{n}.py" for n in range(41)))),
    "language": replace(GOOD, reference=reference("src/a.rb")),
    "outside_paths": replace(GOOD, reference=reference("notes/a.py", "lib/a.py")),
    "no_text": replace(GOOD, subject="fix: update src/a.py (#7)"),
    "no_tests": replace(GOOD, reference=reference("src/a.py", "tests/conftest.py", "tests/data/a.json")),
    "low_worth": replace(GOOD, worth=StageWorth(0.2, (Sign("mechanical_subject", -1.5, "rename"),))),
    "tree_incomplete": replace(GOOD, missing_files=2),
}
ASKED = Filters(
    languages=frozenset({"python", "rust", "go"}), paths=("src/*", "lib/*", "!lib/a*"), with_tests=True, min_worth=0.3
)


@pytest.mark.parametrize("outcome", DROPPED)
def test_each_filter_names_its_outcome_and_a_reason(outcome: str) -> None:
    found = drop(DROPPED[outcome], ASKED)
    assert found is not None
    assert found[0] == outcome
    assert found[1] and "\n" not in found[1]


@pytest.mark.parametrize("outcome", DROPPED)
def test_each_filter_can_be_switched_off_alone(outcome: str) -> None:
    found = drop(DROPPED[outcome], replace(ASKED, keep=frozenset({outcome, "no_tests"})))
    assert found is None or (found[0] != outcome and outcome in {"dependency_bump", "release", "bot_housekeeping"})


def test_every_filter_is_tried_and_has_a_meaning() -> None:
    assert DROPPED.keys() == OUTCOMES.keys()
    assert OUTCOMES.keys() <= MEANINGS.keys()


@pytest.mark.parametrize(
    ("globs", "kept"),
    [
        (("src/*",), True),
        (("!src/*",), False),
        (("!notes/*",), True),
        (("*.rs",), False),
        (("src/a*", "!src/ab*"), True),
    ],
)
def test_paths_choose_by_program_text_alone(globs: tuple[str, ...], kept: bool) -> None:
    found = drop(GOOD, Filters(paths=globs))
    assert (found is None) is kept, "tests/test_a.py is never asked"


def test_work_is_kept() -> None:
    assert drop(GOOD, ASKED) is None
    assert drop(GOOD, Filters()) is None


def test_the_first_reason_in_order_wins() -> None:
    worst = replace(DROPPED["no_text"], benchmark="SWE-bench", licence=None, reverts=3)
    assert drop(worst, Filters()) == ("benchmark_repository", "the repository is part of SWE-bench")
    assert drop(worst, Filters(keep=frozenset({"benchmark_repository", "licence_unknown"}))) == (
        "revert",
        "it takes #3 back",
    )


@pytest.mark.parametrize(
    "facts",
    [
        # words alone are no housekeeping, and neither are bots
        replace(GOOD, subject="Bump django from 4.1 to 4.2"),
        replace(GOOD, subject="Release the GIL while parsing"),
        replace(GOOD, by_bot=True),
        # a mix of what would each be kept is kept
        replace(GOOD, subject="Parser: `struct.drop()`"),
        replace(GOOD, subject="fix", text_length=40),
        replace(GOOD, licence="Apache-2.0 OR GPL-3.0"),
        replace(GOOD, licence="mit"),
        replace(GOOD, reference=split([patch("src/a.py", 5), patch("src/schema.json", 9000), patch("uv.lock", 9000)])),
    ],
)
def test_what_only_looks_like_it_is_kept(facts: PullFacts) -> None:
    assert drop(facts, Filters()) is None


@pytest.mark.parametrize("licence", ["Apache-2.0 AND GPL-3.0", "GPL-3.0 OR AGPL-3.0", "CC-BY-4.0"])
def test_a_licence_expression_has_to_be_satisfied_whole(licence: str) -> None:
    assert (drop(replace(GOOD, licence=licence), Filters()) or ("",))[0] == "licence"
    assert drop(replace(GOOD, licence=licence), Filters(licences=None)) is None
    assert drop(replace(GOOD, licence=None), Filters(licences=None)) is None
    assert licence not in PERMISSIVE


@pytest.mark.parametrize(
    "subject",
    ["fix", "Update README.md", "#12", "WIP (#12)", "Fix typos", "Merge pull request #12 from a/b", "...", "", "1.2.3"],
)
def test_a_subject_that_says_nothing_is_no_text(subject: str) -> None:
    assert (drop(replace(GOOD, subject=subject), Filters()) or ("",))[0] == "no_text"


def test_a_mix_is_kept_where_each_part_is() -> None:
    keep = frozenset({"docs_only", "tests_only"})
    assert drop(DROPPED["no_source"], Filters(keep=keep)) is None
    assert (drop(DROPPED["no_source"], Filters(keep=frozenset({"docs_only"}))) or ("",))[0] == "no_source"


def test_limits_include_their_bounds() -> None:
    for lines in (5, 1500):
        assert drop(replace(GOOD, reference=split([patch("src/a.py", lines)])), Filters()) is None


def test_a_filter_that_is_unknown_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^typo is no filter; known are benchmark_repository, .*tree_incomplete$"):
        Filters(keep=frozenset({"typo"}))


_KEEP = st.frozensets(st.sampled_from(list(OUTCOMES)))
_PATHS = st.sampled_from(["src/a.py", "tests/a.py", "a.md", "x.lock", "a.yaml", "vendor/a.c", "a.png", "setup.py"])


@given(
    st.lists(_PATHS, unique=True, max_size=4),
    st.text(max_size=40),
    st.booleans(),
    st.sets(st.sampled_from(list(OUTCOMES))),
)
def test_there_is_one_outcome_at_most_and_never_one_that_is_kept(
    paths: list[str], subject: str, by_bot: bool, keep: frozenset[str]
) -> None:
    found = drop(
        replace(GOOD, subject=subject, by_bot=by_bot, reference=reference(*paths)), Filters(keep=frozenset(keep))
    )
    assert found is None or (found[0] in OUTCOMES and found[0] not in keep)


def test_tests_inside_source_files_are_no_work() -> None:
    inside = replace(GOOD, reference=reference("src/a.rs", "README.md"), only_inline_tests=True)
    outcome, reason = drop(inside, Filters()) or ("", "")
    assert (outcome, reason) == ("tests_only", "its 10 lines of program text are tests inside source files")
    with_config = replace(inside, reference=reference("src/a.rs", "Cargo.toml"))
    assert drop(with_config, Filters()) is None
