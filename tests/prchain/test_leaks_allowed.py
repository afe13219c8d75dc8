"""What a text may say although a patch has it: what is given to the solver, options, examples, and plain words."""

from __future__ import annotations

import pytest

from prchain.core.leaks import check, stage_facts, telling
from tests.prchain.leak_chain import CHAIN, FILLER, FIRST, PATHS, leaks, patch

GIVEN = "see https://till-docs.dev/limits/linger; it is too long"


@pytest.mark.parametrize("end", ["", ".", ";", "),", '".', "`."])
def test_an_address_in_a_text_that_tests_compare_with_may_be_said(end: str) -> None:
    facts = telling(FIRST, [], given=[GIVEN])
    text = f"{FILLER}Say where the limit is told, https://till-docs.dev/limits/linger{end}"
    assert "url" in leaks(text)
    for position in (1, 2):
        findings = check(text, [facts, CHAIN[1]], position, kind="query", paths_at_base=PATHS)
        assert "url" not in {finding.kind for finding in findings}
    # An overview stands before every stage, and no solver has the interface yet.
    overview = check(text, [facts, CHAIN[1]], 0, kind="overview", paths_at_base=PATHS)
    assert "url" in {finding.kind for finding in overview}


@pytest.mark.parametrize("text", ["https://till-docs.dev/limits/linger/2", "https://till-docs.dev/limits"])
def test_an_address_that_only_begins_like_one_that_is_given_leaks(text: str) -> None:
    facts = telling(FIRST, [], given=[GIVEN])
    assert "url" in {found.kind for found in check(FILLER + text, [facts], 1, kind="query", paths_at_base=PATHS)}


def test_an_address_that_people_only_said_leaks() -> None:
    facts = telling(FIRST, [GIVEN])
    text = f"{FILLER}See https://till-docs.dev/limits/linger"
    assert "url" in {found.kind for found in check(text, [facts], 1, kind="query", paths_at_base=PATHS)}


def test_an_address_that_the_patch_adds_and_people_only_said_leaks() -> None:
    facts = telling(
        stage_facts(1, [], [patch("src/net/pool.py", "HELP = 'https://fix.dev'")], [], set()), ["See https://fix.dev."]
    )
    found = check(f"{FILLER}See https://fix.dev first.", [facts], 1, kind="query", paths_at_base=PATHS)
    assert "https://fix.dev" in {it.evidence for it in found if it.kind == "url"}


def test_an_address_is_shown_without_the_sign_behind_it() -> None:
    found = check(f"{FILLER}See https://till-docs.dev/a; then go on.", [FIRST], 1, kind="query", paths_at_base=PATHS)
    assert [finding.evidence for finding in found if finding.kind == "url"] == ["https://till-docs.dev/a"]


OPTIONS = stage_facts(
    1,
    [],
    [
        patch(
            "src/run.py", 'option("--no-server-header", "no_server_header")\noption("--answers-file/--no-answers-file")'
        )
    ],
    [],
    set(),
)


@pytest.mark.parametrize("option", ["--no-server-header", "--answers-file", "--no-answers-file"])
@pytest.mark.parametrize("mark", ["", "`", '"'])
def test_an_option_that_users_will_type_may_be_said_by_its_own_stage(option: str, mark: str) -> None:
    text = f"{FILLER}Whoever gives {mark}{option}{mark} gets none."
    found = check(text, [OPTIONS, CHAIN[1]], 1, kind="query", paths_at_base=PATHS)
    assert {finding.kind for finding in found if finding.severity == "leak"} <= {"path_missing"}


@pytest.mark.parametrize("mark", ["", "`", '"'])
def test_an_option_of_a_later_stage_may_not_be_said_before(mark: str) -> None:
    text = f"{FILLER}Whoever gives {mark}--no-server-header{mark} gets none."
    found = check(text, [FIRST, OPTIONS], 1, kind="query", paths_at_base=PATHS)
    assert {finding.kind for finding in found if finding.severity == "leak"} - {"path_missing"}


@pytest.mark.parametrize("name", ["no_server_header", "NoServerHeader", "No-Server-Header"])
def test_the_name_in_code_of_an_option_stays_hidden(name: str) -> None:
    found = check(f"{FILLER}Keep `{name}`.", [OPTIONS], 1, kind="query", paths_at_base=PATHS)
    assert "introduced_name" in {finding.kind for finding in found if finding.severity == "leak"}


ENUM = stage_facts(
    1, [], [patch("src/site.py", 'class Site(Enum):\n    MODULE = "module"\n    THREAD = "thread"')], [], set()
)


@pytest.mark.parametrize(
    "text", ['It has the key "module" then.', "It is the `thread` of it.", "See `sys.modules` for it."]
)
def test_a_value_of_plain_english_is_not_the_constant_that_is_spelt_alike(text: str) -> None:
    found = check(FILLER + text, [ENUM], 1, kind="query", paths_at_base=PATHS)
    assert "introduced_name" not in {finding.kind for finding in found}


def test_the_constant_itself_leaks() -> None:
    found = check(f"{FILLER}Let `MODULE` be it.", [ENUM], 1, kind="query", paths_at_base=PATHS)
    assert "introduced_name" in {finding.kind for finding in found}


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8000/url-for?a=1",
        "http://127.0.0.1",
        "http://[::1]:80/",
        "https://api.example.com/v1.",
        "http://shop.test",
        "ftp://me@files.example/x",
    ],
)
def test_an_address_that_is_made_for_examples_is_no_address(address: str) -> None:
    found = check(f"{FILLER}It gives {address}", [FIRST], 1, kind="query", paths_at_base=PATHS)
    assert "url" not in {finding.kind for finding in found}


@pytest.mark.parametrize(
    "address", ["https://example.org.evil.dev/a", "http://localhost.evil.dev", "https://myexample.com/a"]
)
def test_an_address_that_only_looks_like_an_example_leaks(address: str) -> None:
    found = check(f"{FILLER}It gives {address}", [FIRST], 1, kind="query", paths_at_base=PATHS)
    assert "url" in {finding.kind for finding in found}


def test_private_names_in_a_text_that_is_given_may_be_said_with_it() -> None:
    plain = stage_facts(1, [], [patch("src/net/pool.py", "def url(_scheme): ...")], [], set())
    text = f"{FILLER}It fails with 'When _scheme is given, more is needed' in src/net/pool.py."
    assert "introduced_name" in {
        found.kind for found in check(text, [plain], 1, kind="query", paths_at_base=PATHS) if found.severity == "leak"
    }
    given = telling(plain, ["Add _scheme"], given=["When _scheme is given, more is needed"])
    assert not [
        found for found in check(text, [given], 1, kind="query", paths_at_base=PATHS) if found.severity == "leak"
    ]


def test_an_example_with_a_number_is_not_the_name_of_a_test_with_one() -> None:
    facts = stage_facts(1, [], [], [patch("tests/test_it.py", "mid_1 = 1\ndef test_mid_1(): ...")], set())
    found = check(f"{FILLER}The path is `/mid1` then.", [facts], 1, kind="query", paths_at_base=PATHS)
    assert "introduced_name" not in {finding.kind for finding in found if finding.severity == "leak"}


@pytest.mark.parametrize("address", ["https://testserver/", "http://api:8080/items", "http://testserver"])
def test_an_address_of_a_host_without_a_dot_is_no_page(address: str) -> None:
    assert "url" not in leaks(f"{FILLER}A request of {address} is sent on.")


def test_an_address_that_tests_compare_with_as_a_whole_may_be_said() -> None:
    facts = telling(FIRST, [], data=["https://till.dev/a"])
    for text, leaking in (("It leads to https://till.dev/a.", False), ("It leads to https://till.dev/b.", True)):
        findings = check(FILLER + text, [facts], 1, kind="query", paths_at_base=PATHS)
        assert ("url" in {found.kind for found in findings}) is leaking


def test_a_key_that_the_solver_is_given_may_be_said_as_it_is() -> None:
    facts = stage_facts(1, [], [patch("src/net/pool.py", "stale_if_error = key('stale-if-error')")], [], set())
    text = FILLER + 'The header has the directive "stale-if-error".'
    for given, leaking in ((["stale-if-error"], False), ([], True)):
        findings = check(text, [telling(facts, [], given=given)], 1, kind="query", paths_at_base=PATHS)
        assert any(found.severity == "leak" for found in findings) is leaking
