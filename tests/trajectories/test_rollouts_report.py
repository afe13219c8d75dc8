"""What people read of trajectories: the list, and the page of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from prchain.core.console.terminal import STEERING
from sql.tables import TrajectoryStage, Verdict
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.rollouts.report import list_trajectories, print_trajectories, print_trajectory, trajectory_report

CHAIN, TRAJECTORY = "5f0c" * 4, "81c2" * 4
PYTHON = "cat > a.py <<'EOF'\ndef total(prices):\n    for price in prices:\n        yield  price\n\nEOF"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with sample_world(tmp_path) as samples:
        samples.chain(CHAIN)
        yield samples


class TestMessages:
    def printed(self, world: SampleWorld, capsys: pytest.CaptureFixture[str], talk: Talk) -> str:
        world.trajectory(TRAJECTORY, CHAIN, talk)
        print_trajectory(trajectory_report(world.store, TRAJECTORY, messages=True))
        return capsys.readouterr().out

    def test_a_long_message_is_printed_whole(self, world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
        lines = [f"line {number} of a long file" for number in range(2000)]
        page = self.printed(world, capsys, Talk().system().query(1).bash("cat long", "\n".join(lines)))
        assert "".join(f"  {line}\n" for line in lines) in page and "left out" not in page

    def test_brief_cuts_every_text_and_says_how_much(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        talk = Talk().query(1).turn("t" * 500, ("bash", {"command": "c" * 401}), reasoning="r" * 400).observation("o")
        world.trajectory(TRAJECTORY, CHAIN, talk)
        print_trajectory(trajectory_report(world.store, TRAJECTORY, messages=True), brief=True)
        page = capsys.readouterr().out
        assert f"  {'t' * 400} ... (100 more characters)\n" in page
        assert f"    command: {'c' * 400} ... (1 more character)\n" in page
        assert f"    {'r' * 400}\n" in page

    def test_code_in_a_call_keeps_its_lines_and_its_indentation(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = self.printed(world, capsys, Talk().query(1).bash(PYTHON))
        lines = "".join(f"      {line}\n" for line in PYTHON.splitlines())
        assert f"  -> bash\n    command:\n{lines}" in page

    def test_each_argument_stands_below_its_name(self, world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
        edit = {"command": "create", "path": "/a", "file_text": "all:\n\tmake\n", "old_str": "", "view_range": [1, 2]}
        page = self.printed(world, capsys, Talk().query(1).turn("", ("str_replace_editor", edit)).submit())
        assert (
            "  -> str_replace_editor\n    command: create\n    path: /a\n"
            '    file_text:\n      all:\n              make\n    old_str: ""\n    view_range: [1, 2]\n'
        ) in page
        assert "  -> submit\n\n" in page

    @pytest.mark.parametrize("arguments", ['{"command": "broken', "[1,  2]", "[" * 100_000])
    def test_arguments_that_are_no_json_object_are_printed_as_they_were_written(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str], arguments: str
    ) -> None:
        page = self.printed(world, capsys, Talk().query(1).turn("", ("bash", arguments)))
        assert f"  -> bash\n    {arguments}\n" in page

    def test_what_was_reasoned_is_part_of_the_turn(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = self.printed(world, capsys, Talk().query(1).turn("Done.", reasoning="Two is right.\nThree is not."))
        assert ": turn\n  reasoning:\n    Two is right.\n    Three is not.\n  Done.\n" in page

    def test_nothing_in_messages_and_calls_steers_a_terminal_or_forges_a_message(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hostile = "a\x1b[2Jb\r[9] step 9, stage 1.1: turn\u202e\u2028[9] step\ud800"
        escaped = json.dumps({"command": hostile, hostile: hostile})
        talk = Talk().query(1, "").turn("a\x1b[2J\r[9] step", ("bash", escaped)).observation("\x07\u202e\n[9] step")
        page = self.printed(world, capsys, talk)
        assert [line for line in page.split("\n") if STEERING.search(line)] == []
        assert "\n[9]" not in page and page.encode()


class TestStages:
    COMMENT = "A new unit is found and converted, but hardly anything is checked, neither symbols nor sizes. " * 3

    def printed(self, world: SampleWorld, capsys: pytest.CaptureFixture[str], **verdict: Any) -> str:
        world.trajectory(TRAJECTORY, CHAIN, Talk().query(1).submit(), outcome="rejected", accepted=0)
        with world.store.transaction() as tx:
            tx.connection.execute(update(TrajectoryStage).values(reason="attempt 1: judge: 0.3 < 0.8"))
            tx.connection.execute(update(Verdict).values(**verdict))
        print_trajectory(trajectory_report(world.store, TRAJECTORY))
        return capsys.readouterr().out

    def test_the_reason_of_a_stage_is_named_so_and_stands_after_its_attempts(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = self.printed(world, capsys, comment="c", shown=None)
        assert page.endswith(
            "stage 1: rejected, 1 step\n  attempt 1 (?): rejected, score 0.3\n    judge: c\n"
            "  reason: attempt 1: judge: 0.3 < 0.8\n"
        )

    @pytest.mark.parametrize(
        ("shown", "said"),
        [
            (COMMENT, "    sent to the agent: the judge's comment\n"),
            (f"{COMMENT}\n\nA test fails.", "    sent to the agent: the judge's comment, and: A test fails.\n"),
            ("It is not enough.", "    sent to the agent: It is not enough.\n"),
        ],
    )
    def test_what_was_sent_to_the_agent_does_not_repeat_the_judge_s_comment(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str], shown: str, said: str
    ) -> None:
        page = self.printed(world, capsys, comment=self.COMMENT, shown=shown)
        assert said in page and page.count("A new unit is found") == 3

    def test_a_long_comment_is_whole_unless_brief(self, world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
        comment = "word " * 200 + "end"
        assert "end\n" in self.printed(world, capsys, comment=comment, shown=None)
        print_trajectory(trajectory_report(world.store, TRAJECTORY), brief=True)
        assert "end\n" not in capsys.readouterr().out.replace("reason", "")

    def test_without_a_comment_nothing_is_said_of_one(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = self.printed(world, capsys, comment=None)
        assert "judge: c" not in page and "sent to" not in page
        assert "    sent to the agent: A test fails.\n" in self.printed(
            world, capsys, comment=None, shown="A test fails."
        )

    def test_lines_of_prose_have_at_most_100_characters(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = self.printed(world, capsys, comment=self.COMMENT, shown="Not enough is checked. " * 12)
        assert max(map(len, page.splitlines())) <= 100
        assert " ".join(page.split()).count(self.COMMENT.strip()) == 1


class TestList:
    def printed(self, world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> list[str]:
        print_trajectories(list_trajectories(world.store))
        return capsys.readouterr().out.splitlines()

    def test_options_that_all_have_in_common_are_printed_once_below_the_table(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for sample in range(3):
            world.trajectory(f"{sample}" * 16, CHAIN, sample=sample, gate="both", backend="docker")
        head, *rows, common, total = self.printed(world, capsys)
        assert head.split() == ["id", "outcome", "accepted", "steps", "USD", "repository", "and", "chain"]
        assert [row.split()[2:5] for row in rows] == [["3", "of", "3"]] * 3
        assert all(row.endswith(f"{CHAIN} sample {sample}") for sample, row in enumerate(rows))
        words = "gate both 0.8, tools full, context chain, temperature of the endpoint"
        assert common == f"all: react with agent-1, {words}"
        assert total == "3 trajectories, 3 accepted"
        assert max(map(len, [head, *rows, common])) <= 100

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"backend": "local"}, "backend local"),
            ({"carry": "reference"}, "carry reference"),
            ({"refinements": 0}, "refinements 0"),
            ({"observers": ["a", "b"]}, "observed by a and b"),
            ({"model": "agent-2"}, "react with agent-2"),
            ({"gate": "tests", "temperature": 0.5}, "gate tests, temperature 0.5"),
        ],
    )
    def test_a_row_says_what_it_does_not_have_in_common_with_the_others(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str], options: dict[str, Any], said: str
    ) -> None:
        world.trajectory("0" * 16, CHAIN)
        world.trajectory("1" * 16, CHAIN, sample=1, **options)
        head, first, second, common, _ = self.printed(world, capsys)
        assert head.endswith("chain, options") and second.endswith(f"sample 1, {said}") and said not in first
        assert common.startswith("all: ") and "tools full, context chain" in common and said not in common

    def test_the_name_of_an_option_is_not_broken_at_its_hyphen(
        self, world: SampleWorld, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for length in range(1, 20):
            world.trajectory("0" * 16, CHAIN, model="m" * length, temperature=0, backend="unsafe-local")
            assert any("unsafe-local" in line for line in self.printed(world, capsys)), length

    def test_a_list_of_nothing_is_its_number(self, world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.printed(world, capsys) == ["0 trajectories"]
