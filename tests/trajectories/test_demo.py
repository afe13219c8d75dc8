"""The demo from nothing to samples, by its own command line."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import delete, update
from sqlalchemy import text as sql_text

from environments.backend import Usable
from environments.backends import BACKENDS
from environments.backends.docker import DockerBackend
from environments.backends.local import LocalBackend
from prchain.cli import run
from prchain.core.errors import DemoStopped, EngineUnavailable, UsageError
from prchain.core.settings import Settings
from prchain.demo.backend import ChosenBackend, choose
from prchain.demo.beside import WIDTH
from prchain.demo.commands import GUIDED_CHAIN, demo_commands
from prchain.demo.folder import claim, prepare
from prchain.demo.funnel import Funnel
from prchain.demo.guidance import print_guidance
from prchain.demo.run import Outcome, _program, print_outcome, run_demo
from sql.store import Store
from sql.tables import (
    CurationCandidate,
    CurationWindow,
    LlmCall,
    PrmFinding,
    PrmWindow,
    Trajectory,
    TrajectoryMessage,
    TrajectoryStage,
    Verdict,
)
from tests.endpoint import FakeEndpoint, completion
from tests.trajectories.demoworld import Ran, go_on_to_windows, run_through

PLAIN = ChosenBackend(BACKENDS["unsafe-local"], "a test")


def bash_alone(ran: Ran, chain: str = "") -> dict[str, str]:
    """The rollouts with bash alone by id, of all chains or one, with their outcomes."""
    rows = ran.rows(Trajectory, "id", "outcome", "options", "chain_id")
    return {name: outcome for name, outcome, options, of in rows if options["tools"] == "bash" and of.startswith(chain)}


def guidance_page(printed: str) -> str:
    """What is printed of the guidance, once both rollouts are over."""
    return printed.partition("\nA window: stage")[2].partition("\n9. A cheat")[0]


@pytest.fixture
def ran(finished_demo: Ran) -> Ran:
    """The demo, run once."""
    return finished_demo


def test_the_funnel_leads_from_pull_requests_to_samples(ran: Ran) -> None:
    funnel = ran.printed.partition("The funnel\n")[2]
    counts = {what.strip(): int(count) for count, what in re.findall(r"^ *(\d+)  ([a-z ]+?)  ", funnel, re.M)}
    assert counts == {
        "pull requests": 14,
        "citations": 14,
        "chains": 4,
        "tasks": 4,
        "chains proved": 4,
        "trajectories": 7,
        "verdicts": 18,
        "samples": 3,
    }
    assert "4 accepted, 3 rejected" in funnel and "refused the work, 1 as tampered" in funnel
    for name in ("measures", "prchain.db", "samples.jsonl"):
        assert str(ran.folder / name) in funnel
        assert (ran.folder / name).exists()


def test_each_command_is_shown_before_its_output(ran: Ran) -> None:
    commands = re.findall(r"^\$ prchain (.*)$", ran.printed, re.M)
    shown = [list(step.command[:2]) for step in demo_commands(PLAIN, everything=True) if step.command]
    shown.insert(shown.index(["curate", "graphs"]) + 1, ["curate", "show"])
    assert [line.split()[:2] for line in commands] == shown
    place = [ran.printed.index(text) for text in ("$ prchain mine", "14 pull requests, 13 landed", "$ prchain chains")]
    assert place == sorted(place)


def test_the_log_tells_what_was_done_and_quotes_neither_prompts_nor_replies(ran: Ran) -> None:
    for words in (
        r"INFO .*sandbox [0-9a-f]{6} started in [\d.]+ s",
        r"INFO .*prchain\.core\.runs: .* begins\n",
        r"INFO .*prchain\.core\.runs: .* ended accepted after [\d.]+ s\n",
        r"DEBUG .*prchain\.core\.llm\.gateway: judge of .*: answered by",
    ):
        assert re.search(words, ran.logged), words
    texts = [*ran.rows(TrajectoryMessage, "content"), *ran.rows(LlmCall, "reply")]
    pieces = {piece.strip() for (text,) in texts for piece in re.split(r'\n|\\n|"|\. ', str(text))}
    quotable = {piece for piece in pieces if len(piece) > 30}
    assert len(quotable) > 100
    assert [piece for piece in quotable if piece in ran.logged] == []


def test_one_stage_was_sent_back_and_mended_and_one_chain_rejected(ran: Ran) -> None:
    guided = bash_alone(ran)
    rows = ran.rows(TrajectoryStage, "trajectory_id", "outcome", "attempts")
    stages = sorted(row[1:] for row in rows if row[0] not in guided)
    assert stages == [("accepted", 1)] * 7 + [("accepted", 2), ("not_reached", 0), ("rejected", 4)]
    output = ran.printed.partition("$ prchain rollouts run")[2].partition("6. Process graph")[0]
    assert "bash alone" not in output
    assert "stage 2 (#5), attempt 1: sent back; the judge gives 0.4, hidden tests fail" in output
    assert "stage 2 (#5), attempt 2: accepted; the judge gives 0.9, the hidden tests pass" in output
    assert "#4 > #11, trajectory" in output and "stage 2 (#11): not_reached" in output


def test_what_the_agent_did_really_happened(ran: Ran) -> None:
    observations = "\n".join(row[0] for row in ran.rows(TrajectoryMessage, "content", kind="observation"))
    for result in ("'-0 h 30 min' -30", "'5 km - 300 m' 47/10", "86400 s -> 1 d", "59.999 s -> 1 min | 59.999 s"):
        assert result in observations
    assert "FAILED" not in observations


def test_samples_hold_the_conversations_and_leave_rejected_turns_out_of_the_loss(ran: Ran) -> None:
    refused = [
        [message["content"] for message in sample["messages"] if message.get("weight") == 0] for sample in ran.samples
    ]
    assert len(refused) == 3
    assert any(
        "Minus ninety and ninety minutes: the sign holds for all parts. I hand this in." in turn for turn in refused
    )
    for sample in ran.samples:
        assert [message["role"] for message in sample["messages"][:2]] == ["system", "user"]
        assert sum(message.get("weight", 0) for message in sample["messages"]) >= 7


def test_run_again_it_asks_nothing_and_comes_to_the_same(
    finished_demo: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(finished_demo.copied(tmp_path / "demo"), finished_demo.printed, finished_demo.logged)
    calls, samples = len(ran.rows(LlmCall, "id")), (ran.folder / "samples.jsonl").read_bytes()
    monkeypatch.setenv("PRCHAIN_DB", "sqlite:////nowhere/at/all.db")
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", "/nowhere")
    before = os.getcwd()
    assert run(["demo", "--all", "--folder", str(ran.folder), "--backend", "unsafe-local", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["trajectories"] == {"accepted": 4, "rejected": 3}
    assert "there from before" in output.err and "nothing new to do" in output.err
    assert guidance_page(output.err) == guidance_page(ran.printed)
    for kind in ("bash alone): rejected", "bash alone, guided): accepted"):
        assert f"({kind}" in output.err.partition("6. Process graph")[0]
    assert len(ran.rows(LlmCall, "id")) == calls
    assert (ran.folder / "samples.jsonl").read_bytes() == samples
    assert (os.getcwd(), os.environ["PRCHAIN_DB"]) == (before, "sqlite:////nowhere/at/all.db")


def test_a_cheat_is_rejected_as_tampered_and_the_demo_says_how_it_was_seen(ran: Ran) -> None:
    ((name, grade),) = ran.rows(Verdict, "trajectory_id", "grade", tests="tampered")
    cheats = grade["cheats"]
    assert cheats[0] == "replaced in the runner: unittest.TestCase._callTestMethod"
    assert any(line.startswith("a test that must not pass passes: tests/test_parsing.py:") for line in cheats)
    assert ran.rows(Trajectory, "outcome", "accepted", id=name) == [("rejected", 0)]
    page = ran.printed.partition("9. A cheat")[2].partition("10. Export")[0]
    assert f"Rollout {name[:6]}, stage 1, attempt 1: rejected as tampered." in page
    assert all(line in page for line in cheats)


def test_guidance_ends_a_loop_that_else_goes_on_to_the_limit(ran: Ran) -> None:
    outcomes = bash_alone(ran, GUIDED_CHAIN)
    (alone,) = [name for name, outcome in outcomes.items() if outcome == "rejected"]
    (guided,) = [name for name, outcome in outcomes.items() if outcome == "accepted"]
    stages = [
        sorted(ran.rows(TrajectoryStage, "position", "outcome", "steps", trajectory_id=name))
        for name in (alone, guided)
    ]
    assert stages[0] == [(1, "rejected", 12), (2, "not_reached", 0), (3, "not_reached", 0)]
    assert stages[1] == [(1, "accepted", 9), (2, "accepted", 6), (3, "accepted", 4)]
    columns = ("position", "first_step", "last_step", "status", "suboptimal", "sent", "fault", "leaks")
    assert sorted(ran.rows(PrmWindow, *columns)) == [
        (1, 1, 5, "needs_correction", True, True, None, []),
        (2, 10, 14, "on_track", False, True, None, []),
    ]
    findings = ran.rows(PrmFinding, "found_by", "category", "step", "kept")
    assert {row[1:2] + row[3:] for row in findings} == {("step_repetition", True)}
    assert [row for row in findings if row[0] == "model"] == [("model", "step_repetition", 5, True)]
    for detector in ("repeated-call", "seen-lines"):
        read = ran.rows(TrajectoryMessage, "step", "tree", "content", trajectory_id=guided, position=1)
        assert sorted(row[2] for row in findings if row[0] == detector) == [2, 3, 4, 5], (detector, read)


def test_the_page_of_the_guidance_shows_window_findings_words_steps_and_cost(ran: Ran) -> None:
    page = guidance_page(ran.printed)
    shown = [line.split(maxsplit=1)[1] for line in page.partition("What was found")[0].strip().split("\n")[1:]]
    assert shown == ["bash: cat measures/__init__.py measures/quantity.py"] * 5
    found = page.partition("What was found")[2].partition("What the agent was told")[0]
    assert re.search(r"^ +model +step repetition +5 +cat measures/__init__", found, re.M)
    assert re.search(r"^ +repeated-call +step repetition +2, 3, 4, 5 +the same result as at step 1", found, re.M)
    told = page.partition("What the agent was told:\n")[2].partition("\n\n")[0]
    ((words,),) = [
        row for row in ran.rows(TrajectoryMessage, "content", kind="guidance") if "needs correction" in row[0]
    ]
    assert told.split() == words.split()
    assert "Other windows: stage 2, steps 10 to 14: on track, 0 findings." in page
    assert re.search(r"^1 \(#3\) +rejected, 12 steps +accepted, 9 steps$", page, re.M)
    assert "Steps saved at stage 1: 3 at least: alone the agent had taken 12 and had changed no file." in page
    assert max(map(len, page.split("\n"))) <= 100


def test_what_guidance_costs_is_the_ledgers(ran: Ran) -> None:
    (guided,) = [name for name, outcome in bash_alone(ran).items() if outcome == "accepted"]
    page = guidance_page(ran.printed)
    for purpose, words in (("agent", "agent with guidance"), ("prm", "process reward model")):
        calls = [
            row[1:]
            for row in ran.rows(LlmCall, "subject", "tokens_in", "tokens_out", purpose=purpose)
            if row[0].startswith(guided)
        ]
        figures = (len(calls), *(sum(column) for column in zip(*calls, strict=True)))
        cells = " +".join(f"{figure:,}" for figure in figures)
        assert re.search(rf"^all stages +{words} +{cells} +0\.0000 USD$", page, re.M), (purpose, figures)
    assert "A script costs nothing; its tokens are an estimate" in page


def test_the_page_of_the_guidance_says_so_where_nothing_was_found_or_a_rollout_is_missing(
    ran: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(str(ran.copied(tmp_path / "demo") / "prchain.db"))
    with store.transaction() as tx:
        tx.connection.execute(delete(PrmWindow).where(PrmWindow.suboptimal.is_(True)))
        tx.connection.execute(update(Trajectory).values(model="another"))
    print_guidance(store, GUIDED_CHAIN, None)
    page = capsys.readouterr().out
    assert page.startswith("No window was told to need correction.\nOther windows: stage 2, steps 10 to 14: on track")
    assert "rejected, 12 steps" in page and "all stages" in page and "A script" not in page
    print_guidance(store, "nowhere", None)
    (guided,) = [name for name, outcome in bash_alone(ran).items() if outcome == "accepted"]
    with store.transaction() as tx:
        tx.connection.execute(delete(Trajectory).where(Trajectory.id == guided))
    print_guidance(store, GUIDED_CHAIN, None)
    store.close()
    assert capsys.readouterr().out == ""


def test_the_views_tell_chains_tasks_proofs_and_rollouts(ran: Ran) -> None:
    store = Store.open(str(ran.folder / "prchain.db"), create=False)
    try:
        with store.reading() as tx:

            def ask(query: str) -> list[tuple[Any, ...]]:
                return [tuple(row) for row in tx.connection.execute(sql_text(query))]

            stages = ask("SELECT number FROM chosen_stages WHERE chain LIKE '2cff%' AND strategy = 'evidence'")
            queries = ask("SELECT number, query FROM task_queries WHERE chain LIKE '2cff%' ORDER BY position")
            proofs = ask("SELECT number, outcome, f2p, p2p, own_f2p FROM stage_proofs WHERE chain LIKE '2cff%'")
            ended = ask(
                "SELECT number, outcome, attempts, score FROM rollout_stages "
                "WHERE chain LIKE '2cff%' AND trajectory_outcome = 'accepted' ORDER BY position"
            )
    finally:
        store.close()
    assert sorted(stages) == [(2,), (5,), (8,)]
    assert [number for number, query in queries if query] == [2, 5, 8]
    assert sorted(proofs) == [(2, "proved", 6, 0, None), (5, "proved", 2, 6, None), (8, "proved", 1, 8, None)]
    assert [row[:3] for row in ended] == [(2, "accepted", 1), (5, "accepted", 2), (8, "accepted", 1)]
    assert all(row[3] >= 0.8 for row in ended)


def test_a_second_way_to_the_same_files_is_no_second_sample(ran: Ran) -> None:
    assert "left out: 1 duplicate_trees" in ran.printed
    assert not any(message["content"].startswith("A supervisor") for it in ran.samples for message in it["messages"])


def test_plain_processes_leave_the_windows_out_and_say_why_in_a_line(ran: Ran) -> None:
    (words,) = re.findall(r"^7\. Windows\n(.*)\n\n", ran.printed, re.M)
    assert words.startswith("Left out: windows need snapshots")
    assert ran.rows(CurationWindow, "number") == []


@pytest.mark.whole
@pytest.mark.parametrize("start", ["finished", "nothing"])
def test_the_chain_that_the_agent_fails_is_accepted_where_a_variant_shows_it_what_it_misses(
    finished_demo: Ran, start: str, tmp_path: Path, bubblewrap: None
) -> None:
    if start == "finished":
        finished_demo.copied(tmp_path / "demo")
    go_on = {"finished": go_on_to_windows, "nothing": run_through}[start]
    ran = go_on(tmp_path / "demo", "local")
    ((curated, outcome),) = ran.rows(Trajectory, "id", "outcome", scaffold="curated")
    assert outcome == "accepted"
    assert set(ran.rows(Verdict, "gate", "tests", "accepted", trajectory_id=curated)) == {("tests", "passed", True)}
    assert len(ran.samples) == 4
    (variant,) = [
        row
        for row in ran.rows(CurationCandidate, "number", "seed", "target", "grounded", "effectiveness")
        if row[2] is not None
    ]
    assert variant[:4] == (1, 0, "float.2", True)
    (window,) = ran.rows(CurationWindow, "chosen", "how", "floor", position=1, number=1)
    assert window[:2] == (1, "floor")
    (seed,) = ran.rows(CurationCandidate, "effectiveness", "length", position=1, window_number=1, number=0)
    assert seed[0] < window[2] <= variant[4]

    printed = ran.printed.partition("7. Windows")[2].partition("8. Guidance")[0]
    assert re.search(r"^\*  1 on 0 at 2 to float\.2 ", printed, re.M)
    beside = printed.partition("wrote:\nplain rollout ")[2].strip().split("\n")[1:]
    assert [line[:4].strip() for line in beside] == [str(number) for number in range(1, 11)]
    assert max(map(len, beside)) <= WIDTH
    columns = [[line.partition(" | ")[side].strip() for line in beside] for side in (0, 2)]
    assert [line for column in columns for line in column if line[1:2] == "*"] == [columns[1][1]]
    assert columns[1][1].startswith("2* bash: python3 -c 'from fractions")
    assert columns[0][0] == columns[1][0] == "1  bash: cat measures/units.py measu"
    assert columns[0][-1] == "10  submit: not accepted"
    assert columns[1][-2:] == ["9  submit: accepted", ""]

    calls, samples = ran.rows(LlmCall, "id"), ran.samples
    again = go_on(ran.folder, "local")
    assert printed.partition("A window:")[2] in again.printed
    assert (again.rows(LlmCall, "id"), again.samples) == (calls, samples)


@pytest.mark.whole
@pytest.mark.docker
def test_it_runs_in_containers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from environments.images.images import prune_images
    from environments.sandboxes.engine import connect

    assert run(["demo", "--folder", str(tmp_path / "demo"), "--backend", "docker", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 3
    client = connect(None)
    prune_images(client, repository="demo/measures")
    client.close()


def test_a_command_that_fails_ends_the_demo_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[list[str]] = []

    def fails(arguments: list[str]) -> int:
        commands.append(arguments)
        return 0 if len(commands) < 3 else 7

    with pytest.raises(DemoStopped, match="`prchain chains list` ended with code 7"):
        run_demo(tmp_path / "demo", backend="unsafe-local", run=fails)
    assert [command[0] for command in commands] == ["mine", "chains", "chains"]
    assert run(["demo", "--folder", str(tmp_path / "demo"), "--backend", "nowhere"]) == 2


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ({"prchain.toml": "workers = 7\n", "script.jsonl": "{}\n"}, "prchain.toml is not the demo's"),
        ({"repos.txt": "pallets/click\n", "recipes/own.toml": "a = 1\n"}, "holds files and no demo"),
    ],
)
def test_files_of_the_users_are_never_replaced(
    theirs: dict[str, str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in theirs.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--folder", ".", "--backend", "unsafe-local"]) == 2
    assert said in capsys.readouterr().err
    files = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == theirs


def test_a_folder_is_claimed_before_anything_else_is_made_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(folder: Path) -> bool:
        folder.with_name("measures.new").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("prchain.demo.run.build", killed)
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "demo", backend="unsafe-local", run=lambda arguments: 0)
    claim(tmp_path / "demo")


def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be the demo's folder"):
        claim(tmp_path / "file" / "demo")


def answers(monkeypatch: pytest.MonkeyPatch, *, docker: str | None, bubblewrap: bool) -> None:
    """Let the backends report this, and let all other backends report that they do not work."""
    for name in BACKENDS.keys() - {"docker", "local", "unsafe-local"}:
        monkeypatch.setattr(type(BACKENDS[name]), "usable", lambda _: Usable(False, "not here"))
    monkeypatch.setattr(DockerBackend, "usable", lambda _: Usable(docker is not None, "docker says so", docker))
    monkeypatch.setattr(
        LocalBackend, "usable", lambda _: Usable(bubblewrap, "bubblewrap" if bubblewrap else "no bubblewrap")
    )


@pytest.mark.parametrize(
    ("docker", "bubblewrap", "chosen"),
    [
        ("base:1", True, "docker"),
        (None, True, "local"),
        (None, False, "unsafe-local"),
    ],
)
def test_the_first_backend_that_works_is_taken_and_the_reason_told(
    docker: str | None, bubblewrap: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, docker=docker, bubblewrap=bubblewrap)
    choice = choose(Settings())
    assert (choice.backend.name, choice.image) == (chosen, docker)
    assert ("docker says so" in choice.why) and (("no bubblewrap" in choice.why) == (chosen == "unsafe-local"))
    assert choice.why.endswith("the code is our own") == choice.backend.unsafe == ("--unsafe-local" in choice.flags)


def test_a_backend_that_was_asked_for_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, docker=None, bubblewrap=False)
    with pytest.raises(UsageError, match="docker says so"):
        choose(Settings(), "docker")
    with pytest.raises(UsageError, match="no bubblewrap"):
        choose(Settings(), "local")


def test_an_engine_that_does_not_answer_or_has_no_base_image_of_ours_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Engine:
        labels: dict[str, str] = {}  # noqa: RUF012  a stand-in

        @property
        def images(self) -> Engine:
            return self

        def get(self, name: str) -> Engine:
            return self

        def close(self) -> None:
            return

    def refuses(*arguments: Any, **options: Any) -> Any:
        raise EngineUnavailable("nobody is there")

    docker = BACKENDS["docker"]
    monkeypatch.setattr("environments.backends.docker.connect", refuses)
    assert docker.usable() == Usable(False, "no Docker engine answers")
    monkeypatch.setattr("environments.backends.docker.connect", lambda *arguments, **options: Engine())
    assert not docker.usable().works
    Engine.labels = {"prchain.base": "bookworm"}
    assert docker.of(Settings(environments_base_image="mine:2")).usable().image == "mine:2"


def test_a_real_model_replaces_the_script_and_has_the_users_endpoint_and_prices(tmp_path: Path) -> None:
    user = Settings(
        llm_base_url="https://models.example/v1",
        llm_price_input=0.5,
        llm_price_output=2,
        llm_api_key=SecretStr("sk-planted-key"),
    )
    prepare(tmp_path, PLAIN, user, "glm-4.6")
    assert not (tmp_path / "script.jsonl").exists()
    written = (tmp_path / "prchain.toml").read_text()
    assert 'llm_model = "glm-4.6"' in written and 'llm_base_url = "https://models.example/v1"' in written
    assert "llm_price_input = 0.5" in written and "llm_script" not in written
    assert "sk-planted-key" not in written


def test_commands_of_a_real_model_have_its_name_and_the_users_key_and_nothing_else_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded: list[Settings] = []

    def looks(arguments: list[str]) -> int:
        loaded.append(Settings.load())
        return 1

    (tmp_path / "prchain.toml").write_text('llm_api_key = "sk-planted-key"\nllm_model = "other"\nworkers = 7\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    with pytest.raises(DemoStopped):
        run_demo(tmp_path / "demo", backend="unsafe-local", model="glm-4.6", run=looks)
    (settings,) = loaded
    assert (settings.llm_model, settings.llm_script, settings.workers) == ("glm-4.6", None, 2)
    assert settings.llm_base_url == "https://models.example/v1"
    assert settings.llm_api_key is not None and settings.llm_api_key.get_secret_value() == "sk-planted-key"
    assert "OPENAI_API_KEY" not in os.environ
    assert "sk-planted-key" not in capsys.readouterr().out
    assert not any(b"sk-planted" in path.read_bytes() for path in (tmp_path / "demo").glob("*.*"))


def test_a_model_that_fails_is_named_with_what_came_of_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeEndpoint(completion("colorless green ideas")) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with pytest.raises(DemoStopped) as stopped:
            run_demo(tmp_path / "demo", backend="unsafe-local", model="glm-4.6", run=run)
    assert str(stopped.value) == (
        "the model glm-4.6 wrote no task that is ready (3 bad_reply), and what follows needs one; "
        "what is said above tells why"
    )
    assert "4. Environments" not in capsys.readouterr().out


def test_steps_that_did_not_succeed_are_named_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    funnel = Funnel(0, 0, 0, {}, 0, 0, 0, 0, 0, {}, {}, 0, 0, 0, 0)
    print_outcome(Outcome(Path("/demo"), PLAIN, funnel, 0, 1.0, ("6. Process graph",)))
    assert "What did not succeed\n6. Process graph; the lines of each step above tell why." in capsys.readouterr().out
    print_outcome(Outcome(Path("/demo"), PLAIN, funnel, 0, 1.0))
    printed = capsys.readouterr().out
    assert "What did not succeed" not in printed
    assert " view --export samples.jsonl\n" in printed, "without its file there is no page of the export"


def test_scripted_runs_name_no_model_and_need_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, PLAIN, Settings(llm_model="expensive"), None)
    monkeypatch.chdir(tmp_path)
    settings = Settings.load()
    assert (settings.llm_model, settings.llm_script, settings.db) == (
        None,
        Path("script.jsonl"),
        "sqlite:///prchain.db",
    )


@pytest.mark.parametrize(
    ("on_path", "started_as", "program"),
    [
        ("/usr/bin/prchain", "/x/prchain", ["prchain"]),
        (None, "/x/prchain", ["/x/prchain"]),
        (None, "/x/prchain/__main__.py", [sys.executable, "-m", "prchain"]),
    ],
)
def test_the_commands_named_at_the_end_start_prchain_as_the_demo_was_started(
    on_path: str | None, started_as: str, program: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: on_path)
    monkeypatch.setattr("sys.argv", [started_as, "demo"])
    assert _program() == program
