"""The demo's repository: a real one, the same everywhere, with the chains that it is made for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prchain.core.errors import GitError
from prchain.demo import library
from prchain.demo.library import HISTORY, REPOSITORY, Style, build
from sql.store import Store
from sql.tables import Candidate, ChainStage, Dependency, Landing, PullRequest, Selection
from tests.trajectories.demoworld import CITED, TIP, UNCITED, alone_in, check_out, git, landings, succeeds, suite_passes

STAGES = sorted(number for chain in CITED | UNCITED for number in chain)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library") / "measures"
    assert build(folder)
    return folder


def test_every_commit_has_the_same_sha_everywhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git(repository, "rev-parse", "main") == TIP
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\n\tname = Somebody Else\n[core]\n\tautocrlf = true\n[commit]\n\tgpgSign = true\n")
    for name, value in {
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_AUTHOR_NAME": "Nobody",
        "TZ": "Asia/Tokyo",
        "GIT_DEFAULT_HASH": "sha256",
    }.items():
        monkeypatch.setenv(name, value)
    assert build(tmp_path / "again")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_DEFAULT_HASH"):
        monkeypatch.delenv(name)
    assert git(tmp_path / "again", "show-ref") == git(repository, "show-ref")


def test_every_pull_request_has_a_head_and_only_the_default_branch_stays(repository: Path) -> None:
    numbers = [step.number for step in HISTORY if step.style is not Style.PUSH]
    refs = git(repository, "for-each-ref", "--format=%(refname)").split("\n")
    assert set(refs) == {"refs/heads/main", *(f"refs/pull/{number}/head" for number in numbers)}
    assert len(numbers) >= 8
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("style", [Style.MERGE, Style.SQUASH])
def test_what_is_merged_has_two_parents_and_what_is_squashed_has_one(repository: Path, style: Style) -> None:
    landed = landings(repository)
    numbers = [step.number for step in HISTORY if step.style is style]
    assert len(numbers) >= 3
    parents = {len(git(repository, "log", "-1", "--format=%P", landed[number]).split()) for number in numbers}
    assert parents == {2 if style is Style.MERGE else 1}


@pytest.mark.parametrize("number", STAGES)
def test_a_stage_is_shown_by_tests_that_fail_before_it_and_pass_after(
    repository: Path, tmp_path: Path, number: int
) -> None:
    landed = landings(repository)[number]
    check_out(repository, landed, tmp_path / "after")
    assert suite_passes(tmp_path / "after")
    check_out(repository, f"{landed}^1", tmp_path / "before")
    assert suite_passes(tmp_path / "before")
    check_out(repository, landed, tmp_path / "before", "tests")
    assert not suite_passes(tmp_path / "before")


def test_a_repository_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "measures").mkdir()
    (tmp_path / "measures" / "note").write_text("mine")
    assert not build(tmp_path / "measures")
    assert os.listdir(tmp_path) == ["measures"]


def test_what_a_kill_left_half_made_is_made_anew(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: object, step: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(library._Builder, "take", killed)
        build(tmp_path / "measures")
    assert not (tmp_path / "measures").exists()
    assert build(tmp_path / "measures")
    assert git(tmp_path / "measures", "show-ref") == git(repository, "show-ref")
    assert os.listdir(tmp_path) == ["measures"]


def test_what_git_says_against_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *rest = HISTORY
    monkeypatch.setattr(library, "HISTORY", (first, HISTORY[3], second, *rest))
    with pytest.raises(GitError, match="git am failed"):
        build(tmp_path / "measures")
    assert not (tmp_path / "measures").exists()


def test_default_options_find_the_chains_and_what_can_be_no_stage(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "repos.txt").write_text(f"{REPOSITORY} = {repository}\n")
    with alone_in(tmp_path):
        assert succeeds("mine", "repos.txt", "--source", "git")
        assert succeeds("chains", "build", "--strategy", "reference")
        store = Store.open("sqlite:///data/prchain.db", create=False)
        with store.reading() as tx:
            ids = [row[0] for row in tx.rows(Selection, "chain_id", outcome="selected")]
            chains = {tuple(row[0] for row in tx.rows(ChainStage, "number", chain_id=id_)) for id_ in ids}
            outcomes = {int(number): outcome for number, outcome in tx.rows(Candidate, "number", "outcome")}
            landed = {int(number): style for number, style in tx.rows(Landing, "number", "style")}
            unlanded = {int(row[0]) for row in tx.rows(PullRequest, "number")} - landed.keys()
            relations = {(row[0], row[1]): row[2] for row in tx.rows(Dependency, "source", "target", "relation")}
        store.close()
    assert chains == CITED
    assert landed == {step.number: str(step.style) for step in HISTORY if step.style in {Style.MERGE, Style.SQUASH}}
    assert unlanded == {12}
    chained = {number for number, outcome in outcomes.items() if outcome == "chained"}
    assert chained == {number for chain in CITED for number in chain}
    assert (outcomes[7], outcomes[9]) == ("reverted", "revert")
    assert relations[5, 2] == relations[8, 5] == "fixes"
    assert relations[10, 6] == relations[11, 4] == "follow_up"
