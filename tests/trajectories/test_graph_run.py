"""Process graphs from end to end: rounds, outcomes, rows and money, and the pages on them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from sqlalchemy import update

from prchain.cli import run as run_command
from prchain.core.errors import EndpointRefused, EndpointTimeout, NoNextStage, NotValidated, TestsUnproved, UsageError
from prchain.core.llm.model import Request
from sql.tables import GraphEdge, GraphMessage, GraphNode, GraphRow, LlmCall, StageTests, Task, TrajectoryStage
from tests.trajectories.graphworld import (
    FALLEN,
    KEPT,
    GraphWorld,
    distilling,
    edit,
    graph_facts,
    graph_world,
    is_critic,
    keeping,
    node,
    nodes_of,
    part,
    runs,
    stage_and_round,
    steps,
    think,
)
from tests.trajectories.rolloutworld import Policy, PolicyModel, PolicyReply, bash, part_of, place_of, works
from trajectories.curation.graphs.report import list_graphs
from trajectories.studies.curation.node_study import FIGURES, node_study, studied_graphs

SECRET = "hunter2-is-no-password"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GraphWorld]:
    monkeypatch.chdir(tmp_path)
    with graph_world(tmp_path, [(1, 2)]) as graphs:
        yield graphs


def made(world: GraphWorld, policy: Policy, **how: Any) -> tuple[str, str, str | None]:
    """Make the one graph that is to be made; its id, outcome and reason."""
    report = world.run(PolicyModel(policy), **how).run(1)
    (result,) = report.results
    assert (result.outcome, result.reason) == world.outcome(result.detail)
    return result.detail, *world.outcome(result.detail)


def only(*nodes: Mapping[str, Any]) -> Policy:
    """Proposes these nodes in the first round and nothing more; the critic keeps all."""
    return distilling(lambda number, round_: nodes if round_ == 1 else [], keeps)


def keeps(number: int, round_: int, names: Sequence[str]) -> dict[str, Any]:
    return keeping(names)


class TestRounds:
    def test_a_graph_converges_after_three_rounds_with_nodes_edges_and_levels(self, world: GraphWorld) -> None:
        model = PolicyModel(distilling())
        report = world.run(model).run(1)
        assert (report.counts, report.left, report.done) == ({"converged": 1}, 0, True)
        (name,) = world.ids()
        assert world.outcome(name) == ("converged", None)
        assert world.verdicts(name) == dict.fromkeys(KEPT, "keep") | FALLEN
        reasons = world.reasons(name)
        assert {key: words.partition(":")[0] for key, words in reasons.items() if words} == {
            "name": "S1",
            "leak": "H1",
            "untrue": "R4",
            "vague": "H5",
            "wide": "S3",
        }
        names = [key for (key,) in world.rows(GraphNode, "name", graph_id=name)]
        edges = {
            (names[source], names[target]): reason
            for source, target, reason in world.rows(GraphEdge, "source", "target", "reason", graph_id=name)
        }
        assert edges == {
            ("listing", "again"): "pyproject.toml",
            ("listing", "wide.2"): "README.md",
            ("repro", "late"): "check.sh",
            ("repro", "analysis"): "order",
            ("analysis", "plan"): "order",
            ("plan", "edit"): "order",
            ("edit", "check"): "order",
        }
        levels = dict(world.rows(GraphNode, "name", "level", graph_id=name))
        assert [key for key, level in levels.items() if level is None] == [*FALLEN]
        assert levels["repro"] == 0 and levels["check"] == 4
        assert all(levels[source] < levels[target] for source, target in edges)
        columns = ("rounds", "empty_rounds", "dropped_rounds", "worker", "feedback", "notes")
        assert world.rows(GraphRow, *columns) == [(3, 1, 0, None, [], [])]
        assert model.count("proposer") == 5 and model.count("critic") == 3
        observations = dict(world.rows(GraphNode, "name", "observation", graph_id=name))
        assert observations["check"].endswith(f"{part(1)}</output>"), "on the tree with all edits"
        assert "absent" in observations["absent"], "and facts on the one without"

    def test_what_the_critic_misses_is_told_to_the_proposer_of_the_next_round_with_what_code_refused(
        self, world: GraphWorld
    ) -> None:
        model = PolicyModel(distilling())
        world.run(model).run(1)
        first, second = (next(it for it in model.prompts("proposer") if f"Round {n} of 6" in it) for n in (1, 2))
        told = "Nobody has run the check of part 1 twice. Next: Run check.sh again."
        assert told in second and told not in first
        assert "leak (No function `part_number_1` exists) was refused: H1" in second

    def test_a_second_run_does_nothing_new_and_another_option_makes_another_graph(self, world: GraphWorld) -> None:
        assert world.run().run(1).counts == {"converged": 1}
        model = PolicyModel(distilling())
        report = world.run(model).run(1)
        assert (report.counts, report.standing, model.asked) == ({}, 1, [])
        assert world.run(model, options={"rounds": 5}).run(1).counts == {"converged": 1}
        assert len(world.ids()) == 2

    def test_a_graph_that_another_run_has_ended_meanwhile_stays_as_it_is(self, world: GraphWorld) -> None:
        model = PolicyModel(distilling())
        run = world.run(model)
        chosen = run.pending()
        assert world.run().run(1).counts == {"converged": 1}
        facts = world.whole()
        assert run.run(1, chosen).counts == {"converged": 1}
        assert model.asked == [] and world.whole() == facts

    def test_with_the_references_carried_every_stage_has_a_graph_on_the_developers_work(
        self, world: GraphWorld
    ) -> None:
        assert world.run().run(2).counts == {"converged": 1}
        report = world.run(options={"carry": "reference"}).run(2)
        assert (report.counts, report.standing) == ({"converged": 1}, 1), "the first one's tree is the same"
        rows = world.rows(GraphRow, "position", "start_tree", "trajectory_id")
        trees = {position: tree for position, tree, _ in rows}
        assert {position: trajectory for position, _, trajectory in rows} == {1: None, 2: None}
        assert len(set(trees.values())) == 2

    def test_a_set_that_every_round_changes_is_capped(self, world: GraphWorld) -> None:
        def more(number: int, round_: int) -> list[dict[str, Any]]:
            fact = runs(f"more{round_}", f"Fact number {round_} holds", f"expr {round_} + 0", str(round_))
            return [*(steps(number) if round_ == 1 else []), fact]

        name, outcome, reason = made(world, distilling(more, keeps), options={"rounds": 3})
        assert (outcome, reason) == ("capped", None)
        assert world.rows(GraphRow, "rounds", "empty_rounds") == [(3, 0)]
        assert list(world.verdicts(name)) == ["analysis", "plan", "edit", "more1", "more2", "more3"]

    def test_rounds_without_a_proposal_end_the_loop_and_no_critic_is_asked(self, world: GraphWorld) -> None:
        model = PolicyModel(distilling(lambda number, round_: []))
        assert world.run(model).run(1).counts == {"insufficient": 1}
        assert world.rows(GraphRow, "rounds", "empty_rounds") == [(2, 2)]
        assert model.count("critic") == 0
        assert "src/part_1.py: the reference has this file" in str(world.outcome(world.ids()[0])[1])

    def test_edits_that_are_not_the_reference_are_insufficient_and_the_line_is_told(self, world: GraphWorld) -> None:
        nodes = [*steps(1)[:2], edit(1, "def part_number_1():\n    return 7\n")]
        _, outcome, reason = made(world, only(*nodes))
        assert outcome == "insufficient"
        assert "src/part_1.py: after the edits it differs from the reference, first in line 2" in str(reason)
        assert world.run().run(1).standing == 1, "it is final"

    def test_an_edge_that_closes_a_cycle_is_dropped_and_counted_and_too_many_end_cyclic(
        self, world: GraphWorld
    ) -> None:
        script = {"tool": "create", "path": "late_check.sh", "content": "cat src/part_1.py\n"}
        late = node("late", "validation", "It works", "    return 1", command="sh late_check.sh", **script)
        probe = "test -e late_check.sh || echo nothing"
        early = runs("early", "Nothing checks the part", probe, "nothing", "reproduce_script")
        name, outcome, _ = made(world, only(early, *steps(1), late), options={"most_dropped": 1})
        assert outcome == "converged"
        assert world.rows(GraphRow, "dropped_edges", id=name) == [(1,)]
        name, outcome, reason = made(world, only(early, *steps(1), late), options={"most_dropped": 0})
        assert outcome == "cyclic" and "1 edge would close a cycle" in str(reason)


class TestDroppedRounds:
    @staticmethod
    def faulty(times: int, purpose: str = "proposer", round_: int = 1) -> Policy:
        """Answers in prose at first, so many times."""
        inner = distilling()

        def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
            reply = inner(messages)
            told = sum("Your " in str(message["content"])[:6] for message in messages[2:])
            here = stage_and_round(messages)[1] == round_ and is_critic(messages) == (purpose == "critic")
            if here and reply.tool is None and told < times:
                return PolicyReply("There is much to say.")
            return reply

        return policy

    @pytest.mark.parametrize("purpose", ["proposer", "critic"])
    def test_an_answer_that_does_not_fit_is_told_twice(self, world: GraphWorld, purpose: str) -> None:
        name, outcome, reason = made(world, self.faulty(2, purpose))
        assert (outcome, reason) == ("converged", None)
        assert world.verdicts(name) == dict.fromkeys(KEPT, "keep") | FALLEN
        entries = [entry for (entry,) in world.rows(GraphMessage, "entry", round=1, purpose=purpose)]
        assert [entry["error"] for entry in entries].count("unfit_answer") == 2

    @pytest.mark.parametrize(("purpose", "nodes"), [("proposer", 0), ("critic", len(KEPT) + len(FALLEN) - 2)])
    def test_at_the_third_fault_the_round_is_dropped_and_said(
        self, world: GraphWorld, purpose: str, nodes: int
    ) -> None:
        name, outcome, reason = made(world, self.faulty(9, purpose), options={"rounds": 1})
        assert outcome == "insufficient"
        assert f"round 1: the {purpose} gave no answer: its answers did not fit the schema" in str(reason)
        assert world.rows(GraphRow, "rounds", "empty_rounds", "dropped_rounds") == [(1, 0, 1)]
        verdicts = world.verdicts(name)
        assert len(verdicts) == nodes and set(verdicts.values()) <= {"dropped", "refused", "merged"}

    def test_a_round_that_the_critic_dropped_is_no_fixed_point(self, world: GraphWorld) -> None:
        def nodes(number: int, round_: int) -> Sequence[Mapping[str, Any]]:
            return nodes_of(number, max(round_ - 1, 1))

        inner, faulty = distilling(nodes), self.faulty(9, "critic")

        def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
            first = is_critic(messages) and stage_and_round(messages)[1] == 1
            return (faulty if first else inner)(messages)

        name, outcome, reason = made(world, policy)
        assert outcome == "converged" and "round 1: the critic gave no answer" in str(reason)
        kept = {key for key, verdict in world.verdicts(name).items() if verdict == "keep"}
        assert {key.partition(".")[0] for key in kept} == {key.partition(".")[0] for key in KEPT} | {"vague"}

    def test_why_a_round_was_dropped_outlasts_a_run_that_failed_after_it(self, world: GraphWorld) -> None:
        def fails(request: Request) -> None:
            if "Round 2 of" in request.messages[1].content:
                raise EndpointTimeout("late")

        report = world.run(PolicyModel(self.faulty(9), fails)).run(1)
        assert report.counts == {"endpoint_timeout": 1}
        _, _, reason = made(world, self.faulty(9))
        assert "round 1: the proposer gave no answer" in str(reason)

    def test_an_agent_that_only_calls_tools_is_told_to_answer_and_then_dropped(self, world: GraphWorld) -> None:
        inner = distilling()

        def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
            return inner(messages) if is_critic(messages) else bash("ls")

        _, outcome, reason = made(world, policy, options={"rounds": 1, "tool_calls": 3})
        assert outcome == "insufficient" and "it did not answer within its tool calls" in str(reason)
        entries = [entry for (entry,) in world.rows(GraphMessage, "entry", purpose="proposer")]
        observations = [entry for entry in entries if entry["role"] == "tool"]
        assert [entry["error"] for entry in observations[:3]] == [None] * 3
        assert {entry["error"] for entry in observations[3:]} == {"not_run"}

    def test_verdicts_on_other_nodes_than_there_are_do_not_fit(self, world: GraphWorld) -> None:
        def verdicts(number: int, round_: int, names: Sequence[str]) -> dict[str, Any]:
            return keeps(number, round_, [*names[1:], "ghost"])

        _, _, reason = made(world, distilling(nodes_of, verdicts), options={"rounds": 1})
        assert "its answers did not fit" in str(reason)
        entries = [entry for (entry,) in world.rows(GraphMessage, "entry", purpose="critic")]
        (words, *_) = [entry["content"] for entry in entries if entry["error"] == "unfit_answer"]
        assert "listing has no verdict" in words and "there is no candidate ghost" in words


def stuck(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    """An agent whose second stage is never accepted."""
    if "<task>" not in "\n".join(str(message["content"]) for message in messages):
        return works(messages)
    position, turns, _ = place_of(messages)
    return part_of(position, turns, False, draft=position == 2)


def rolled(world: GraphWorld, policy: Policy) -> str:
    """A trajectory of the world's chain, from a time before its tests were proved: there is nothing to run them in."""
    with world.store.transaction() as tx:
        tx.delete(StageTests)
    report = world.rollouts.run(world.rollouts.context(PolicyModel(policy))).run(1)
    world.prove(world.rollouts.chains[0], {1: "proved", 2: "proved"})
    return str(report.results[0].detail)


def beforehand(content: str) -> Policy:
    """An agent that writes the second part, too, in the first stage."""

    def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        reply = stuck(messages)
        if reply.tool == "bash" and place_of(messages)[:2] == (1, 0):
            return bash(f"{reply.arguments['command']}; printf '{content}' > src/part_2.py")
        return reply

    return policy


class TestReference:
    def test_a_trajectory_leads_to_a_graph_of_its_next_stage_on_the_agents_work(self, world: GraphWorld) -> None:
        trajectory = rolled(world, stuck)
        assert world.rollouts.stages(trajectory)[0] == (1, "accepted")
        seen = runs("seen", "The first part holds a value", "cat src/part_1.py", "value = 1")
        name, outcome, _ = made(world, only(seen, *steps(2)), trajectory=trajectory)
        assert outcome == "converged" and world.verdicts(name)["seen"] == "keep", "not the reference's first part"
        assert world.rows(GraphRow, "position", "trajectory_id", "id") == [(2, trajectory, name)]
        report = world.run(trajectory=trajectory).run(1)
        assert (report.counts, report.standing) == ({}, 1)

    def test_a_trajectory_without_a_next_stage_is_one_line(self, world: GraphWorld) -> None:
        trajectory = rolled(world, works)
        with pytest.raises(NoNextStage, match="accepted every stage of its chain"):
            world.run(trajectory=trajectory).run(1)
        with world.store.transaction() as tx:
            tx.connection.execute(update(TrajectoryStage).values(outcome="rejected"))
        with pytest.raises(NoNextStage, match="accepted no stage"):
            world.run(trajectory=trajectory).run(1)

    def test_a_trajectory_of_another_chain_than_is_named_is_refused(self, world: GraphWorld) -> None:
        trajectory = rolled(world, stuck)
        other = world.rollouts.add_chain([3])
        with pytest.raises(UsageError, match=f"is not of chain {other}"):
            world.run(trajectory=trajectory, chain=other).run(1)

    @pytest.mark.parametrize(
        ("content", "outcome", "said"),
        [
            (part(2), "already_done", "the tree of stage 2 holds all of its reference already"),
            ("value = 0", "reference_conflicts", "does not apply to the tree: src/part_2.py"),
        ],
    )
    def test_where_the_agents_work_leaves_no_reference_to_apply_no_model_is_asked(
        self, world: GraphWorld, content: str, outcome: str, said: str
    ) -> None:
        trajectory = rolled(world, beforehand(content.replace("\n", "\\n")))
        model = PolicyModel(distilling())
        report = world.run(model, trajectory=trajectory).run(1)
        assert report.counts == {outcome: 1} and said in str(report.results[0].reason) and report.done
        assert model.asked == [] and world.run(model, trajectory=trajectory).run(1).standing == 1

    def test_a_reference_that_changes_a_mode_is_inexpressible(self, world: GraphWorld) -> None:
        git = world.rollouts.world
        world.rollouts.bases[6] = git.made("main").number
        world.rollouts.landed[6] = git.commit("main", {"src/__init__.py": ("100755", b"")}, "Part 6 (#6)")
        git.save()
        chain = world.rollouts.add_chain([6])
        world.prove(chain, {1: "proved"})
        report = world.run(chain=chain).run(1)
        assert report.counts == {"inexpressible": 1}
        assert report.results[0].reason == "the reference changes the mode of src/__init__.py"
        assert world.rows(GraphRow, "rounds", "tokens_in", "target_tree") == [(0, 0, "")]

    @pytest.mark.parametrize(
        ("outcomes", "error", "said"),
        [({}, NotValidated, "was not validated; run"), ({1: "unproved"}, TestsUnproved, "stage 1 .* are unproved")],
    )
    def test_a_named_chain_that_is_not_proved_is_one_line_and_in_a_run_over_all_it_is_counted(
        self, tmp_path: Path, outcomes: dict[int, str], error: type[Exception], said: str
    ) -> None:
        (tmp_path / "unproved").mkdir()
        with graph_world(tmp_path / "unproved", [(1, 2), (3,)], proved=False) as world:
            first, second = world.rollouts.chains
            world.prove(first, outcomes)
            world.prove(second, {1: "proved"})
            with pytest.raises(error, match=said) as caught:
                world.run(chain=first).run(1)
            assert "\n" not in str(caught.value)
            report = world.run().run(1)
            assert (report.counts, report.unproved) == ({"converged": 1}, 1)

    def test_a_chain_without_a_ready_task_is_counted_too(self, world: GraphWorld) -> None:
        with world.store.transaction() as tx:
            tx.connection.execute(update(Task).values(outcome="rejected"))
        assert (world.run().run(1).results, world.run().pending().unproved) == ((), 1)


class TestMoneyAndSecrets:
    def test_money_and_tokens_of_a_graph_are_those_of_its_calls(self, world: GraphWorld) -> None:
        broken: list[bool] = []

        def once(request: Request) -> None:
            if request.purpose == "critic" and not broken:
                broken.append(True)
                raise EndpointTimeout("late", billed=True)

        report = world.run(PolicyModel(distilling(), once), options={"carry": "reference"}).run(2)
        assert report.counts == {"converged": 2}
        world.assert_sums()
        assert len(world.calls("lost")) == 1, "and it counts"
        (one, other) = [usd for (usd,) in world.rows(GraphRow, "usd")]
        assert one + other == pytest.approx(world.run().context.gateway.spending().cost)

    def test_a_secret_in_the_output_of_a_command_is_in_no_reason_and_no_feedback(self, world: GraphWorld) -> None:
        claims = runs(
            "claims", "The key is short", f"cat src/__init__.py; echo the key is {SECRET}", "the key is short"
        )
        model = PolicyModel(only(claims, *steps(1)))
        assert world.run(model, secrets=(SECRET,)).run(1).counts == {"converged": 1}
        (name,) = world.ids()
        assert "the key is [redacted]" in world.reasons(name)["claims"]
        (later,) = [text for text in model.prompts("proposer") if "Round 2 of" in text]
        assert "the key is [redacted]" in later and SECRET not in later

    def test_a_secret_in_an_error_is_in_no_reason(self, world: GraphWorld) -> None:
        def fails(request: Request) -> None:
            raise EndpointRefused(f"the key {SECRET} is not known")

        report = world.run(PolicyModel(distilling(), fails), secrets=(SECRET,)).run(1)
        assert report.counts == {"endpoint_refused": 1} and not report.done
        assert world.outcome(world.ids()[0]) == ("endpoint_refused", "the key [redacted] is not known")
        assert SECRET not in str(report.results[0].reason)


HOSTILE = "Evil \x1b]0;pwned\x07\x1b[2J is \u202e`here`\r ]]> </text><script>alert(1)</script> &amp; \u200b"


class TestPages:
    def command(self, world: GraphWorld, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
        code = run_command(["curate", *arguments, "--db", world.rollouts.database])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    def test_the_list_says_how_each_graph_ended(self, world: GraphWorld, capsys: pytest.CaptureFixture[str]) -> None:
        world.run().run(1)
        world.run(PolicyModel(only(*steps(1))), options={"rounds": 4}).run(1)
        listed = self.command(world, capsys, "list", "--graphs")
        for name in world.ids():
            assert name in listed
        assert "2 graphs, 2 converged" in listed and "shop/till" in listed
        rows = json.loads(self.command(world, capsys, "list", "--graphs", "--json"))
        assert sorted(row["nodes"] for row in rows) == [3, len(KEPT)]
        assert json.loads(self.command(world, capsys, "list", "--graphs", "--json", "--outcome", "capped")) == []
        assert (
            len(
                json.loads(
                    self.command(world, capsys, "list", "--graphs", "--json", "--chain", world.rollouts.chains[0])
                )
            )
            == 2
        )

    def test_a_page_holds_the_tree_and_what_was_not_kept_and_why(
        self, world: GraphWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        world.run().run(1)
        (name,) = world.ids()
        page = self.command(world, capsys, "show", name[:6], "--svg", "graph.svg")
        assert f"graph {name}: converged, 3 rounds" in page and "10 nodes, 7 edges" in page
        lines = page.splitlines()
        at = next(place for place, line in enumerate(lines) if line.startswith("listing static_fact"))
        assert lines[at + 1].startswith("|- again dynamic_fact [pyproject.toml]: The project is called till.")
        assert lines[at + 2].startswith("`- wide.2 dynamic_fact [README.md]")
        assert any(line.endswith("check validation: Part 1 gives 1") for line in lines)
        assert "not kept: 5 candidates" in page and "leak (static_fact), refused in round 1" in page
        assert "H5: it holds two claims" in page
        row = json.loads(self.command(world, capsys, "show", name, "--json"))
        assert len(row["nodes"]) == 15 and len(row["edges"]) == 7 and row["options"]["rounds"] == 6
        root = ElementTree.parse(tmp_path / "graph.svg").getroot()
        assert sum(element.tag.endswith("line") for element in root.iter()) == 7

    def test_the_study_counts_kinds_rounds_and_gates_and_writes_files(
        self, world: GraphWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        world.run(options={"carry": "reference"}).run(1)
        said = self.command(world, capsys, "study", "nodes", "--out", "study")
        assert "2 graphs of 2 can be used, 20 nodes" in said and "converged by round 3: 100.0%" in said
        study = json.loads((tmp_path / "study" / "nodes.json").read_text())
        assert study == json.loads(json.dumps(node_study(studied_graphs(world.store))))
        assert study["kinds"]["dynamic_fact"]["nodes"] == 8 and study["gates"]["S1"] == 2
        rows = list(csv.DictReader((tmp_path / "study" / "nodes.csv").read_text().splitlines()))
        assert [row["nodes"] for row in rows] == ["10", "10"]
        drawn = {path.stem: ElementTree.parse(path).getroot() for path in (tmp_path / "study").glob("*.svg")}
        assert drawn.keys() == {f"nodes-{name}" for name in FIGURES}
        texts = {name: " ".join(root.itertext()) for name, root in drawn.items()}
        assert "2, up to here 100 %" in texts["nodes-sizes"] and "static_fact: mean" in texts["nodes-spreads"]
        assert "4, in 100 % of graphs" in texts["nodes-means"], "dynamic facts"
        (curve,) = [it for it in drawn["nodes-sizes"].iter() if it.tag.endswith("polyline")]
        (end,) = {point.partition(",")[0] for point in str(curve.get("points")).split()[-1:]}
        assert float(end) == 24 + 170 + 420, "all graphs: the right end of the scale"

    def test_hostile_text_acts_neither_in_a_terminal_nor_in_a_drawing(
        self, world: GraphWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        hostile = think("hostile", "issue_analysis", HOSTILE)
        fallen = runs("fallen", HOSTILE + " too", f"printf '%s' $'{HOSTILE[:30]}'", "something else")
        name, outcome, _ = made(world, only(hostile, fallen, *steps(1)))
        assert outcome == "converged" and world.verdicts(name)["hostile"] == "keep"
        pages = [
            self.command(world, capsys, "show", name, "--svg", "graph.svg"),
            self.command(world, capsys, "show", name, "--json"),
            self.command(world, capsys, "list", "--graphs"),
            self.command(world, capsys, "study", "nodes"),
        ]
        for page in pages:
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", page)
        drawing = (tmp_path / "graph.svg").read_text()
        assert "<script" not in drawing and "\x1b" not in drawing and "&lt;script&gt;" in drawing
        names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawing).iter()}
        assert names <= {"svg", "defs", "marker", "path", "rect", "text", "g", "title", "line"}

    def test_what_cannot_be_meant_is_one_line(self, world: GraphWorld, capsys: pytest.CaptureFixture[str]) -> None:
        for arguments, said in {
            ("show", "ffff"): "no id begins with 'ffff'",
            ("graphs", "--from", "ffff", "--backend", "local"): "no trajectory's id begins with",
            ("graphs", "--from", "ffff", "--carry", "reference", "--backend", "local"): "leave --carry and --stage out",
        }.items():
            assert run_command(["curate", *arguments, "--db", world.rollouts.database]) == 2
            err = capsys.readouterr().err
            assert said in err and len(err.strip().splitlines()) == 1


def test_the_command_makes_graphs_and_a_dry_run_asks_nothing(
    world: GraphWorld,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bubblewrap: None,
) -> None:
    number = 1
    lines = [
        {"purpose": "proposer", "contains": "No file holds the value", "reply": {"nodes": []}},
        {"purpose": "proposer", "reply": {"nodes": steps(number)}},
        {"purpose": "critic", "reply": keeping(["analysis", "plan", "edit"])},
    ]
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(tmp_path / "script.jsonl"))
    command = ["curate", "graphs", "--db", world.rollouts.database, "--backend", "local"]
    assert run_command([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "1 graph to make" in said and "nothing has been asked or spent" in said and world.ids() == []
    assert run_command(command) == 0
    assert "1 converged; 0 done before; 3 calls" in capsys.readouterr().out
    assert run_command([*command, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["worked_on"], row["stood_before"], row["calls"]) == (0, 1, 0)
    (tmp_path / "script.jsonl").write_text("")
    assert run_command([*command, "--rounds", "1"]) == 1
    captured = capsys.readouterr()
    assert "script_unknown" in captured.out and "1 graph not done" in captured.err
    assert world.rows(LlmCall, "id", state="stored") and "Traceback" not in captured.err


@pytest.mark.postgres
def test_a_graph_on_postgresql_is_the_same_as_on_sqlite(tmp_path: Path, postgres_url: str) -> None:
    facts = []
    for name, url in (("file", None), ("server", postgres_url)):
        (tmp_path / name).mkdir()
        with graph_world(tmp_path / name, url=url) as world:
            assert world.run().run(2).counts == {"converged": 1}
            assert world.run().forecast(world.run().pending()).graphs == 0
            facts.append(graph_facts(world.store))
            assert [row["outcome"] for row in list_graphs(world.store)] == ["converged"]
            assert node_study(studied_graphs(world.store))["usable"] == 1
    assert facts[0] == facts[1]
