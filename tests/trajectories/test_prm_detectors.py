"""The detectors of a process reward model: what each finds and leaves alone, and that later steps change no finding."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.llm.model import ToolCall
from tests.growth import assert_linear
from tests.trajectories.sampleworld import Talk, long_talk
from trajectories.agents.guidance.claims import claims
from trajectories.agents.guidance.detecting import find_all
from trajectories.agents.guidance.detector import LONGEST_EVIDENCE, DetectorFinding, WatchedWork, one_line
from trajectories.agents.guidance.detectors import DETECTORS
from trajectories.agents.guidance.detectors.unchecked_edit import WITHIN
from trajectories.agents.guidance.taxonomy import load_taxonomy
from trajectories.agents.shell.programs import read_run, unwrapped
from trajectories.model import Entry, EntryKind

EDITOR = "str_replace_editor"
CODE = "/testbed/src/till.py"


class Work(Talk):
    """A conversation of an agent that works."""

    def runs(self, command: str, output: str = "", code: int = 0, text: str = "", **fields: Any) -> Work:
        self.turn(text, ("bash", {"command": command}))
        details = {"exit_code": code, **fields.pop("details", {})}
        content = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
        self.observation(content, details=details, **fields)
        return self

    def edits(self, path: str = CODE, tree: str | None = None, error: str | None = None, text: str = "") -> Work:
        arguments = {"command": "str_replace", "path": path, "old_str": "a", "new_str": f"b{self.step}"}
        self.turn(text, (EDITOR, arguments))
        details = {"command": "str_replace", "path": path}
        tree = None if error else tree or f"tree {self.step}"
        self.observation(f"It reads {self.step}", details=details, tree=tree, error=error)
        return self

    def views(self, path: str = CODE, first: int = 1, last: int = 9, text: str = "") -> Work:
        view = {"path": path, "first": first, "last": last, "lines": 100, "content": "c0ffee"}
        arguments = {"command": "view", "path": path}
        self.turn(text, (EDITOR, arguments))
        self.observation(f"lines {first} to {last}", details={**arguments, "view": view})
        return self

    def misses(self, path: str) -> Work:
        self.turn("", (EDITOR, {"command": "view", "path": path}))
        self.observation(f"ERROR: There is no {path}.", error="missing", details={"command": "view", "path": path})
        return self

    def looks(self, count: int) -> Work:
        """Steps that show something else each."""
        for _ in range(count):
            self.runs(f"grep -n x{self.step} src/till.py", f"{self.step}")
        return self


def work(query: str | None = None) -> Work:
    talk = Work()
    talk.system().query(1, query)
    return talk


def found(name: str, talk: Talk) -> list[int]:
    return [finding.step for finding in DETECTORS[name].find(WatchedWork(talk.entries))]


def evidence(name: str, talk: Talk) -> str:
    [finding] = DETECTORS[name].find(WatchedWork(talk.entries))
    return finding.evidence


class TestCatalogue:
    def test_each_has_its_modules_name_a_line_of_help_and_a_category_that_ships(self) -> None:
        assert len(DETECTORS) == 7
        for name, detector in DETECTORS.items():
            assert detector.name == name
            assert detector.help and "\n" not in detector.help
            assert load_taxonomy().has(detector.category)

    def test_findings_are_those_of_their_detector_in_one_line_with_one_sentence(self) -> None:
        seen = set()
        for finding in find_all(faulty().entries, 0):
            seen.add(finding.detector)
            assert finding.category == DETECTORS[finding.detector].category
            assert finding.evidence.isprintable() and 0 < len(finding.evidence) <= LONGEST_EVIDENCE
            assert finding.recovery.endswith(".") and finding.recovery.count(". ") == 0
        assert seen == set(DETECTORS)

    def test_all_findings_come_in_the_order_of_steps_then_of_detectors_from_the_first_step_on(self) -> None:
        entries = faulty().entries
        every = find_all(entries, 0)
        order = [(finding.step, finding.detector) for finding in every]
        assert order == sorted(order)
        middle = order[len(order) // 2][0]
        for first in range(middle, entries[-1].step + 2):
            assert find_all(entries, first) == tuple(finding for finding in every if finding.step >= first)

    def test_good_work_has_no_findings(self) -> None:
        talk = work("Till.total in `src/till.py` loses coupons.")
        talk.runs("ls src tests", "till.py\ntest_till.py").views().edits(text="The total is now kept in `total_kept`.")
        talk.runs("python -m pytest -q", "1 failed", code=1).edits().runs("python -m pytest -q", "2 passed")
        talk.runs("git diff", "+b").submit()
        assert find_all(talk.entries, 0) == ()


class TestRepeatedCall:
    def test_the_same_call_with_the_same_result_is_found_the_second_time(self) -> None:
        talk = work().runs("git status", "clean").runs("git status", "clean").runs("git  status", "clean")
        assert found("repeated-call", talk) == [2, 3]

    def test_it_is_quoted_with_its_first_step(self) -> None:
        talk = work().runs("git status", "clean").runs("git status", "clean")
        assert evidence("repeated-call", talk) == "the same result as at step 1: `git status`"

    def test_another_result_or_another_call_is_none(self) -> None:
        talk = work().runs("git status", "clean").runs("git status", "dirty").runs("git status -s", "clean")
        assert found("repeated-call", talk) == []

    def test_views_in_between_are_no_reason_and_changes_are(self) -> None:
        talk = work().runs("pytest", "1 failed", 1).looks(2).runs("pytest", "1 failed", 1).edits()
        assert found("repeated-call", talk.runs("pytest", "1 failed", 1)) == [4]

    def test_a_file_that_was_written_outside_of_the_tree_is_a_change(self) -> None:
        talk = work().runs("python /tmp/a.py", "x").runs("echo y > /tmp/a.py").runs("python /tmp/a.py", "x")
        talk.turn("", (EDITOR, {"command": "create", "path": "/tmp/b.py", "file_text": ""})).observation("made")
        assert found("repeated-call", talk.runs("python /tmp/a.py", "x")) == []

    def test_after_something_ran_that_may_have_changed_things_the_third_time_counts(self) -> None:
        talk = work()
        for number in range(3):
            talk.runs("pytest", "1 failed", 1).runs(f"pip install a{number}", "done")
        assert found("repeated-call", talk) == [5]

    def test_another_folder_is_a_change(self) -> None:
        talk = work().runs("ls", "a").runs("cd src", cwd="/testbed/src").runs("ls", "a")
        assert found("repeated-call", talk) == []

    def test_a_call_that_changes_the_tree_or_writes_a_file_repeats_nothing(self) -> None:
        talk = work().runs("make", "ok", tree="1").runs("make", "ok", tree="2")
        talk.runs("date >> /tmp/log").runs("date >> /tmp/log")
        assert found("repeated-call", talk) == []

    def test_thoughts_submissions_and_waiting_are_excepted(self) -> None:
        talk = work()
        for _ in range(2):
            talk.turn("", ("think", {"thought": "hm"})).observation("Your thought was noted.")
            talk.submit()
            talk.runs("sleep 5; tail log", "working")
            talk.turn("", ("bash", {"command": "ls"})).observation("not run", error="not_run")
        assert found("repeated-call", talk) == []

    def test_a_new_attempt_and_a_new_stage_begin_anew(self) -> None:
        talk = work().runs("ls", "a")
        talk.comment()
        talk.runs("ls", "a").query(2)
        assert found("repeated-call", talk.runs("ls", "a")) == []

    def test_calls_of_one_turn_could_not_know_of_each_other(self) -> None:
        talk = work()
        talk.turn("", *[("bash", {"command": "ls"})] * 2).observation("a", call=0).observation("a", call=1)
        assert found("repeated-call", talk) == []


class TestSeenLines:
    def test_a_covered_view_is_found_with_its_lines(self) -> None:
        talk = work().views(first=1, last=20).views(first=5, last=9)
        assert evidence("seen-lines", talk) == f"shown before and not changed since: {CODE}, lines 5 to 9"

    def test_new_lines_and_lines_of_a_changed_file_are_none(self) -> None:
        talk = work().views(first=1, last=9).views(first=5, last=12).edits().views(first=1, last=9)
        assert found("seen-lines", talk) == []

    def test_several_in_a_step_are_one_finding(self) -> None:
        talk = work().runs("cat a; cat b", "1\n2").runs("cat a; cat b", "1\n2")
        assert evidence("seen-lines", talk).endswith("/testbed/a, lines 1 to the end, and 1 more in this step")

    def test_a_view_that_hands_in_is_none(self) -> None:
        talk = work().runs("cat p", "+x").runs("cat p", "+x", details={"submitted": True})
        assert found("seen-lines", talk) == []


class TestTreeAlternation:
    @pytest.mark.parametrize(
        ("trees", "steps"),
        [("ABAB", [4]), ("ABABA", [4, 5]), ("ABA", []), ("ABAC", []), ("ABCABC", []), ("AABB", []), ("ABBAAB", [6])],
    )
    def test_it_is_a_tree_that_comes_back_twice(self, trees: str, steps: list[int]) -> None:
        talk = work()
        for tree in trees:
            talk.edits(tree=tree)
        assert found("tree-alternation", talk) == steps

    def test_steps_without_a_change_in_between_do_not_matter_and_attempts_neither(self) -> None:
        talk = work().edits(tree="A").looks(2).edits(tree="B").edits(tree="A")
        talk.comment()
        talk.looks(1).edits(tree="B")
        assert evidence("tree-alternation", talk).startswith("steps 1, 4, 5, 7 switch between")

    def test_a_new_stage_begins_anew(self) -> None:
        talk = work().edits(tree="A").edits(tree="B")
        talk.query(2)
        assert found("tree-alternation", talk.edits(tree="A").edits(tree="B")) == []


class TestUncheckedEdit:
    def test_it_stands_at_the_last_of_the_steps_and_again_after_as_many_more(self) -> None:
        assert WITHIN == 5
        talk = work().looks(1).edits().looks(4)
        assert found("unchecked-edit", talk) == []
        talk.looks(1)
        assert found("unchecked-edit", talk) == [7]
        assert evidence("unchecked-edit", talk).startswith(f"nothing was run in the 5 steps after the edit of {CODE}")
        assert found("unchecked-edit", talk.looks(6)) == [7, 12]

    @pytest.mark.parametrize(
        "command",
        ["pytest", "cd src && python -c 'x'", "./run", "make", "timeout 5 node a.js", "cat > a.py <<E\nE\npython a.py"],
    )
    def test_a_run_checks_it(self, command: str) -> None:
        assert found("unchecked-edit", work().edits().looks(2).runs(command).looks(5)) == []

    @pytest.mark.parametrize(
        "command", ["git diff", "ls", "grep -n pytest a", "cat a | head", "sed -n 1,5p a", "cp a b"]
    )
    def test_what_only_looks_is_no_run(self, command: str) -> None:
        assert found("unchecked-edit", work().edits().runs(command).looks(4)) == [6]

    @pytest.mark.parametrize(
        "path", ["/testbed/README.md", "/testbed/docs/a.rst", "/tmp/a.py", "/testbed/a.txt", "/other/a.py"]
    )
    def test_texts_and_files_elsewhere_need_none(self, path: str) -> None:
        assert found("unchecked-edit", work().edits(path).looks(6)) == []

    def test_a_refused_edit_is_none(self) -> None:
        assert found("unchecked-edit", work().edits(error="no_match").looks(6)) == []

    @pytest.mark.parametrize(
        ("command", "steps"),
        [
            ("sed -i s/a/b/ src/a.py", [6]),
            ("cat > src/a.py <<'E'\nx\nE", [6]),
            ("cp a.py a.py.backup", []),
            ("echo > a", []),
        ],
    )
    def test_commands_that_write_code_are_edits(self, command: str, steps: list[int]) -> None:
        assert found("unchecked-edit", work().runs(command, tree="t").looks(5)) == steps

    def test_the_folder_of_the_session_and_of_the_repository_are_heeded(self) -> None:
        talk = Work()
        talk._add(EntryKind.QUERY, "user", "q", details={"workdir": "/repo"})
        talk.runs("cd lib", cwd="/repo/lib").runs("sed -i s/a/b/ a.py", tree="t").looks(5)
        assert "/repo/lib/a.py" in evidence("unchecked-edit", talk)


class TestWorkAfterPassing:
    def test_it_is_found_after_three_steps_and_after_three_more(self) -> None:
        talk = work().edits().runs("pytest", "3 passed").looks(2)
        assert found("work-after-passing", talk) == []
        assert found("work-after-passing", talk.looks(5)) == [5, 8]

    def test_to_run_them_again_does_not_begin_anew(self) -> None:
        talk = work().edits().runs("pytest", "3 passed").looks(1).runs("pytest", "3 passed").looks(1)
        assert (
            evidence("work-after-passing", talk)
            == "3 steps without a change of any file since `pytest` passed at step 2"
        )

    @pytest.mark.parametrize(
        ("command", "output", "code", "steps"),
        [
            ("pytest", "3 passed", 0, [5]),
            ("cd src && timeout 60 python -m pytest tests -q", "", 0, [5]),
            ("pytest 2>&1 | tail -5", "3 passed in 1s", 0, [5]),
            ("npm test && echo done", "", 0, [5]),
            ("go test ./...", "ok", 0, [5]),
            ("pytest 2>&1 | tail -5", "1 failed, 3 passed in 1s", 0, []),
            ("pytest | tail -5", "", 0, []),
            ("pytest || true", "", 0, []),
            ("pytest; echo", "", 0, []),
            ("pytest", "1 failed", 1, []),
            ("pytest -k one", "1 passed", 0, []),
            ("pytest a.py::test_one", "1 passed", 0, []),
            ("pytest --version", "8", 0, []),
            ("grep -rn 'pytest' .", "3 passed", 0, []),
            ("python a.py", "3 passed", 0, []),
        ],
    )
    def test_only_tests_that_passed_count(self, command: str, output: str, code: int, steps: list[int]) -> None:
        assert found("work-after-passing", work().edits().runs(command, output, code).looks(3)) == steps

    def test_before_the_first_change_of_the_attempt_passing_tests_say_nothing(self) -> None:
        talk = work().runs("pytest", "3 passed").looks(4).edits()
        talk.comment()
        assert found("work-after-passing", talk.runs("pytest", "3 passed").looks(4)) == []

    def test_a_change_or_a_failure_begins_anew(self) -> None:
        talk = work().edits().runs("pytest", "3 passed").looks(2).edits().looks(4)
        assert found("work-after-passing", talk) == []
        talk = work().edits().runs("pytest a", "3 passed").looks(1).runs("pytest b", "1 failed", 1).looks(4)
        assert found("work-after-passing", talk) == []

    def test_scratch_files_are_changes_and_handing_in_is_no_step(self) -> None:
        talk = work().edits().runs("pytest", "3 passed").looks(1).runs("rm /tmp/a.py").looks(3)
        assert found("work-after-passing", talk) == []
        talk = work().edits().runs("pytest", "3 passed").looks(2)
        talk.turn("", ("submit", {})).observation("Done.", details={"submitted": True})
        assert found("work-after-passing", talk) == []


class TestRepeatedFault:
    def faults(self, *names: str | None, tools: Mapping[int, str] | None = None) -> list[int]:
        talk = work()
        for number, name in enumerate(names):
            talk.turn("", ((tools or {}).get(number, EDITOR), {"command": "view", "path": f"/{number}"}))
            talk.observation("ERROR", error=name)
        return found("repeated-fault", talk)

    def test_twice_in_a_row_is_found(self) -> None:
        assert self.faults("missing", "missing", None, "missing", "no_match") == [2, 4]

    def test_three_times_in_five_calls_is_found(self) -> None:
        assert self.faults("missing", None, "missing", None, "missing") == [5]
        assert self.faults("missing", None, None, "missing", None, None, "missing") == []

    def test_other_errors_and_other_tools_are_others(self) -> None:
        assert self.faults("missing", "no_match") == []
        assert self.faults("missing", "missing", tools={1: "bash"}) == []

    @pytest.mark.parametrize("name", ["not_run", "cut_off", "refusal"])
    def test_what_is_no_tools_fault_is_left_out(self, name: str) -> None:
        assert self.faults(name, name, name) == []

    def test_calls_of_one_turn_count_once(self) -> None:
        talk = work()
        talk.turn("", *[(EDITOR, {"command": "view", "path": "/a"})] * 3)
        for call in range(3):
            talk.observation("ERROR", call=call, error="missing")
        assert found("repeated-fault", talk) == []
        assert evidence("repeated-fault", talk.misses("/b")) == (
            f"missing once more, by {EDITOR} view /b: ERROR: There is no /b."
        )

    def test_a_new_attempt_begins_anew(self) -> None:
        talk = work().misses("/a")
        talk.comment()
        assert found("repeated-fault", talk.misses("/b")) == []


class TestUnshownName:
    def test_a_file_that_is_not_there_and_that_nothing_named_is_found_once(self) -> None:
        talk = work().misses("/testbed/src/coupons.py").misses("/testbed/src/coupons.py")
        assert evidence("unshown-name", talk) == (
            "there is no /testbed/src/coupons.py, and nothing had named it before: "
            f"{EDITOR} view /testbed/src/coupons.py"
        )

    @pytest.mark.parametrize(
        ("command", "line"),
        [
            ("cat src/coupons.py", "cat: src/coupons.py: No such file or directory"),
            ("sed -n 1,9p src/coupons.py", "sed: can't read src/coupons.py: No such file or directory"),
            ("head src/coupons.py", "head: cannot open 'src/coupons.py' for reading: No such file or directory"),
            ("pytest src/coupons.py", "collecting ... ERROR: file or directory not found: src/coupons.py"),
            ("python src/coupons.py", "python: can't open file 'src/coupons.py': [Errno 2] No such file or directory"),
        ],
    )
    def test_commands_that_read_or_run_it_are_found(self, command: str, line: str) -> None:
        assert found("unshown-name", work().runs(command, line, 1)) == [1]

    @pytest.mark.parametrize(
        ("command", "line"),
        [
            ("ls src/coupons.py", "ls: cannot access 'src/coupons.py': No such file or directory"),
            ("cat setup.cfg tox.ini", "cat: tox.ini: No such file or directory"),
            ("cat /tmp/coupons.py", "cat: /tmp/coupons.py: No such file or directory"),
            ("make", "cat: src/coupons.py: No such file or directory"),
        ],
    )
    def test_asking_usual_files_and_files_of_others_are_none(self, command: str, line: str) -> None:
        assert found("unshown-name", work().runs(command, line, 1)) == []

    @pytest.mark.parametrize("query", ["Mend `src/coupons.py`.", "coupons.py is wrong", "till.coupons in the py files"])
    def test_a_file_that_was_named_is_none(self, query: str) -> None:
        assert found("unshown-name", work(query).misses("/testbed/src/coupons.py")) == []

    def test_a_file_that_is_there_was_rightly_guessed(self) -> None:
        assert found("unshown-name", work().views("/testbed/src/coupons.py").runs("cat src/refunds.py", "x")) == []

    def test_a_claimed_name_that_nothing_holds_is_found_once(self) -> None:
        words = "The helper `apply_coupon` in `src/till.py` rounds and is called by the total."
        talk = work("Mend src/till.py").views(text=words).views(text=words)
        assert evidence("unshown-name", talk) == f"nothing has shown apply_coupon: {words}"

    def test_a_claimed_file_that_nothing_holds_is_found(self) -> None:
        talk = work().views(text="The totals are in src/receipts.py. I go there.")
        assert "src/receipts.py" in evidence("unshown-name", talk)

    @pytest.mark.parametrize(
        "shown",
        [
            "def apply_coupon(x):",
            "class ApplyCoupon:",
            "applyCoupon()",
            "def test_apply_coupon_twice():",
            r"\napply_coupon",
            "APPLY_COUPON = 1",
        ],
    )
    def test_a_name_that_was_shown_in_any_spelling_is_none(self, shown: str) -> None:
        words = "The helper `apply_coupon` in src/till.py rounds and is called."
        talk = work("Mend src/till.py").runs("grep -rn coupon src", shown).looks(1)
        assert found("unshown-name", talk.views(text=words)) == []
        later = work("Mend src/till.py").runs("grep -n x src/till.py", shown, text=words)
        assert found("unshown-name", later) == []

    def test_what_the_agent_wrote_itself_is_none(self) -> None:
        words = "The helper `apply_coupon` in src/till.py is there."
        made = {"command": "create", "path": CODE, "file_text": "def apply_coupon(): ..."}
        talk = work("Mend src/till.py")
        talk.turn("", (EDITOR, made)).observation("made")
        assert found("unshown-name", talk.views(text=words)) == []
        talk = work("Mend src/till.py")
        talk.turn(words, (EDITOR, made)).observation("made")
        assert found("unshown-name", talk) == []

    def test_thoughts_and_reasoning_are_words(self) -> None:
        words = "The helper `apply_coupon` in src/till.py is there."
        talk = work("Mend src/till.py")
        talk.turn("", ("think", {"thought": words})).observation("noted")
        talk.turn("", ("bash", {"command": "ls"}), reasoning=words.replace("coupon", "refund")).observation("a")
        assert found("unshown-name", talk) == [1, 2]

    @pytest.mark.parametrize(
        "words",
        [
            "I will add `apply_coupon` to src/till.py, which is short.",
            "Is `apply_coupon` defined in src/till.py?",
            "There is no `apply_coupon` in src/till.py.",
            "Perhaps `apply_coupon` in src/till.py is the place.",
            "If `apply_coupon` is in src/till.py, it has a test.",
            "`apply_coupon` is short.",
            "The method `read_text` of Path is used in src/till.py, it is `pathlib.Path`.",
            "The word apply_coupon is in src/till.py.",
            "```\n`apply_coupon` is in src/till.py.\n```",
            "The module `json.decoder_of` is in src/till.py.",
            "It has a `my_example` in src/till.py.",
        ],
    )
    def test_plans_questions_doubts_and_names_of_the_world_claim_nothing(self, words: str) -> None:
        assert found("unshown-name", work("Mend src/till.py").views(text=words)) == []

    def test_what_an_earlier_stage_has_shown_counts(self) -> None:
        words = "The helper `apply_coupon` in src/till.py is there."
        talk = work("Mend src/till.py").runs("cat src/till.py", "def apply_coupon")
        talk.query(2)
        assert found("unshown-name", talk.views(text=words)) == []

    def test_claims_are_files_and_names(self) -> None:
        text = "`Till.add_item()` in src/till.py returns it. I add `Till.put_item` to src/till.py, as is right."
        assert [(claim.text, claim.is_file) for claim in claims(text, "/testbed")] == [
            ("src/till.py", True),
            ("add_item", False),
        ]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("timeout -k 5 60 python -X dev -m pytest", ["pytest"]),
        ("env A=1 poetry run pytest -q", ["pytest", "-q"]),
        ("python -m coverage run -m pytest", ["pytest"]),
        ("xargs -n 1 grep x", ["grep", "x"]),
        ("python -c x", ["python", "-c", "x"]),
        ("python", ["python"]),
    ],
)
def test_a_program_is_found_behind_those_that_run_it(command: str, program: list[str]) -> None:
    assert list(unwrapped(tuple(command.split()))) == program


@pytest.mark.parametrize("command", ["echo 'a", "x" * 20_000, "\ud800", "", "&&;|", "$(", "python -m", "env", "-m -m"])
def test_a_command_that_is_anything_can_be_read(command: str) -> None:
    assert not read_run(command).tests


def test_evidence_is_one_line_of_printable_characters() -> None:
    assert one_line(" a\n\x1b[1m b\u2028\ud800c\t") == "a [1m b c"
    assert len(one_line("x" * 10_000)) == LONGEST_EVIDENCE == len(one_line("x " * 10_000))
    assert one_line("x\n" * 150) == " ".join("x" * 150)


# ---- of all detectors: later entries change nothing, nothing raises, time is linear


def faulty() -> Work:
    """A conversation in which every detector finds something."""
    talk = work("Mend src/till.py").misses("/testbed/src/coupons.py").misses("/testbed/src/refunds.py")
    talk.views().views(text="The helper `apply_coupon` in src/till.py is wrong.")
    talk.runs("git status", "clean").runs("git status", "clean")
    for tree in "ABAB":
        talk.edits(tree=tree)
    talk.looks(5).runs("pytest", "3 passed").looks(7)
    talk.comment()
    return talk.misses("/testbed/a/b.py").misses("/testbed/a/c.py").runs("pytest", "3 passed").edits()


_STEPS: dict[str, Callable[[Work], object]] = {
    "look": lambda talk: talk.runs("grep x a", "1", text="It is in `src/other.py`, the `odd_name` of the module is."),
    "view": lambda talk: talk.views(),
    "miss": lambda talk: talk.misses(f"/testbed/lib/a{talk.step}.py"),
    "edit": lambda talk: talk.edits(tree=f"t{talk.step % 3}"),
    "test": lambda talk: talk.runs("pytest", "3 passed"),
    "fail": lambda talk: talk.runs("pytest", "1 failed", 1),
    "comment": lambda talk: talk.comment("`odd_name` is wrong"),
    "guide": lambda talk: talk.guide("Look at src/other.py."),
    "stage": lambda talk: talk.query(2),
    "talk": lambda talk: talk.turn("`odd_name` is in src/till.py.").observation("Call a tool.", error="no_call"),
}


def up_to(findings: tuple[DetectorFinding, ...], step: int) -> tuple[DetectorFinding, ...]:
    return tuple(finding for finding in findings if finding.step <= step)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(sorted(_STEPS)), max_size=24))
def test_later_steps_change_no_finding(acts: list[str]) -> None:
    talk = work()
    ends = []
    for act in acts:
        _STEPS[act](talk)
        ends.append(len(talk.entries))
    every = find_all(talk.entries, 0)
    for end in ends:
        assert find_all(talk.entries[:end], 0) == up_to(every, talk.entries[end - 1].step)
        first = talk.entries[end - 1].step
        assert find_all(talk.entries, first) == tuple(finding for finding in every if finding.step >= first)


def test_later_steps_change_no_finding_of_faulty_work() -> None:
    entries = faulty().entries
    every = find_all(entries, 0)
    for end, entry in enumerate(entries, 1):
        if entry.kind is EntryKind.OBSERVATION:
            assert find_all(entries[:end], 0) == up_to(every, entry.step)


def test_what_every_entry_of_a_rollout_may_be_is_read() -> None:
    assert {finding.detector for finding in find_all(long_talk().entries, 0)} <= set(DETECTORS)


_TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "`a_b` in c.py is x.",
            "cat: a/b.py: No such file or directory",
            "pytest",
            "cat 'a",
            "/testbed/a.py",
            "\ud800`",
            "<output>\n",
        ]
    ),
)
_VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)),
    max_leaves=6,
)
_ARGUMENTS = st.one_of(
    _TEXT,
    st.just("[" * 100_000),
    st.fixed_dictionaries(
        {}, optional={name: st.one_of(_TEXT, _VALUE) for name in ("command", "path", "thought", "file_text")}
    ).map(json.dumps),
)
_DETAILS = st.dictionaries(
    st.sampled_from(["exit_code", "view", "path", "command", "submitted", "workdir", "variables", "omitted"]),
    st.one_of(_VALUE, st.fixed_dictionaries({"path": _VALUE, "first": st.integers(), "last": st.integers()})),
)
_IDS = st.sampled_from(["1", "2", ""])
_CALLS = st.lists(
    st.builds(ToolCall, _IDS, st.sampled_from(["bash", EDITOR, "think", "submit", "x", ""]), _ARGUMENTS), max_size=3
)
_SMALL = st.integers(-1, 4)
_ENTRIES = st.lists(
    st.builds(
        Entry,
        ordinal=_SMALL,
        position=_SMALL,
        attempt=_SMALL,
        step=_SMALL,
        kind=st.sampled_from(EntryKind),
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        content=_TEXT,
        reasoning=st.one_of(st.none(), _TEXT),
        tool_calls=_CALLS.map(tuple),
        tool_call_id=st.one_of(st.none(), _IDS),
        tool_name=st.one_of(st.none(), st.sampled_from(["bash", EDITOR]), _TEXT),
        error=st.one_of(st.none(), st.sampled_from(["missing", "file_error"]), _TEXT),
        details=_DETAILS,
        tree=st.one_of(st.none(), st.sampled_from(["a", "b"])),
        cwd=st.one_of(st.none(), _TEXT),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=150)
@given(_ENTRIES)
def test_entries_that_are_anything_raise_nothing(entries: list[Entry]) -> None:
    for finding in find_all(entries, -1):
        assert finding.evidence.isprintable() and len(finding.evidence) <= LONGEST_EVIDENCE


def test_time_grows_with_the_number_of_steps() -> None:
    def talk(size: int) -> list[Entry]:
        made = work()
        for number in range(size):
            words = f"The helper `apply_number_{number}` in src/till.py is x. " * 5
            made.runs(f"grep -rn x{number} src", f"def some_name_{number}(): ...\n" * 40, text=words)
            made.views(first=number, last=number).edits().runs(f"pytest a{number}", "1 failed\n" * 20, 1)
            made.misses(f"/testbed/src/a{number}.py")
        return made.entries

    assert_linear(talk, lambda entries: find_all(entries, 0), 25)


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "text",
    [
        "`",
        "`a_b",
        "```",
        " a.py is in ",
        "a/",
        "cat: ",
        "cat: a",
        "1 ",
        "1 passed",
        ". ",
        "is ",
        "\\n",
        "_a",
        "in the x ",
    ],
)
def test_time_grows_with_the_length_of_texts(text: str) -> None:
    def talk(size: int) -> list[Entry]:
        long = text * size
        made = work().runs("cat a.py", f"{long}No such file or directory", text=long)
        made.turn(long, ("bash", {"command": f"cat {long}"}), reasoning=long).observation(long)
        return made.entries

    assert_linear(talk, lambda entries: find_all(entries, 0), 5_000)
