"""Views of files that show nothing new."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import assert_linear
from tests.trajectories.sampleworld import Talk, long_talk
from trajectories.agents.shell.printing import END
from trajectories.agents.steps.redundancy import Exploration, exploration

EDITOR = "str_replace_editor"


class Looks(Talk):
    """A conversation whose turns look at files and change them."""

    def runs(self, command: str, lines: int = 10, code: int = 0, **fields: Any) -> Looks:
        """A command that prints so many lines."""
        output = "".join(f"line {number}\n" for number in range(lines))
        details = {"exit_code": code, **fields.pop("details", {})}
        self.turn("", ("bash", {"command": command}))
        content = fields.pop("content", f"<returncode>{code}</returncode>\n<output>\n{output}</output>")
        self.observation(content, details=details, **fields)
        return self

    def views(self, path: str, first: int, last: int, count: int = 100, content: str = "c0ffee") -> Looks:
        view = {"path": path, "first": first, "last": last, "lines": count, "content": content}
        arguments = {"command": "view", "path": path}
        self.turn("", (EDITOR, arguments)).observation("lines", details={**arguments, "view": view})
        return self

    def edits(self, path: str, error: str | None = None) -> Looks:
        arguments = {"command": "str_replace", "path": path}
        self.turn("", (EDITOR, arguments)).observation("It reads", details=arguments, error=error, tree="t")
        return self


def looks() -> Looks:
    talk = Looks()
    talk.system().query(1)
    return talk


def covered(talk: Talk) -> list[bool]:
    return [view.covered for view in exploration(talk.entries).views]


def test_a_view_whose_lines_were_all_shown_is_covered() -> None:
    talk = looks().views("/testbed/a", 1, 20).views("/testbed/a", 15, 40).views("/testbed/a", 5, 35)
    talk.views("/testbed/a", 30, 41).views("/testbed/b", 1, 2)
    assert covered(talk) == [False, False, True, False, False]
    result = exploration(talk.entries)
    assert (result.steps, result.redundant, result.redundant_share) == (5, 1, 0.2)


def test_the_same_file_is_known_by_any_of_its_names_and_by_both_tools() -> None:
    talk = looks().views("/testbed/src/a.py", 1, 60).runs("sed -n '1,50p' src/a.py", 50)
    talk.runs("cd src", 0, cwd="/testbed/src").runs("head -20 a.py", 20).runs("cat ./../src/a.py", 100)
    talk.views("/testbed/src//a.py", 1, 100)
    assert covered(talk) == [False, True, True, False, True]


def test_the_session_keeps_its_folder_between_commands_and_not_between_stages() -> None:
    talk = looks().runs("cd src && cat a", cwd="/testbed/src").runs("cat a")
    talk.query(2)
    talk.runs("cat a")
    views = exploration(talk.entries).views
    assert [view.path for view in views] == ["/testbed/src/a", "/testbed/src/a", "/testbed/a"]


def test_the_workdir_is_the_one_that_the_query_told() -> None:
    talk = Looks()
    talk._add(talk.system().query(1).entries[-1].kind, "user", "q", details={"workdir": "/repo"})
    assert exploration(talk.runs("cat a").entries).views[0].path == "/repo/a"


def test_a_new_stage_begins_with_nothing_seen_and_a_new_attempt_does_not() -> None:
    talk = looks().views("/testbed/a", 1, 9)
    talk.comment()
    talk.views("/testbed/a", 1, 9)
    talk.query(2)
    talk.views("/testbed/a", 1, 9)
    assert covered(talk) == [False, True, False]


class TestWritten:
    def test_an_edit_makes_the_file_new_and_leaves_others_seen(self) -> None:
        talk = looks().views("/testbed/a", 1, 9).views("/testbed/b", 1, 9).edits("/testbed/./a")
        talk.views("/testbed/a", 1, 9).views("/testbed/b", 1, 9)
        assert covered(talk) == [False, False, False, True]

    def test_an_edit_that_was_refused_changes_nothing(self) -> None:
        talk = looks().views("/testbed/a", 1, 9).edits("/testbed/a", error="no_match").views("/testbed/a", 1, 9)
        assert covered(talk) == [False, True]

    def test_a_command_that_writes_a_file_makes_it_new_also_where_it_fails(self) -> None:
        talk = looks().runs("cat a").runs("sed -i s/x/y/ a; false", code=1).runs("cat a").runs("cat a")
        assert covered(talk) == [False, False, True]

    def test_a_view_after_an_edit_in_the_same_command_is_of_the_new_file(self) -> None:
        assert covered(looks().runs("cat a").runs("echo x >> a && cat a").runs("cat a", 11)) == [False, False, True]

    def test_a_program_that_may_write_anything_makes_all_files_new_where_the_tree_changed(self) -> None:
        talk = looks().runs("cat a").runs("python look.py").runs("cat a").runs("python fix.py", tree="t2").runs("cat a")
        assert covered(talk) == [False, True, False]

    def test_a_program_that_was_not_run_changes_nothing(self) -> None:
        talk = looks().runs("cat a").turn("", ("bash", {"command": "rm a"})).observation("not run", error="not_run")
        assert isinstance(talk, Looks)
        assert covered(talk.runs("cat a")) == [False, True]

    def test_a_file_whose_content_is_another_is_new(self) -> None:
        talk = looks().views("/testbed/a", 1, 9).views("/testbed/a", 1, 9, content="beef")
        assert covered(talk) == [False, False]


class TestShown:
    def test_a_command_that_failed_or_took_too_long_shows_nothing(self) -> None:
        talk = looks().runs("cat a", code=1).runs("cat a", error="timed_out", details={"exit_code": None})
        assert exploration(talk.entries).views == ()
        assert exploration(talk.entries).redundant_share is None

    def test_the_number_of_lines_printed_says_where_a_file_ends(self) -> None:
        talk = looks().runs("cat a", 30).runs("sed -n 1,200p a", 30).views("/testbed/a", 1, 30, 30).runs("tail a")
        views = exploration(talk.entries).views
        assert [view.lines for view in views] == [((1, 30),)] * 3
        assert covered(talk) == [False, True, True]

    def test_a_range_that_reaches_the_end_shows_the_end(self) -> None:
        talk = looks().runs("head -20 a", 20).runs("sed -n '21,90p' a", 10).runs("cat a", 30).runs("cat b; cat a", 60)
        assert covered(talk) == [False, False, True, False, True]

    def test_several_views_in_one_command_count_each(self) -> None:
        talk = looks().runs("cat a; sed -n 1,5p b && head -3 b", 18).runs("cat a && cat b", 30)
        assert covered(talk) == [False, False, True, True, False]

    def test_of_an_output_that_was_cut_only_the_head_and_the_end_were_seen(self) -> None:
        cut = (
            "<returncode>0</returncode>\n<warning>\nlong\n</warning>\n<output_head>\n1\n2\n3\n4 is c\n</output_head>\n"
        )
        fields: dict[str, Any] = {
            "content": f"{cut}<elided_chars>\n9 characters elided\n</elided_chars>",
            "details": {"omitted": 9},
        }
        talk = looks().runs("cat a", **fields).runs("cat a", **fields).runs("head -3 a", 3).runs("sed -n 3,5p a", 3)
        assert exploration(talk.entries).views[0].lines == ((1, 3), (END, END))
        assert covered(talk) == [False, True, True, False]

    def test_an_output_without_marks_says_how_many_lines_it_shows(self) -> None:
        fields: dict[str, Any] = {"content": "OBSERVATION:\na\n" * 30, "details": {"shown_lines": 30}}
        cut: dict[str, Any] = {"content": "a", "details": {"shown_lines": 3, "omitted": 9}}
        views = exploration(looks().runs("cat a", **fields).runs("cat b", **cut).entries).views
        assert [view.lines for view in views] == [((1, 30),), ((1, 3), (END, END))]

    def test_an_empty_file_is_seen_once(self) -> None:
        talk = looks().runs("cat a", 0).runs("cat a", 0).views("/testbed/b", 1, 0, 0).views("/testbed/b", 1, 0, 0)
        assert covered(talk) == [False, True, False, True]

    def test_other_tools_and_folders_are_no_views(self) -> None:
        assert exploration(long_talk().entries).steps == 12
        talk = looks().turn("", (EDITOR, {"command": "view", "path": "/testbed"}))
        talk.observation("/testbed holds", details={"command": "view", "path": "/testbed"})
        assert exploration(talk.entries) == Exploration(1, ())


@pytest.mark.parametrize(
    "arguments",
    ["{", "[" * 100_000, "[1]", '{"command": 1}', "1" * 5000, '{"command": "cat \'a"}', '{"command": "\\ud800"}'],
)
def test_arguments_that_are_anything_raise_nothing(arguments: str) -> None:
    talk = looks().turn("", ("bash", arguments)).observation("x", details={"view": {"first": "x"}, "path": 3})
    talk.turn("", (EDITOR, arguments)).observation("x", details={"view": {"first": "x"}, "path": 3, "command": None})
    assert exploration(talk.entries) == Exploration(2, ())


_ACTS = st.lists(st.one_of(st.tuples(st.integers(1, 30), st.integers(0, 12)), st.just("edit")), max_size=25)


@given(_ACTS)
def test_covered_is_what_a_set_of_lines_says(acts: list[tuple[int, int] | str]) -> None:
    talk, seen, expected = looks(), set[int](), []
    for act in acts:
        if isinstance(act, str):
            talk.edits("/testbed/a")
            seen.clear()
        else:
            lines = set(range(act[0], act[0] + act[1] + 1))
            talk.views("/testbed/a", min(lines), max(lines))
            expected.append(lines <= seen)
            seen |= lines
    assert covered(talk) == expected


def test_time_grows_with_the_number_of_views() -> None:
    def talk(size: int) -> Looks:
        made = looks()
        for number in range(size):
            made.views("/testbed/a", 2 * number % 501 + 1, 2 * number % 501 + 1)
        return made

    assert_linear(talk, lambda made: exploration(made.entries), 500)
