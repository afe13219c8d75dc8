"""Replies of process reward models, as they come."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.model import Reply
from prchain.core.llm.replies import UnfitReply, closed_schema, read_shape
from tests.growth import assert_linear
from trajectories.agents.guidance.assessment import Assessment, Detection, TaskStatus
from trajectories.agents.guidance.reply import (
    LONGEST_GUIDANCE,
    LONGEST_PART,
    JsonDetection,
    JsonReply,
    from_json,
    json_shape,
    read_reply,
    read_simple,
)
from trajectories.agents.guidance.taxonomy import Taxonomy, load_taxonomy

FILE = tomllib.loads((Path(__file__).parent / "data" / "prm_replies.toml").read_text(encoding="utf-8"))
OWN = Taxonomy.model_validate({"families": FILE["families"], "hash": "own"})
SHIPPED = load_taxonomy()
TITLES = {category.name: category.title for category in SHIPPED.categories}

MOST_NOTE = 60
"""Characters of the line that says what was cut."""


def test_the_categories_that_ship_are_named_in_ids_by_the_bytes_of_their_file() -> None:
    assert SHIPPED.hash == "2da06af3748a76e6", "every trajectory with a process reward model would get another id"


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in FILE["replies"]])
def test_a_reply_says_what_its_reader_sees(case: dict[str, Any]) -> None:
    taxonomy = OWN if case.get("taxonomy") == "own" else SHIPPED
    if "unfit" in case:
        with pytest.raises(UnfitReply, match=re.escape(case["unfit"])):
            read_reply(case["reply"], taxonomy, action=case.get("action", False))
        return
    read = read_reply(case["reply"], taxonomy, action=case.get("action", False))
    assert {part.category: [part.evidence, part.recovery] for part in read.detections} == case.get("detected", {})
    assert (read.status, read.guidance) == (case["status"], case["guidance"])
    assert read.action == case.get("recommended")


def test_the_file_of_replies_is_what_it_claims_to_be() -> None:
    names = [case["name"] for case in FILE["replies"]]
    assert len(names) == len(set(names)) >= 60
    keys = {key for case in FILE["replies"] for key in case}
    assert keys == {"name", "reply", "taxonomy", "action", "unfit", "status", "guidance", "detected", "recommended"}
    assert all(("unfit" in case) != ("guidance" in case) for case in FILE["replies"])


def test_detections_come_in_the_order_of_the_taxonomy() -> None:
    titles = "".join(f"{title}: DETECTED: Yes\n" for title in reversed(TITLES.values()))
    read = read_reply(f"{titles}TASK_STATUS: Critical\nOVERALL_GUIDANCE: Stop.", SHIPPED, action=False)
    assert [part.category for part in read.detections] == list(TITLES)


def test_the_complaint_names_everything_that_is_missing() -> None:
    with pytest.raises(UnfitReply) as raised:
        read_reply("Go on.", SHIPPED, action=True)
    assert all(
        words in raised.value.words
        for words in ("TASK_STATUS", "Critical intervention required", "OVERALL_GUIDANCE", "whole reply again")
    )


def test_a_long_reply_keeps_head_and_tail_within_bounds() -> None:
    long = "Begin. " + "word " * 20_000 + "End."
    read = read_reply(
        f"Hallucination: DETECTED: Yes\nEVIDENCE: {long}\nRECOVERY_ACTION: {long}\nTASK_STATUS: Critical\n"
        f"OVERALL_GUIDANCE: {long}\nRECOMMENDED_ACTION: {long}",
        SHIPPED,
        action=True,
    )
    assert read.action is not None
    parts = [read.detections[0].evidence, read.detections[0].recovery, read.action]
    for text, most in [*((part, LONGEST_PART) for part in parts), (read.guidance, LONGEST_GUIDANCE)]:
        assert most - MOST_NOTE < len(text) < most + MOST_NOTE
        assert text.startswith("Begin.") and text.endswith("End.") and "characters left out" in text
    assert len(read_simple(long).guidance) < LONGEST_GUIDANCE + MOST_NOTE


def test_what_no_database_takes_is_replaced() -> None:
    read = read_reply("TASK_STATUS: On track\nOVERALL_GUIDANCE: a\x00b\ud800c", SHIPPED, action=False)
    assert read.guidance == "a\ufffdb\ufffdc"
    assert read_simple("a\x00\udfff").guidance == "a\ufffd\ufffd"


class TestSimple:
    @pytest.mark.parametrize(
        ("text", "guidance"),
        [
            ("  Run the tests.\n\nThen go on. \n", "Run the tests.\n\nThen go on."),
            ("<think>TASK_STATUS</think>Run the tests.", "Run the tests."),
            ("I look at it.\n</think>\n\nRun the tests.", "Run the tests."),
            ("<thinking>\na\n</thinking>\n<think>\nb\n</think>\nRun the tests.", "Run the tests."),
            ("Print `<think>` first,\r\nthen `</think>`.", "Print `<think>` first,\nthen `</think>`."),
            ("```\nRun the tests.\n```", "Run the tests."),
            ("```\nls\n```\nand\n```\npwd\n```", "```\nls\n```\nand\n```\npwd\n```"),
            ('"Run the tests."', "Run the tests."),
            ("TASK_STATUS: On track\nOVERALL_GUIDANCE: Go on.", "TASK_STATUS: On track\nOVERALL_GUIDANCE: Go on."),
            ("継続してください。", "継続してください。"),
        ],
    )
    def test_all_of_the_reply_is_guidance(self, text: str, guidance: str) -> None:
        assert read_simple(text) == Assessment(guidance)

    @pytest.mark.parametrize("text", ["", " \n ", "<think>a</think>\n", "<think>\nI was cut", "N/A", "---\n***"])
    def test_a_reply_without_guidance_is_unfit(self, text: str) -> None:
        with pytest.raises(UnfitReply, match="no guidance"):
            read_simple(text)

    @given(st.text())
    def test_reads_or_asks_again(self, text: str) -> None:
        try:
            assert read_simple(text).guidance
        except UnfitReply as fault:
            assert fault.words


class TestJson:
    ALL: ClassVar[dict[str, Any]] = {
        "detections": [
            {"category": "hallucination", "evidence": '"no such file"', "recovery": "N/A"},
            {"category": "step_repetition", "evidence": "ls twice", "recovery": "stop"},
            {"category": "hallucination", "evidence": "again", "recovery": "list"},
        ],
        "status": "needs_correction",
        "guidance": "List the folder.",
        "recommended_action": "ls",
    }

    def read(self, *, action: bool = False, **changes: Any) -> Assessment:
        value = {key: part for key, part in (self.ALL | changes).items() if action or key != "recommended_action"}
        return from_json(read_shape(Reply(json.dumps(value), "m"), json_shape(SHIPPED, action=action)), SHIPPED)

    def test_a_value_holds_an_assessment(self) -> None:
        detections = (
            Detection("step_repetition", "ls twice", "stop"),
            Detection("hallucination", "no such file", "list"),
        )
        assert self.read() == Assessment("List the folder.", TaskStatus.NEEDS_CORRECTION, detections)
        assert self.read(action=True) == Assessment(
            "List the folder.", TaskStatus.NEEDS_CORRECTION, detections, action="ls"
        )
        assert self.read(detections=[], status="critical_intervention_required").status is TaskStatus.CRITICAL

    @pytest.mark.parametrize("action", [None, "", "None"])
    def test_an_action_may_be_missing(self, action: str | None) -> None:
        assert self.read(action=True, recommended_action=action).action is None

    @pytest.mark.parametrize(
        "changes",
        [
            {"status": "fine"},
            {"status": "Needs correction"},
            {"guidance": ""},
            {"guidance": "n/a"},
            {"guidance": None},
            {"detections": [{"category": "laziness", "evidence": "", "recovery": ""}]},
            {"detections": [{"category": "hallucination", "evidence": ""}]},
            {"detections": ["hallucination"]},
            {"detections": None},
        ],
    )
    def test_what_does_not_fit_is_asked_for_again(self, changes: dict[str, Any]) -> None:
        with pytest.raises(UnfitReply, match=f"does not fit the schema: {next(iter(changes))}"):
            self.read(**changes)

    def test_the_schema_names_the_categories_and_the_order_ends_with_what_follows_from_the_rest(self) -> None:
        schema = closed_schema(json_shape(OWN, action=True))
        assert list(schema["properties"]) == ["detections", "status", "guidance", "recommended_action"]
        assert schema["$defs"]["Detection"]["properties"]["category"]["enum"] == [c.name for c in OWN.categories]
        assert schema["$defs"]["TaskStatus"]["enum"] == [*TaskStatus]
        assert list(closed_schema(json_shape(OWN, action=False))["properties"]) == ["detections", "status", "guidance"]

    def test_a_category_of_another_taxonomy_is_unfit(self) -> None:
        value = JsonReply(
            detections=[JsonDetection(category="cpp", evidence="", recovery="")],
            status=TaskStatus.ON_TRACK,
            guidance="Go on.",
        )
        assert from_json(value, OWN).detections == (Detection("cpp", "", ""),)
        with pytest.raises(UnfitReply, match="no category 'cpp'"):
            from_json(value, SHIPPED)


PIECES = [
    *list(TITLES.values())[2:8],
    *("Laziness", "SPECIFICATION", "REASONING ERRORS", "goal_deviation", "Hallucinations"),
    *("DETECTED", "DETECTED: ", "**DETECTED:** ", "detected: ", "EVIDENCE: ", "RECOVERY_ACTION: "),
    *("TASK_STATUS: ", "OVERALL_GUIDANCE: ", "RECOMMENDED_ACTION: ", "On track", "Needs correction", "Critical"),
    *("Yes", "No", "yes", "Yes/No", "Maybe", "the agent", "N/A", "Definition: x"),
    *(": ", "\n", "\n", "\n\n", " ", "/", "|", "| ", " |", "- ", "3. ", "**", "# ", "```", "> ", '"', "(", ")", "--- "),
    *("| Category | DETECTED |\n", "<think>", "</think>", "\r\n", "\0", "{", "}", "是"),
]

ANSWERS = ["Yes", "yes.", "**Yes**", "No", "Yes/No", "Maybe", "Yes, but no", "", "Yes - it does", "[ ] Yes", "\nYes"]
ROWS = st.tuples(
    st.sampled_from(["\n", "\n", "\n- ", "\n### 3. ", "\n| ", " "]),
    st.sampled_from([*TITLES.values(), "Laziness", ""]),
    st.sampled_from([": ", "\n", " - ", "\n**", " (", " | ", ": a guess\n", "\n\n", ", no\n"]),
    st.sampled_from(["DETECTED: ", "DETECTED: ", "**Detected**: ", "detected ", "### DETECTED\n", ""]),
    st.sampled_from(ANSWERS),
    st.sampled_from(["\n", "\n", "\nEVIDENCE: x\n", " |\n", ""]),
).map("".join)
"""Answers as they are given, or nearly so."""


def explicit(text: str, name: str) -> bool:
    """Whether a yes stands behind a title, with no other title between them, known or not."""
    words = " ".join(re.findall(r"[^\W_]+", text.casefold()))
    others = "|".join(["laziness", *(title.casefold() for other, title in TITLES.items() if other != name)])
    return re.search(rf"\b{TITLES[name].casefold()}s?\b(?:(?!\b(?:{others})\b).)*? yes\b", words) is not None


class TestAnyReply:
    @given(st.lists(st.one_of(st.sampled_from(PIECES), ROWS), max_size=25), st.booleans())
    def test_reads_or_asks_again_and_invents_nothing(self, pieces: list[str], ends: bool) -> None:
        text = "".join(pieces)
        if ends:
            text += "\nTASK_STATUS: On track\nOVERALL_GUIDANCE: Go on."
        try:
            read = read_reply(text, SHIPPED, action=True)
        except UnfitReply as fault:
            assert fault.words
            return
        assert read.guidance and read.status
        assert all(explicit(text, part.category) for part in read.detections)

    @given(st.text(), st.booleans())
    def test_never_fails_in_another_way(self, text: str, action: bool) -> None:
        with pytest.raises(UnfitReply):
            read_reply(text, SHIPPED, action=action)
        read = read_reply(f"{text}\nTASK_STATUS: On track\nOVERALL_GUIDANCE: Go on.", SHIPPED, action=action)
        assert (read.status, read.guidance, read.detections) == (TaskStatus.ON_TRACK, "Go on.", ())


MENTIONS = [
    "TASK_STATUS: Critical",
    "OVERALL_GUIDANCE:",
    "Hallucination: DETECTED: Yes",
    "yes",
    "RECOMMENDED_ACTION: ls",
]
WORDS = st.one_of(st.text("abc é.,(/)#|:-0是", min_size=1, max_size=8), st.just("`x`"), st.just('"y"'))


def lines(first: str, words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts whose lines begin with a word, so that none is a mark."""
    line = st.lists(words, max_size=5).map(lambda parts: " ".join([first, *parts]).strip())
    return st.lists(line, min_size=1, max_size=4).map("\n".join)


@st.composite
def assessments(draw: st.DrawFn) -> Assessment:
    names = draw(st.sets(st.sampled_from(sorted(TITLES))))
    part = st.one_of(st.just(""), lines("then", WORDS))
    return Assessment(
        draw(lines("now", st.one_of(WORDS, st.sampled_from(MENTIONS)))),
        draw(st.sampled_from(TaskStatus)),
        tuple(Detection(name, draw(part), draw(part)) for name in TITLES if name in names),
        draw(st.one_of(st.none(), lines("run", WORDS))),
    )


STATUS_WORDS = {
    TaskStatus.ON_TRACK: "On track",
    TaskStatus.NEEDS_CORRECTION: "Needs correction",
    TaskStatus.CRITICAL: "Critical intervention required",
}


def rendered(said: Assessment, key: str, title: str, joint: str, quote: str) -> str:
    """An assessment as a model may write it. `key` and `title` are how those look."""
    found = {part.category: part for part in said.detections}
    rows = []
    for family in SHIPPED.families:
        rows.append(f"\n{family.title} ERRORS:")
        for number, category in enumerate(family.categories, 1):
            part = found.get(category.name)
            heading = title.format(number=number, title=category.title)
            rows.append(f"{heading}{joint}{key.format('DETECTED')} {'Yes' if part else 'No'}")
            for name, text in (("EVIDENCE", part.evidence), ("RECOVERY_ACTION", part.recovery)) if part else ():
                held = text if '"' in text or not text else f"{quote}{text}{quote}"
                rows.append(f"{key.format(name)} {held}")
    rows += ["", f"{key.format('TASK_STATUS')} {STATUS_WORDS[said.status or TaskStatus.ON_TRACK]}"]
    rows.append(f"{key.format('OVERALL_GUIDANCE')} {said.guidance}")
    if said.action is not None:
        rows += ["", f"{key.format('RECOMMENDED_ACTION')} {said.action}"]
    return "\n".join(rows)


@given(
    assessments(),
    st.sampled_from(["{}:", "**{}:**", "**{}**:", "- {}:", "### {}:", "`{}`:"]),
    st.sampled_from(["{number}. {title}", "### {title}", "- **{title}**", "**{number}. {title}**", "{title}"]),
    st.sampled_from([": ", "\n", "\n\n", " - "]),
    st.sampled_from(["", '"']),
)
def test_a_rendered_assessment_is_read_as_it_was(
    said: Assessment, key: str, title: str, joint: str, quote: str
) -> None:
    if joint.strip() and key[0] in "-#":
        key = "{}:"
    assert read_reply(rendered(said, key, title, joint, quote), SHIPPED, action=True) == said


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "piece",
    [
        *("*", "(", "|", "\n", " ", '"', "** ", "```\n", "<think>", "<think>\n", "</think>", "</think>\n", "- ", "é"),
        *("Hallucination\n", "Hallucination (", "Hallucination: DETECTED: Yes\n", "DETECTED: ", "SPECIFICATION\n"),
        *("TASK_STATUS: x\n", "TASK_STATUS: On track ", "OVERALL_GUIDANCE: x\n", "RECOVERY_ACTION: EVIDENCE:", "# x\n"),
        *("| Category | DETECTED |\n| Hallucination | Yes |\n", "\\|", "yes/", "---\n", "1."),
    ],
)
@pytest.mark.parametrize(
    "start", ["", "TASK_STATUS: On track\nOVERALL_GUIDANCE: ", "Hallucination: DETECTED: Yes\nEVIDENCE: "]
)
def test_reading_takes_time_in_proportion_to_length(start: str, piece: str) -> None:
    def work(text: str) -> None:
        with contextlib.suppress(UnfitReply):
            read_reply(text, SHIPPED, action=True)

    assert_linear(lambda size: start + piece * (size // len(piece)), work, 6_000)
