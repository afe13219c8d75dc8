"""Which turns are under loss: the model's turns, without those that a model should not learn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.trajectories.sampleworld import Talk, long_talk
from trajectories.export.masks import DEFAULT_MASKS, Mask, has_rejected_rounds, loss_decisions
from trajectories.model import EntryKind, Reason

ACCEPTED = {1: 1, 2: 2, 3: 1}
ALL = frozenset(Mask)


def reasons(talk: Talk, accepted: dict[int, int], **options: object) -> list[Reason]:
    """The reasons of the turns."""
    found = loss_decisions(talk.entries, accepted, **options)  # type: ignore[arg-type]
    return [mark.reason for entry, mark in zip(talk.entries, found, strict=True) if entry.kind is EntryKind.TURN]


def test_each_turn_has_the_first_reason_that_applies() -> None:
    turn, faulty, refinement = Reason.TURN, Reason.FAULTY, Reason.REFINEMENT
    stage_1 = [turn, turn, faulty, turn, faulty, turn]
    assert reasons(long_talk(), ACCEPTED) == [*stage_1, refinement, refinement, turn, turn, turn, turn]
    stage_1[3] = Reason.TOOL_ERROR
    expected = [*stage_1, refinement, refinement, Reason.GUIDED, turn, turn, turn]
    assert reasons(long_talk(), ACCEPTED, masks=ALL) == expected


def test_nothing_but_turns_is_ever_under_loss() -> None:
    talk = long_talk()
    found = loss_decisions(talk.entries, ACCEPTED, frozenset(), "keep")
    for entry, mark in zip(talk.entries, found, strict=True):
        assert mark.train is (entry.kind is EntryKind.TURN), entry
    others = {mark.reason for mark in found if not mark.train}
    assert others == {Reason.SYSTEM, Reason.USER, Reason.OBSERVATION, Reason.GUIDANCE}


def test_rounds_of_a_stage_that_nobody_accepted_are_masked_whole() -> None:
    assert set(reasons(long_talk(), {1: 1, 3: 1})[6:10]) == {Reason.REFINEMENT}


def test_rejected_rounds_are_under_loss_only_where_they_are_kept() -> None:
    assert set(reasons(long_talk(), ACCEPTED, refinements="keep")) == {Reason.TURN, Reason.FAULTY}
    for refinements in ("mask", "drop"):
        assert reasons(long_talk(), ACCEPTED, refinements=refinements)[6:8] == [Reason.REFINEMENT] * 2


def test_an_error_of_one_of_several_calls_masks_the_turn() -> None:
    talk = (
        Talk()
        .query(1)
        .turn("", ("bash", {}), ("bash", {}))
        .observation("fine", call=0)
        .observation("no", call=1, error="no_file")
    )
    assert reasons(talk, {1: 1}, masks=ALL) == [Reason.TOOL_ERROR]


def test_a_command_that_fails_is_no_tool_error() -> None:
    talk = Talk().query(1).bash("cat missing", details={"exit_code": 1})
    assert reasons(talk, {1: 1}, masks=ALL - {Mask.COMMAND_ERRORS}) == [Reason.TURN]
    assert reasons(talk, {1: 1}, masks=frozenset({Mask.COMMAND_ERRORS})) == [Reason.COMMAND_ERROR]


def test_turns_whose_command_failed_are_masked_and_tests_and_answers_are_not() -> None:
    talk = Talk().query(1)
    talk.bash("python repro.py", details={"exit_code": 1})
    talk.bash("python -m pytest -q tests 2>&1 | tail", details={"exit_code": 0, "pipestatus": [1, 0]})
    talk.bash("python repro.py 2>&1 | tail", details={"exit_code": 0, "pipestatus": [1, 0]})
    talk.bash("cd src && grep -rn total .", details={"exit_code": 1})
    talk.bash("pytest tests", details={"exit_code": None, "timed_out": True}, error="timed_out")
    talk.turn("", ("bash", {"command": "grep x a"}), ("bash", {"command": "rm missing"}))
    talk.observation("", call=0, details={"exit_code": 1}).observation("", call=1, details={"exit_code": 1})
    turn, failed = Reason.TURN, Reason.COMMAND_ERROR
    masks = frozenset({Mask.COMMAND_ERRORS})
    assert reasons(talk, {1: 1}, masks=masks) == [failed, turn, failed, turn, failed, failed]
    with_tools = masks | {Mask.TOOL_ERRORS}
    assert reasons(talk, {1: 1}, masks=with_tools)[4] == Reason.TOOL_ERROR, "the first reason that applies"
    assert set(reasons(talk, {1: 1})) == {turn}


def test_turns_that_claim_more_of_tests_than_was_seen_are_masked() -> None:
    talk = Talk().query(1).bash("pytest -q", "no tests ran in 0.01s", details={"exit_code": 5}).turn("The tests pass.")
    talk.bash("pytest -q", "3 passed in 0.01s", details={"exit_code": 0}).turn("The tests pass.")
    turn, claim = Reason.TURN, Reason.UNFOUNDED_CLAIM
    assert reasons(talk, {1: 1}, masks=frozenset({Mask.UNFOUNDED_CLAIMS})) == [turn, claim, turn, turn]
    assert set(reasons(talk, {1: 1})) == {turn}


def test_only_the_turn_right_after_guidance_is_guided() -> None:
    talk = Talk().query(1).bash("a").guide().bash("b").bash("c")
    assert reasons(talk, {1: 1}, masks=ALL) == [Reason.TURN, Reason.GUIDED, Reason.TURN]


def test_a_sample_is_refined_when_any_stage_needed_another_round() -> None:
    assert has_rejected_rounds(long_talk().entries, ACCEPTED)
    once = [entry for entry in long_talk().entries if entry.position != 2]
    assert not has_rejected_rounds(once, {1: 1, 3: 1})


def test_a_sample_is_refined_when_a_stage_was_never_accepted() -> None:
    once = [entry for entry in long_talk().entries if entry.position != 2]
    assert has_rejected_rounds(once, {1: 1})


@given(st.sets(st.sampled_from(list(Mask))), st.sampled_from(["mask", "keep"]))
def test_more_masks_never_put_a_turn_under_loss(masks: set[Mask], refinements: str) -> None:
    entries = long_talk().entries
    unmasked = loss_decisions(entries, ACCEPTED, frozenset(masks), "keep")
    masked = loss_decisions(
        entries, ACCEPTED, frozenset(masks) | DEFAULT_MASKS, "mask" if refinements == "mask" else "keep"
    )
    for before, after in zip(unmasked, masked, strict=True):
        assert before.train or not after.train
        assert after.train is (after.reason is Reason.TURN)
