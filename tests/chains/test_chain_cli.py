"""The commands of chains, as a user types them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import delete

from chains.build_report import print_build
from chains.chain_report import ListedChain, ListedStage, print_chains
from chains.options import BuildReport
from prchain.cli import cli, run
from prchain.core.timestamps import now
from sql.store import Store
from sql.tables import MineRun, PullRequestCommit, PullRequestText, Repository
from tests.chains.chainworld import NAME, grown, mined
from tests.miner.gitworld import Content


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    with mined(tmp_path, grown(tmp_path)):
        pass
    yield str(tmp_path / "prchain.db")


def call(*arguments: str) -> Any:
    """Chains are built of citations, unless a strategy is named."""
    if arguments[0] == "build" and "--strategy" not in arguments:
        arguments = (*arguments, "--strategy", "reference")
    return CliRunner().invoke(cli, ["chains", *arguments], catch_exceptions=False)


def rows(*arguments: str) -> Any:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_build_says_what_became_of_every_landing_and_of_every_pair(database: str) -> None:
    result = call("build", "--db", database)
    assert result.exit_code == 0
    assert f"{NAME}: 1 chain (1 with 3 stages); 1 new" in result.stdout
    (report,) = rows("build", "--db", database)
    assert sum(report["candidates"].values()) == report["landed"] == 8
    assert sum(report["edges"].values()) == 5
    assert report["relations"] == {"follow_up": 2}


def test_list_filters_and_show_explains(database: str) -> None:
    call("build", "--db", database)
    (chain,) = rows("list", "--db", database)
    assert (chain["repository"], chain["numbers"], chain["language"]) == (NAME, [1, 2, 3], "python")
    assert rows("list", "--db", database, "--length", "2") == []
    assert rows("list", "--db", database, "--language", "Python", "--sort", "date") == [chain]
    assert rows("list", "--db", database, "--min-score", "5") == []
    assert [stage["tested"] for stage in chain["stages"]] == [False, False, False]
    assert rows("list", "--db", database, "--with-tests") == []
    assert rows("list", "--db", database, "--span", f"{int(chain['days']) + 1}") == [chain]
    assert rows("list", "--db", database, "--span", "0") == []
    page = call("show", chain["id"][:5], "--db", database).stdout
    assert "builds on the one before (follow up)" in page
    assert "line_dependency" in page
    assert "diff --git" not in page
    whole = call("show", chain["id"][:5], "--reference", "--db", database).stdout
    assert whole.startswith(page) and "reference of stage 3, #3:\ndiff --git a/" in whole
    references = [stage["reference"] for stage in rows("show", chain["id"], "--reference", "--db", database)["stages"]]
    assert len(set(references)) == 3 and all(patch.startswith("diff --git a/") for patch in references)
    page_row = rows("show", chain["id"], "--db", database)
    assert [stage["number"] for stage in page_row["stages"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("build", "--min", "4", "--max", "3"), "--min 4 is more than --max 3"),
        (("build", "--min", "1"), "--strategy single"),
        (("build", "--span", "nan"), "'nan' is not a valid integer range"),
        (("build", "--keep", "nonsense"), "nonsense is no filter"),
        (("build", "--language", "Klingon"), "Klingon is no language"),
        (("build", "--licence", "nope"), "nope is no licence"),
        (("build", "--shared", "--strategy", "single"), "--strategy single does not look at who builds"),
        (("build", "nobody/nothing"), "nobody/nothing has not been mined"),
        (("build", "--benchmark-list", "missing.txt"), "missing.txt"),
        (("list", "--repository", "nobody/nothing"), "nobody/nothing has not been mined"),
        (("show", "zz"), "no chain's id begins with 'zz'"),
        (("yield", "nobody/nothing"), "nobody/nothing has not been mined"),
        (("show", ""), "no chain's id begins with"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    database: str, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["chains", *arguments, "--db", database]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_failed_repository_is_told_and_the_exit_code_is_one(database: str, tmp_path: Path) -> None:
    (tmp_path / "till.git").rename(tmp_path / "gone.git")
    result = call("build", "--db", database)
    assert result.exit_code == 1
    assert "not_a_repository" in result.stderr


def test_a_subject_cannot_steer_the_terminal(tmp_path: Path) -> None:
    from tests.chains.chainworld import Shop, function, module

    shop = Shop(tmp_path)
    shop.land(1, {"src/till/prices.py": module("prices", function("alpha_rounding"))}, "Round\x1b[2J \u202eup")
    shop.land(2, {"src/till/prices.py": module("prices", function("alpha_rounding", 3))}, "Mend\n\nFollow-up to #1.")
    with mined(tmp_path, shop):
        pass
    database = str(tmp_path / "prchain.db")
    call("build", "--db", database)
    out = call("list", "--db", database).stdout
    assert "Round" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_a_filter_that_takes_a_whole_repository_says_what_to_do(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from chains.stages.benchmarks import Benchmarks

    monkeypatch.setattr(Benchmarks, "repository", lambda self, name: "Some-Bench")
    out = call("build", "--db", database).stdout
    assert "it is part of a benchmark (Some-Bench) and dropped; --allow-benchmarks keeps it" in out
    assert "1 chain" in call("build", "--db", database, "--allow-benchmarks").stdout


def test_a_list_that_nothing_matches_does_not_send_one_to_build_again(database: str) -> None:
    call("build", "--db", database)
    assert "no chain is like that" in call("list", "--db", database, "--length", "9").stdout


@pytest.mark.parametrize(
    ("shown", "alike", "words"),
    [
        (11, 11, "11 of 11 chains"),
        (3, 11, "3 of 11 chains"),
        (3, 3, "3 of 11 chains"),
        (2, 3, "2 of 3 like that, of 11 chains"),
    ],
)
def test_a_list_tells_how_many_chains_there_are_beside_those_that_are_like_that(
    shown: int, alike: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = ListedStage(1, "Round sums (#1)", "2026-01-01T00:00:00Z", tested=True)
    chain = ListedChain("1f0c", NAME, 1, (1,), "python", None, 0.9, 0.9, 9, stage.landed_at, 0.0, (stage,), None, None)
    print_chains([chain] * shown, alike, 11, {})
    assert capsys.readouterr().out.splitlines()[-1] == words


def merged_pair(folder: Path) -> str:
    """Two pull requests that landed by GitHub's merge button, the first without a title below the subject."""
    from tests.chains.chainworld import Shop, function, module

    shop = Shop(folder)
    for number, rest in ((1, ""), (2, "\n\nMend rounding, follow-up to #1")):
        files: dict[str | bytes, Content] = {"src/till/prices.py": module("prices", function("alpha_rounding", number))}
        head = shop.propose(number, files, message=f"Work on rounding {number}\n\nSums were off.")
        shop.merge("main", head, f"Merge pull request #{number} from alex-ball/fix/round-{number}{rest}")
    with mined(folder, shop):
        pass
    return str(folder / "prchain.db")


def test_a_bare_merge_is_called_by_its_only_commit_or_its_branch_and_any_other_by_its_title(tmp_path: Path) -> None:
    database = merged_pair(tmp_path)
    call("build", "--db", database)
    (chain,) = rows("list", "--db", database)
    assert chain["stages"][0]["subject"] == "Work on rounding 1"
    assert "Work on rounding 1" in call("list", "--db", database).stdout
    page = rows("show", chain["id"], "--db", database)
    assert [stage["subject"] for stage in page["stages"]] == ["Work on rounding 1", "Mend rounding, follow-up to #1"]
    with closing(Store.open(database)) as store, store.transaction() as tx:
        tx.connection.execute(delete(PullRequestCommit).where(PullRequestCommit.number == 1))
    (chain,) = rows("list", "--db", database)
    assert chain["stages"][0]["subject"] == "fix/round-1"
    with closing(Store.open(database)) as store, store.transaction() as tx:
        title = {"repository_id": 1, "number": 1, "field": "title", "key": "", "body": "Round as banks do"}
        tx.upsert(PullRequestText, [title])
    (chain,) = rows("list", "--db", database)
    assert chain["stages"][0]["subject"] == "Round as banks do", "the API told it since"


def test_a_licence_that_is_not_known_says_of_how_many_pull_requests(capsys: pytest.CaptureFixture[str]) -> None:
    report = BuildReport("o/n", landed=1204, candidates=Counter(licence_unknown=1, unlinked=1203), by_api=True)
    report.lengths[2] = 1
    print_build([report])
    line = "  1 of 1,204 landed pull requests dropped: no licence was recognised at the base; --licence any keeps"
    assert line in capsys.readouterr().out


def test_the_commonest_reasons_are_told_in_words_and_the_others_are_summed(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = Counter(unlinked=400, low_worth=70, cosmetic=29, no_text=6, revert=5, docs_only=2, chained=18, frozen=2)
    report = BuildReport("o/n", landed=532, candidates=reasons, edges=Counter(kept=11, below_floor=1200))
    report.relations.update(changes_code=10, mentions=1)
    report.lengths[2] = 10
    print_build([report])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert lines[1] == "  20 of 532 landed pull requests in chains; the others:"
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["400", "unlinked"],
        ["70", "low_worth"],
        ["29", "cosmetic"],
        ["6", "no_text"],
    ]
    assert "comments, docstrings" in lines[4]
    assert lines[6].split() == ["7", "for", "2", "other", "reasons"]
    assert lines[7] == "  11 of 1,211 pairs can be used (10 changes_code, 1 mentions); 1,200 below_floor"
    assert "`prchain sql dropped`" in lines[8] and "docs/outcomes.md" in lines[8]


def test_where_all_are_in_chains_no_others_are_announced(capsys: pytest.CaptureFixture[str]) -> None:
    report = BuildReport("o/n", landed=2, candidates=Counter(chained=2), lengths=Counter({2: 1}))
    print_build([report])
    assert capsys.readouterr().out.splitlines()[:2] == [
        "o/n: 1 chain (1 with 2 stages)",
        "  2 of 2 landed pull requests in chains",
    ]


@pytest.mark.parametrize(
    ("report", "said", "unsaid"),
    [
        (BuildReport("o/n", landed=3), ["GITHUB_TOKEN", "--strategy temporal"], "--floor"),
        (
            BuildReport("o/n", landed=3, by_api=True, edges=Counter(below_floor=4, kept=1)),
            ["a lower --floor takes 4 more pairs", "a lower --min"],
            "GITHUB_TOKEN",
        ),
        (BuildReport("o/n", landed=3, edges=Counter(stage_dropped=2)), ["--keep FILTER saves some of 2 "], "--min"),
        (BuildReport("o/n", "temporal", landed=3), ["--keep FILTER"], "--strategy temporal"),
        (BuildReport("o/n"), ["no pull request has landed"], "GITHUB_TOKEN"),
    ],
)
def test_no_chain_says_what_may_bring_one(
    report: BuildReport, said: list[str], unsaid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_build([report])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  no chain: ")]
    assert all(words in line for words in said) and unsaid not in line


def test_where_mining_has_not_ended_well_that_is_said_and_nothing_else(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Store.open(database)) as store, store.transaction() as tx:
        (repository,) = tx.rows(Repository, "id")
        row = {"repository_id": repository[0], "spec": NAME, "source": "git", "started_at": now()}
        tx.insert_new(MineRun, [{**row, "outcome": outcome} for outcome in ("mined", "interrupted")])
    result = call("build", "--db", database, "--min", "4")
    assert "mining it has not ended" in result.stderr and "no chain:" not in result.stdout
    assert json.loads(call("build", "--db", database, "--json").stdout)[0]["unfinished"] is True


def test_the_next_step_is_not_named_where_there_is_a_chain(database: str) -> None:
    assert "no chain:" not in call("build", "--db", database).stdout
    assert "no chain: with a GITHUB_TOKEN" in call("build", "--db", database, "--min", "4").stdout


def test_a_yield_of_nothing_says_that_nothing_was_mined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store.open(str(tmp_path / "empty.db")).close()
    assert run(["chains", "yield", "--db", str(tmp_path / "empty.db")]) == 2
    assert "no repository has been mined into this database; `prchain mine` does" in capsys.readouterr().err
