"""What each sign does to the confidence of an edge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chains.edges.evidence import judge
from chains.edges.footprints import PatchOverlap
from chains.edges.pairs import ChangedCode, PairEvidence
from chains.history import CountedCitation
from chains.weights import weights


def citation(relation: str = "mentions", snippet: str = "see #1", field: str = "commit", *weak: str) -> CountedCitation:
    return CountedCitation(relation, field, "", snippet, weak)


def confidence(*citations: CountedCitation, overlap: PatchOverlap | None = None, days: float = 3) -> float:
    return judge(PairEvidence(citations or (citation(),)), overlap, days=days).confidence


FILES = ("src/a.py",)


def test_a_bare_mention_is_as_good_as_a_coin() -> None:
    assert confidence(overlap=None) == 0.5


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (PatchOverlap(lines=20, changed_lines=3, files=FILES), PatchOverlap(lines=20, files=FILES)),
        (PatchOverlap(lines=20, changed_lines=3, files=FILES), PatchOverlap(lines=20, neighbour_lines=3, files=FILES)),
        (PatchOverlap(lines=20, names=("round_amount",), files=FILES), PatchOverlap(lines=20, files=FILES)),
        (PatchOverlap(lines=20, files=FILES), PatchOverlap(lines=20, folders=("src",))),
        (PatchOverlap(lines=20, folders=("src",)), PatchOverlap(lines=20)),
        (PatchOverlap(lines=20, changed_lines=2, files=FILES), PatchOverlap(lines=2000, changed_lines=2, files=FILES)),
    ],
)
def test_the_more_the_patches_meet_the_surer_it_is(better: PatchOverlap, worse: PatchOverlap) -> None:
    assert confidence(overlap=better) > confidence(overlap=worse)


def test_wording_moves_the_confidence() -> None:
    plain = confidence()
    assert confidence(citation("follow_up")) > confidence(citation("fixes")) > plain
    assert confidence(citation(snippet="broken by #1")) > plain
    assert confidence(citation(snippet="similar to #1")) < plain


def test_two_independent_witnesses_are_surer_than_one_and_two_commits_are_one_witness() -> None:
    assert confidence(citation(), citation(field="body")) > confidence()
    assert confidence(citation(), citation(field="landing")) == confidence()


def test_a_weak_sign_counts_only_where_every_citation_has_it() -> None:
    weak = citation("mentions", "see #9", "commit", "cites_larger_number")
    assert confidence(weak) < 0.1
    assert confidence(weak, citation(field="landing")) == 0.5


def test_years_between_the_landings_lower_it() -> None:
    assert confidence(days=1000) < confidence(days=30)


def test_the_reasons_are_kept_with_what_bears_them_out() -> None:
    score = judge(
        PairEvidence((citation("follow_up", "Follow-up to #1"),)),
        PatchOverlap(lines=9, changed_lines=2, files=FILES),
        days=1,
    )
    assert score.relation == "follow_up"
    assert {sign.name: sign.detail for sign in score.signs} == {
        "follow_up": "commit: Follow-up to #1",
        "line_dependency": "changes 2 of the lines it added",
        "common_files": "src/a.py",
    }
    assert sum(sign.weight for sign in score.signs) > 0


CODE = ChangedCode(real_lines=8, source_lines=6, added_lines=20, owners=2, functions=("dump",), names=("Sink", "open"))
NOTHING: tuple[float, tuple[str, ...]] = (0.0, ())


def uncited(code: ChangedCode, common: tuple[float, tuple[str, ...]] = NOTHING) -> float:
    return judge(PairEvidence((), code), None, days=3, common_words=common).confidence


@pytest.mark.parametrize(
    "worse",
    [
        replace(CODE, source_lines=1),
        replace(CODE, owners=12),
        replace(CODE, added_lines=900),
        replace(CODE, functions=()),
        replace(CODE, names=()),
    ],
)
def test_the_more_of_the_others_code_it_changes_the_surer_an_uncited_pair_is(worse: ChangedCode) -> None:
    assert uncited(CODE) > uncited(worse)


def test_titles_that_share_rare_words_make_it_surer_and_more_than_two_no_surer() -> None:
    assert uncited(CODE, (9.0, ("sink", "quiet"))) > uncited(CODE)
    assert uncited(CODE, (40.0, ("a", "b"))) == uncited(CODE, (11.0, ("a", "b")))


def test_every_sign_of_an_uncited_pair_is_kept_with_what_bears_it_out() -> None:
    score = judge(PairEvidence((), CODE), None, days=3, common_words=(5.0, ("sink",)))
    assert score.relation == "changes_code"
    details = {sign.name: sign.detail for sign in score.signs}
    assert details == {
        "base": "",
        "owners": "meets lines of 2 pull requests",
        "added_lines": "adds 20 lines of code",
        "source_lines": "changes 6 lines of its source",
        "functions": "dump",
        "names": "Sink, open",
        "common_words": "sink",
    }
    assert details.keys() == weights("lineage").keys()


def test_a_pair_of_which_nothing_was_found_is_no_pair() -> None:
    with pytest.raises(ValueError, match="nothing was found"):
        judge(PairEvidence(), None, days=1)
