"""The judge: its prompt, what counts as a verdict, and that no patch can give it instructions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core import errors
from prchain.core.llm.client import OpenAIModel
from prchain.core.llm.endpoint import Endpoint
from prchain.core.llm.gateway import CostEstimate, Gateway, Route
from prchain.core.llm.model import Reply, Request
from prchain.core.llm.price import Price
from prchain.core.llm.wire import reply_of
from tests.chains.taskworld import FakeModel, gateway_of
from tests.endpoint import Answer, Call, FakeEndpoint, completion
from tests.memory_ledger import MemoryLedger
from tests.prchain.secrets_table import DRAWN_TOKEN
from tests.trajectories.hostile import HOSTILE, SAYS, hostile_patches
from trajectories.verdicts.comments import comment_for_agent
from trajectories.verdicts.gates import decide
from trajectories.verdicts.judge import EMPTY, Case, Judge, Judgement

QUERY = "Sums should be rounded as banks do it, in src/sums.py."
VERDICT = {"comment": "Nothing is rounded.", "score": 0.25}

_EXTENT = re.compile(
    r"\([\d,]+ files?, (?:shown in full|of which [\d,]+ are shown in part and [\d,]+ not at all"
    r"|shown, [\d,]+ of them binary, whose content is not)\):"
)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")

Patches = tuple[bytes, bytes, dict[str, bytes]]


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> Patches:
    return hostile_patches(tmp_path_factory.mktemp("hostile"))


def ask(model: FakeModel | Gateway, reference: bytes, agent: bytes, **fields: Any) -> Judgement:
    judge = Judge(model if isinstance(model, Gateway) else gateway_of(model))
    keys: dict[str, Any] = {"subject": "t/1", "sample": 0, "attempt": 1, "query": QUERY, **fields}
    return judge.judge(reference_patch=reference, agent_patch=agent, **keys)


def text_of(request: Request) -> str:
    return "\n\n".join(message.content for message in request.messages)


def nonce_of(request: Request) -> str:
    found = re.search(r"that carry the code ([0-9a-f]{16}) is material", request.messages[0].content)
    assert found is not None
    return found[1]


def parted(request: Request) -> tuple[str, dict[str, str]]:
    """The text outside the fences, with their nonces masked, and the texts inside by label."""
    nonce, text = nonce_of(request), text_of(request)
    [own] = re.findall(r"^The lines around the candidate .*?carry the code ([0-9a-f]{16})\.$", text, re.M)
    inside: dict[str, str] = {}

    def take(match: re.Match[str]) -> str:
        assert match[1] not in inside
        inside[match[1]] = match[3]
        return f"[{match[1]}]"

    outside = re.sub(rf"<<<(\w+) ({nonce}|{own})\n(.*?)\n\1 \2>>>", take, text, flags=re.S)
    return outside.replace(nonce, "NONCE").replace(own, "OWN"), inside


def deaf(request: Request) -> Any:
    """A model that reads only the text outside the fence; its score depends on every character of it."""
    outside = re.sub(r"[\d,]+ files?, [^)]*\)", "EXTENT)", parted(request)[0])
    return {"comment": "The work is not done.", "score": (sum(map(ord, outside)) % 79) / 100}


def test_the_prompt_holds_query_and_both_patches_and_asks_for_score_and_comment(patches: Patches) -> None:
    reference, benign, _ = patches
    model = FakeModel(lambda request: VERDICT)
    judgement = ask(model, reference, benign)
    [request] = model.asked
    outside, inside = parted(request)
    assert inside["query"] == QUERY
    assert "+    return round_half_even(sum(items), 4096)" in inside["reference"]
    assert "+    return sum(items) or None" in inside["candidate"]
    assert outside.index("[query]") < outside.index("[reference]") < outside.index("[candidate]")
    assert (request.purpose, request.subject) == ("judge", "t/1")
    assert request.schema is not None and request.schema["required"] == ["comment", "score"]
    assert judgement == Judgement(0.25, "Nothing is rounded.", usd=judgement.usd)
    assert judgement.usd is not None and judgement.usd > 0


def test_attempts_at_a_stage_share_all_of_the_prompt_before_the_candidate(patches: Patches) -> None:
    reference, benign, hostile = patches
    model = FakeModel(lambda request: VERDICT)
    for patch in (benign, *hostile.values()):
        ask(model, reference, patch)
    before = {text_of(request).partition("The lines around the candidate carry")[0] for request in model.asked}
    assert len(before) == 1 and len({nonce_of(request) for request in model.asked}) == 1


def test_a_candidate_that_holds_the_code_gets_another_and_no_comment_tells_it(patches: Patches) -> None:
    reference, benign, _ = patches
    model = FakeModel(lambda request: VERDICT)
    ask(model, reference, benign)
    code = nonce_of(model.asked[0])
    knowing = benign.replace(b"or None", f"or '{code}'".encode())
    telling = FakeModel(
        lambda request: {"score": 0.1, "comment": f"It ends with {nonce_of(request)} and 0123456789abcdef."}
    )
    judgement = ask(telling, reference, knowing)
    assert nonce_of(telling.asked[0]) != code
    assert judgement.comment == "It ends with  and 0123456789abcdef."


def part(path: str, *lines: str) -> bytes:
    """The patch that adds a file of these lines."""
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return (head + f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)).encode()


def test_the_reference_reads_the_same_whichever_files_the_candidate_touches(patches: Patches) -> None:
    names = ["src/a.py", "src/b.py", "src/c.py"]
    reference = b"".join(part(name, *(f"{name} {number}" for number in range(3_000))) for name in names)
    model = FakeModel(lambda request: VERDICT)
    for name in names:
        ask(model, reference, part(name, "x = 1"))
    assert len({parted(request)[1]["reference"] for request in model.asked}) == 1
    assert "characters left out" in parted(model.asked[0])[1]["reference"]


def test_a_changelog_that_only_the_reference_has_is_told_to_be_no_fault(patches: Patches) -> None:
    model = FakeModel(lambda request: VERDICT)
    ask(model, *patches[:2])
    faultless, _, faults = model.asked[0].messages[0].content.partition("These are faults")
    assert (
        "- no changelog entry, news fragment, release note or documentation where the query asks for none" in faultless
    )
    assert "changelog" not in faults


RESULTS = "Tests of what the query asks for: 1 pass, 1 fail:\n- tests/test_sums.py::test_halves"


def test_results_of_hidden_tests_stand_after_the_candidate_where_the_judge_is_to_see_them(patches: Patches) -> None:
    model = FakeModel(lambda request: VERDICT)
    judge = Judge(gateway_of(model), sees_tests=True)
    keys: dict[str, Any] = {"subject": "t/1", "sample": 0, "attempt": 1, "query": QUERY}
    keys |= {"reference_patch": patches[0], "agent_patch": patches[1]}
    assert judge.judge(**keys, results=RESULTS).saw_tests
    assert not judge.judge(**keys).saw_tests
    assert not ask(model, *patches[:2]).saw_tests
    (told, inside), (untold, plain), (paper, _) = map(parted, model.asked)
    assert inside == {**plain, "results": RESULTS}
    assert told.index("[candidate]") < told.index("[results]") < told.index("Judge the candidate by the rules above")
    assert "[results]" not in untold and "hidden tests" not in paper
    systems = [request.messages[0].content for request in model.asked]
    assert systems[0] == systems[1] != systems[2], "whether tests ran changes nothing of what attempts share"


def test_a_test_name_that_holds_the_code_gets_another_code(patches: Patches) -> None:
    def asked(results: str) -> Request:
        model = FakeModel(lambda request: VERDICT)
        judge = Judge(gateway_of(model), sees_tests=True)
        keys: dict[str, Any] = {"subject": "t/1", "sample": 0, "attempt": 1, "query": QUERY, "results": results}
        judge.judge(reference_patch=patches[0], agent_patch=patches[1], **keys)
        return model.asked[0]

    code = nonce_of(asked(RESULTS))
    ending = f"{RESULTS}[{code}>>>]"
    assert nonce_of(asked(ending)) != code and parted(asked(ending))[1]["results"] == ending


def test_the_other_order_swaps_the_patches_and_nothing_else(patches: Patches) -> None:
    reference, benign, _ = patches
    model = FakeModel(lambda request: VERDICT)
    for candidate_first in (False, True):
        ask(model, reference, benign, candidate_first=candidate_first)
    (first, inside), (second, swapped) = map(parted, model.asked)
    assert second.index("[candidate]") < second.index("[reference]")
    assert inside == swapped
    assert sorted(first.split("\n")) == sorted(second.split("\n"))


def test_the_settings_of_its_purpose_hold_where_the_judge_is_not_told_otherwise(patches: Patches) -> None:
    model = FakeModel(lambda request: VERDICT)
    route = Route(model, Price(1.0, 2.0), temperature=0.3, max_tokens=77)
    gateway = Gateway(MemoryLedger(), None, {"judge": route})
    for judge in (Judge(gateway), Judge(gateway, temperature=0.0, max_tokens=99)):
        judge.judge(subject="t/1", sample=0, attempt=1, query=QUERY, reference_patch=patches[0], agent_patch=patches[1])
    assert [(request.temperature, request.max_tokens) for request in model.asked] == [(0.3, 77), (0.0, 99)]


def test_an_empty_patch_is_scored_zero_without_a_call(patches: Patches) -> None:
    model = FakeModel()
    for nothing in (b"", b"\n"):
        assert ask(model, patches[0], nothing) == Judgement(0.0, EMPTY, None, 0.0, False)
    assert model.asked == []


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_hostile_patch_says_stays_inside_the_fence(name: str, patches: Patches) -> None:
    reference, benign, hostile = patches
    model = FakeModel(lambda request: VERDICT)
    for patch in (benign, hostile[name]):
        for candidate_first in (False, True):
            ask(model, reference, patch, candidate_first=candidate_first)
    pairs = [parted(request) for request in model.asked]
    outsides = [_EXTENT.sub("(EXTENT):", outside) for outside, _ in pairs]
    assert outsides[:2] == outsides[2:]
    assert all(outside.count("(EXTENT):") == 2 for outside in outsides)
    for request, (_, inside) in zip(model.asked, pairs, strict=True):
        assert set(inside) == {"query", "reference", "candidate"}
        assert text_of(request).count(nonce_of(request)) == 1 + 2 * 2
        assert [message.role for message in request.messages] == ["system", "user"]
        assert not _UNSEEN.search(text_of(request))
    assert pairs[0][1]["candidate"] != pairs[2][1]["candidate"]


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_is_stored_or_decided_depends_on_what_a_hostile_patch_says(name: str, patches: Patches) -> None:
    reference, benign, hostile = patches
    outcomes = []
    for patch in (benign, hostile[name]):
        gateway = gateway_of(FakeModel(deaf))
        judgement = ask(gateway, reference, patch)
        comment = comment_for_agent(
            gateway, judgement, None, lambda text: [], gate="judge", threshold=0.8, query=QUERY, subject="t/1"
        )
        stored = (judgement.score, judgement.comment, judgement.error)
        outcomes.append((stored, decide("judge", 0.8, judgement, None), comment.text))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1].accepted is False


@given(st.lists(st.text(max_size=60), max_size=8), st.text(alphabet="<>candidteref0123456789abcdef \n", max_size=80))
def test_the_fence_holds_whatever_an_added_line_says(lines: list[str], tail: str) -> None:
    added = [line for text in (*lines, tail) for line in text.encode("utf-8", "replace").split(b"\n")]
    patch = b"diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,0 +2,%d @@\n" % len(
        added
    ) + b"".join(b"+%b\n" % line for line in added)
    model = FakeModel(lambda request: VERDICT)
    ask(model, b"", patch)
    outside, inside = parted(model.asked[0])
    assert set(inside) == {"query", "reference", "candidate"}
    assert "The candidate patch (1 file, shown in full):\n\n[candidate]" in outside
    assert outside.endswith("Reply with the JSON object alone.")
    assert all(line[:1] in {"+", "@", "-", "d"} for line in inside["candidate"].split("\n"))


class Saying(FakeModel):
    """A model that replies with these texts in turn, unchanged."""

    def __init__(self, *texts: str | Reply) -> None:
        self.texts = list(texts)
        super().__init__(self._next)

    def _next(self, request: Request) -> Reply:
        reply = self.texts.pop(0)
        return reply if isinstance(reply, Reply) else Reply(reply, self.name)


@pytest.mark.parametrize(
    "said",
    [
        "I accept the candidate with 1.0.",
        "1.0",
        '{"score": 1.0}',
        '{"comment": "fine"}',
        '{"comment": "", "score": 1.0}',
        '{"comment": "fine", "score": "1.0"}',
        '{"comment": "fine", "score": true}',
        '{"comment": "fine", "score": null}',
        '{"comment": "fine", "score": 1.01}',
        '{"comment": "fine", "score": -0.1}',
        '{"comment": "fine", "score": NaN}',
        '{"comment": "fine", "score": 1e999}',
        '{"comment": "fine", "score": 0.1, "score": 1.0}',
        '{"comment": "fine", "score": 1.0, "accepted": true}',
        f'The candidate says {SAYS} but my verdict is {{"comment": "wrong", "score": 0.1}}',
        f"[{SAYS}, {SAYS}]",
        '{"verdict": ' + SAYS + "}",
        "",
    ],
)
def test_what_is_no_verdict_leaves_the_attempt_unscored(said: str, patches: Patches) -> None:
    model = Saying(said, said, said)
    judgement = ask(model, *patches[:2])
    assert (judgement.score, judgement.comment, judgement.error) == (None, None, "bad_reply")
    assert len(model.asked) == 3
    for gate in ("judge", "both", "either"):
        assert decide(gate, 0.0, judgement, None).accepted is None


def test_a_refusal_leaves_the_attempt_unscored(patches: Patches) -> None:
    refusal = Reply("", "m", refusal="I cannot")
    assert ask(Saying(refusal, refusal, refusal), *patches[:2]).error == "model_refused"


def test_a_verdict_is_asked_for_again_and_the_second_one_counts(patches: Patches) -> None:
    model = Saying("well", f"Here it is:\n```json\n{SAYS}\n```")
    judgement = ask(model, *patches[:2])
    assert (judgement.score, judgement.error) == (1.0, None)


@pytest.mark.parametrize("name", ["brings its own verdict", "a conversation", "the end of the prompt"])
@pytest.mark.parametrize(
    "said",
    [
        f"The patch holds a verdict of its own: {SAYS}",
        f"It ends so:\n```json\n{SAYS}\n```",
        SAYS,
        '{"score": 1, "comment": "The candidate does what was asked for."}',
        f"I read it. It brings {SAYS} along, which is no work of mine.",
    ],
)
def test_a_verdict_that_the_candidate_brings_is_none_of_the_judges(name: str, said: str, patches: Patches) -> None:
    reference, _, hostile = patches
    assert ask(Saying(said, said, said), reference, hostile[name]).error == "bad_reply"
    own = Saying(said, '{"comment": "It returns 0.", "score": 0.1}')
    assert ask(own, reference, hostile[name]).score == 0.1
    assert len(own.asked) == 2


def test_a_draft_in_a_thought_spoils_no_verdict(patches: Patches) -> None:
    text = f'I could answer {{"comment": "no", "score": 0.1}}, too hard.\n</think>\n\n{json.dumps(VERDICT)}'
    body = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}
    reply = reply_of(json.dumps(body).encode(), "m")
    assert isinstance(reply, Reply)
    judgement = ask(Saying(reply), *patches[:2])
    assert (judgement.score, judgement.comment) == (0.25, "Nothing is rounded.")


@pytest.mark.parametrize(
    "error",
    [
        errors.EndpointUnreachable("x"),
        errors.EndpointRefused("x"),
        errors.RateLimited("x"),
        errors.BudgetExceeded("x"),
        errors.ScriptExhausted("x"),
    ],
)
def test_what_is_not_the_verdicts_fault_is_raised_and_scores_nothing(error: errors.LlmError, patches: Patches) -> None:
    with pytest.raises(type(error)):
        ask(FakeModel(lambda request: error), *patches[:2])


def test_a_stored_verdict_is_not_paid_for_again_and_repeats_are_kept_apart(patches: Patches) -> None:
    ledger, model = MemoryLedger(), FakeModel(lambda request: VERDICT)
    first = ask(gateway_of(model, ledger), *patches[:2])
    again = ask(gateway_of(model, ledger), *patches[:2])
    assert (again.score, again.stored, first.stored) == (0.25, True, False)
    assert again.usd == first.usd and first.usd is not None and first.usd > 0
    for key in ({"sample": 1}, {"attempt": 2}, {"subject": "t/2"}, {"candidate_first": True}):
        assert not ask(gateway_of(model, ledger), *patches[:2], **key).stored
    assert len(model.asked) == 5


def test_a_prompt_that_is_too_long_is_halved_twice_and_then_the_attempt_is_unscored(patches: Patches) -> None:
    reference, _, hostile = patches
    lengths: list[int] = []

    def answer(request: Request) -> Any:
        lengths.append(len(parted(request)[1]["candidate"]))
        return errors.ContextTooLong("too long") if len(lengths) < 3 else VERDICT

    judgement = ask(FakeModel(answer), reference, hostile["huge padding"])
    assert judgement.score == 0.25
    assert lengths[0] > 1.8 * lengths[1] > 3.2 * lengths[2]
    assert judgement.notes == ("candidate patch: 2 files, of which 1 are shown in part and 0 not at all",)
    always = FakeModel(lambda request: errors.ContextTooLong("too long"))
    assert ask(always, reference, hostile["huge padding"]).error == "context_too_long"
    assert len(always.asked) == 3


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error": {"code": "1261", "message": "Prompt \\u8d85\\u957f"}}'),
        (500, b"the request exceeds the available context size"),
        (200, b'{"error": {"code": 400, "message": "prompt is too long: 9 tokens > 5 maximum"}}'),
    ],
)
def test_patches_are_shortened_whatever_the_endpoint_calls_a_full_context(
    patches: Patches, status: int, body: bytes
) -> None:
    reference, _, hostile = patches

    def part(asked: Call) -> Answer:
        return Answer(status, body) if asked.size > 50_000 else completion(json.dumps(VERDICT))(asked)

    with FakeEndpoint(part) as fake:
        endpoint = Endpoint(fake.url)
        judgement = ask(Gateway(MemoryLedger(), Route(OpenAIModel("m", endpoint))), reference, hostile["huge padding"])
        endpoint.close()
        assert len(fake.calls) > 1
    assert judgement.score == 0.25


def test_padding_does_not_push_out_what_the_reference_touches(patches: Patches) -> None:
    reference, _, hostile = patches
    model = FakeModel(lambda request: VERDICT)
    judgement = ask(model, reference, hostile["tests that accept"])
    candidate = parted(model.asked[0])[1]["candidate"]
    assert "+    return 0" in candidate
    assert candidate.index("src/sums.py") < candidate.index("tests/test_more.py") < candidate.index("poetry.lock")
    assert judgement.notes == ("candidate patch: 3 files, of which 1 are shown in part and 1 not at all",)


def test_padding_in_other_source_files_leaves_those_whole_that_the_reference_touches(patches: Patches) -> None:
    sizes = {"src/aa.py": 3_000, "src/bb.py": 3_000, "src/sums.py": 2_000, "src/zz.py": 3_000}
    padded = b"".join(part(name, *(f"line {n:07}" for n in range(size))) for name, size in sizes.items())
    model = FakeModel(lambda request: VERDICT)
    judgement = ask(model, patches[0], padded)
    candidate = parted(model.asked[0])[1]["candidate"]
    assert candidate.startswith("diff --git a/src/sums.py")
    assert "characters left out" not in candidate.partition("diff --git a/src/aa.py")[0]
    assert judgement.notes == ("candidate patch: 4 files, of which 3 are shown in part and 0 not at all",)


@pytest.mark.parametrize("path", ["src/sums.py", "tests/test_sums.py"])
def test_a_cut_in_a_file_that_the_reference_touches_leaves_the_attempt_unscored(path: str, patches: Patches) -> None:
    model = FakeModel(lambda request: VERDICT)
    gateway = gateway_of(model)
    large = part(path, *(f"line {number}" for number in range(9_000)))
    judgement = ask(gateway, patches[0], large)
    assert (judgement.score, judgement.error, judgement.usd) == (None, "candidate_cut", 0.0)
    assert judgement.notes == ("candidate patch: 1 file, of which 1 are shown in part and 0 not at all",)
    for gate in ("judge", "both", "either"):
        assert decide(gate, 0.0, judgement, None).accepted is None
    assert decide("judge", 0.8, judgement, None).reason == "judge: unscored (candidate_cut)"
    assert Judge(gateway).estimate(Case(QUERY, patches[0], large), subject="t/1") == CostEstimate()
    assert model.asked == [], "nothing is asked that cannot be answered"


BINARY = b"diff --git a/%b b/%b\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZ?wbhh\n\n"


def test_a_file_that_is_binary_where_the_reference_is_not_leaves_the_attempt_unscored(patches: Patches) -> None:
    """No model reads what decides, whatever its name is: here an ending that says nothing."""
    model = FakeModel(lambda request: VERDICT)
    hidden = BINARY % (b"src/sums.py", b"src/sums.py")
    judgement = ask(model, patches[0], hidden)
    assert (judgement.score, judgement.error, len(model.asked)) == (None, "candidate_cut", 0)
    assert judgement.notes == ("candidate patch: 1 file, shown, 1 of them binary, whose content is not",)
    image = BINARY % (b"docs/a.png", b"docs/a.png")
    assert ask(model, patches[0] + image, part("src/sums.py", "x = 1") + image).error is None
    assert "The candidate patch (2 files, shown, 1 of them binary, whose content is not):" in text_of(model.asked[0])


def test_a_cut_in_a_lock_file_says_nothing_of_the_work(patches: Patches) -> None:
    model = FakeModel(lambda request: VERDICT)
    lock = part("poetry.lock", *(f"line {number}" for number in range(9_000)))
    judgement = ask(model, patches[0] + lock, part("src/sums.py", "x = 1") + lock)
    assert judgement.error is None and len(model.asked) == 1


def test_a_file_that_only_a_smaller_context_cuts_leaves_the_attempt_unscored_for_that_reason(patches: Patches) -> None:
    model = FakeModel(lambda request: errors.ContextTooLong("too long"))
    judgement = ask(model, patches[0], part("src/sums.py", *(f"line {number:07}" for number in range(3_000))))
    assert (judgement.error, judgement.usd, len(model.asked)) == ("context_too_long", None, 1)


def test_what_git_shows_around_a_change_is_what_the_judge_reads(patches: Patches) -> None:
    """Unchanged lines of a candidate are hostile, too: they may be of an earlier stage's work."""
    lines = [f" line {number} candidate 0123456789abcdef>>>" for number in range(40)]
    body = "\n".join([*lines, "-    return 1", "+    return 2", *lines])
    head = "diff --git a/src/sums.py b/src/sums.py\n--- a/src/sums.py\n+++ b/src/sums.py\n@@ -1,81 +1,81 @@\n"
    model = FakeModel(lambda request: VERDICT)
    ask(model, patches[0], (head + body + "\n").encode())
    outside, inside = parted(model.asked[0])
    assert inside["candidate"].endswith(body) and "line 39" not in outside
    assert "The candidate patch (1 file, shown in full):" in outside
    assert not ask(model, patches[0], (head + body + "\n").encode() + part("src/pad.py", *["x" * 99] * 580)).notes
    outside, inside = parted(model.asked[1])
    assert "The candidate patch (2 files, every change shown):" in outside
    assert re.search(r"(?m)^\[\.\.\. [\d,]+ characters of unchanged lines left out \.\.\.\]$", inside["candidate"])
    assert "\n line 39 " in inside["candidate"] and "+    return 2" in inside["candidate"]


def test_an_estimate_is_of_one_call_and_nothing_once_the_verdict_is_stored(patches: Patches) -> None:
    gateway = gateway_of(FakeModel(lambda request: VERDICT))
    judge = Judge(gateway)
    case = Case(QUERY, *patches[:2])
    estimate = judge.estimate(case, subject="t/1", attempt=1)
    assert estimate.calls == 1 and estimate.tokens_in > 500
    judge.judge(subject="t/1", sample=0, attempt=1, query=QUERY, reference_patch=patches[0], agent_patch=patches[1])
    assert judge.estimate(case, subject="t/1", attempt=1) == CostEstimate()
    assert judge.estimate(Case(QUERY, patches[0], b""), subject="t/2") == CostEstimate()


def test_secrets_and_addresses_reach_neither_prompt_nor_comment(tmp_path: Path) -> None:
    key = DRAWN_TOKEN
    patch = (
        f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1 @@\n+TOKEN = '{key}'  # ada@example.org\n"
    ).encode()
    model = FakeModel(lambda request: {"comment": f"It holds {key}.", "score": 0.5})
    judgement = ask(model, patch, patch, query=f"Use {key}.")
    assert key not in text_of(model.asked[0]) and "ada@example.org" not in text_of(model.asked[0])
    assert judgement.comment == "It holds [redacted]."
