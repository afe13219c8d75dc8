"""RecordedConversations, from requests that each hold all that was said before."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.model import Message, Reply, ToolCall, Usage
from tests.trajectories.recordingworld import TOOL
from trajectories.model import Entry, EntryKind
from trajectories.recording.conversation import Answered, Branch, RecordedConversations

SYSTEM, QUERY = Message("system", "Be brief."), Message("user", "Mend it.")


def same(text: str) -> str:
    return text


def answer(text: str = "", *calls: ToolCall, usd: float = 0.5) -> Answered:
    return Answered(Reply(text, "small", tool_calls=calls, usage=Usage(9, 0, 2)), usd, 1.0, "2026-01-01T00:00:00Z")


def call(command: str, name: str = "c") -> ToolCall:
    return ToolCall(name, "bash", f'{{"command": "{command}"}}')


def said(*calls: ToolCall, text: str = "") -> Message:
    return Message("assistant", text, calls)


def told(content: str, name: str = "c") -> Message:
    return Message("tool", content, tool_call_id=name)


def trained(branch: Branch) -> list[Entry]:
    return [it for it in branch.entries if it.kind is EntryKind.TURN and "loss" not in it.details]


def test_requests_that_go_on_from_each_other_are_one_conversation() -> None:
    all_ = RecordedConversations(same)
    first, new = all_.take([SYSTEM, QUERY], [TOOL], answer("", call("ls")))
    assert new == 0
    second, new = all_.take([SYSTEM, QUERY, said(call("ls")), told("a.py")], [TOOL], answer("Done."))
    assert second is first and new == 3
    assert [(it.kind, it.role, it.content, it.step) for it in first.entries] == [
        ("system", "system", "Be brief.", 0),
        ("query", "user", "Mend it.", 0),
        ("turn", "assistant", "", 1),
        ("observation", "tool", "a.py", 1),
        ("turn", "assistant", "Done.", 2),
    ]
    assert [it.ordinal for it in first.entries] == [0, 1, 2, 3, 4]
    assert first.entries[2].tool_calls == (call("ls"),)
    assert first.entries[3].tool_name == "bash"
    assert (first.entries[4].tokens_in, first.entries[4].usd, first.tools) == (9, 0.5, (TOOL,))


def test_an_agent_may_write_what_was_said_in_its_own_way() -> None:
    all_ = RecordedConversations(same)
    first, _ = all_.take(
        [Message("system", "It is 2026-11-28 10:20:30."), QUERY], [TOOL], answer(" I look. ", call("ls"))
    )
    again = Message("assistant", "I look.", (ToolCall("other", "bash", '{"command":  "ls"}'),), reasoning="kept")
    history = [Message("system", "It is 2026-11-29 23:00:01."), QUERY, again, told("a.py", "other")]
    assert all_.take(history, [TOOL], answer("Done."))[0] is first
    assert len(all_.branches) == 1


def test_a_summary_in_place_of_the_beginning_is_a_branch_and_each_reply_is_under_loss_once() -> None:
    all_ = RecordedConversations(same)
    first, _ = all_.take([SYSTEM, QUERY], [TOOL], answer("", call("ls")))
    all_.take([SYSTEM, QUERY, said(call("ls")), told("a.py")], [TOOL], answer("", call("cat")))
    short = [SYSTEM, Message("user", "Summary: you listed files. Go on.")]
    branch, new = all_.take(short, [TOOL], answer("Done."))
    assert (branch.number, branch.left, branch.shared, new) == (1, first, 0, 0)
    assert [it.content for it in branch.entries] == ["Be brief.", "Summary: you listed files. Go on.", "Done."]
    again, _ = all_.take([SYSTEM, QUERY, said(call("ls")), told("b.py")], [TOOL], answer("Other."))
    assert (again.number, again.left, again.shared) == (2, first, 1)
    assert [len(trained(it)) for it in all_.branches] == [2, 1, 1]
    assert again.entries[2].details["copied"] and again.entries[2].tool_calls == (call("ls"),)


def test_the_branch_that_goes_on_is_that_of_the_reply() -> None:
    all_ = RecordedConversations(same)
    one, _ = all_.take([SYSTEM, QUERY], [TOOL], answer("One."))
    two, _ = all_.take([SYSTEM, QUERY], [TOOL], answer("Two."))
    assert one is not two
    on = [SYSTEM, QUERY, said(text="Two."), Message("user", "Go on.")]
    assert all_.take(on, [TOOL], answer("Three."))[0] is two


def test_a_reply_that_the_program_made_up_is_not_trained_on() -> None:
    all_ = RecordedConversations(same)
    branch, _ = all_.take([SYSTEM, QUERY, said(text="I am sure."), Message("user", "Really?")], [TOOL], answer("Yes."))
    assert [it.content for it in trained(branch)] == ["Yes."]


def test_without_tools_what_comes_back_in_the_users_name_is_an_observation() -> None:
    all_ = RecordedConversations(same)
    all_.take([SYSTEM, QUERY], [], answer("```ls```"))
    branch, _ = all_.take([SYSTEM, QUERY, said(text="```ls```"), Message("user", "a.py")], [], answer("ok"))
    assert [it.kind for it in branch.entries] == ["system", "query", "turn", "observation", "turn"]


def test_secrets_are_kept_out_and_conversations_stay_whole() -> None:
    all_ = RecordedConversations(lambda text: text.replace("hunter2", "[redacted]"))
    all_.take([SYSTEM, Message("user", "hunter2")], [TOOL], answer("", call("echo hunter2")))
    on = [SYSTEM, Message("user", "hunter2"), said(call("echo hunter2")), told("hunter2")]
    branch, _ = all_.take(on, [TOOL], answer("I saw hunter2."))
    assert len(all_.branches) == 1
    assert "hunter2" not in repr(branch.entries)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_however_a_program_jumps_no_reply_is_lost_or_trained_on_twice(jumps: Sequence[int]) -> None:
    all_, histories, asked = RecordedConversations(same), [[SYSTEM, QUERY]], 0
    for jump in jumps:
        history = histories[jump % len(histories)]
        asked += 1
        all_.take(history, [TOOL], answer(f"reply {asked}"))
        histories.append([*history, said(text=f"reply {asked}"), Message("user", f"go on {asked}")])
    texts = [entry.content for branch in all_.branches for entry in trained(branch)]
    assert sorted(texts) == sorted(f"reply {number}" for number in range(1, asked + 1))
    for branch in all_.branches:
        assert [entry.ordinal for entry in branch.entries] == list(range(len(branch.entries)))
        assert branch.entries[-1].kind is EntryKind.TURN
