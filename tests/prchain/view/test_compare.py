"""Pages that lay samples, models and settings beside each other: the figures are those that the terminal prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from prchain.view import comparisons
from prchain.view.comparisons import ComparePages, SidesView, compare_view
from prchain.view.divergence import acts, nearest, shared_steps
from prchain.view.options import ViewOptions
from prchain.view.samples import samples_view
from prchain.view.site import Site
from sql.store import Store
from tests.databases import open_new
from tests.prchain.view.pagereader import read_page, target
from tests.trajectories.sampleworld import SampleWorld, Talk
from trajectories.rows import read_entries
from trajectories.studies.curation.quality import measured
from trajectories.studies.evaluation.evaluation import beside, evaluation
from trajectories.studies.evaluation.stored import TaskSet, chains_of, evaluated_runs, with_views

CHAIN = "c" * 16


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        yield SampleWorld(store)


def talk(*commands: str, text: str = "") -> Talk:
    found = Talk().system().query(1)
    for command in commands:
        found.bash(command, text=text)
    return found.submit()


def compare_pages(store: Store, shown: frozenset[str] | None = None) -> ComparePages:
    return ComparePages(store, None, lambda: shown, lambda _, read: read())


def test_steps_are_alike_by_what_was_done_not_by_what_was_said() -> None:
    one, other = (acts(it.entries) for it in (talk("ls", "cat a"), talk("ls", "cat b", text="Let me see.")))
    assert shared_steps(one, other) == 1
    assert [act.words for act in one] == ["bash: ls", "bash: cat a", "submit: "]


def test_arguments_are_alike_in_whatever_order_they_are_written() -> None:
    edits = [
        acts(Talk().query(1).turn("", ("edit", arguments)).entries)
        for arguments in ('{"path": "a", "line": 1}', '{"line": 1, "path": "a"}', '{"line": 2, "path": "a"}')
    ]
    assert shared_steps(edits[0], edits[1]) == 1 and shared_steps(edits[0], edits[2]) == 0


@pytest.mark.parametrize("arguments", ["{", "[1]", "", "[" * 5_000, '{"a": "\\ud800"}'])
def test_arguments_of_any_form_are_a_step(arguments: str) -> None:
    assert len(acts(Talk().query(1).turn("", ("edit", arguments)).entries)) == 1


def test_the_same_act_in_another_attempt_is_another_step() -> None:
    sent_back = talk("ls").comment().bash("ls")
    went_on = talk("ls").query(2).bash("ls")
    one, other = acts(sent_back.entries), acts(went_on.entries)
    assert shared_steps(one, other) == 2
    assert (one[2].attempt, other[2].position) == (2, 2)


def test_the_nearest_is_the_one_that_goes_along_for_longest() -> None:
    own = acts(talk("a", "b", "c").entries)
    above = [acts(talk(*commands).entries) for commands in (("x",), ("a", "b", "d"), ("a", "b", "e"))]
    assert nearest(own, above) == (1, 2)
    assert nearest(own, []) is None


def test_samples_of_a_chain_stand_beside_each_other_with_the_terminals_figures(world: SampleWorld) -> None:
    world.chain(CHAIN, length=1)
    world.select(CHAIN, "evidence")
    world.trajectory("a" * 16, CHAIN, talk("cat a", "cat a", "ls"), usd=0.25)
    world.trajectory("b" * 16, CHAIN, talk("cat a", "cat a", "pwd"), sample=1, outcome="rejected", accepted=0)
    world.trajectory("d" * 16, CHAIN, talk("cat a"), sample=2, threshold=0.5)
    view = samples_view(world.store, CHAIN, "compare.html", None)
    assert view is not None and (view.total, view.next) == (3, None)
    with world.store.reading() as tx:
        runs = {it.trajectory: it.run for it in with_views(tx, evaluated_runs(tx, [CHAIN]))}
        for it in view.samples:
            own = measured(it.report.id, read_entries(tx, it.report.id))
            [stage] = it.stages
            assert it.redundant == own.redundant_share == stage.redundant == runs[it.report.id].redundant
            assert it.report.steps == own.steps
            assert stage.resolved == runs[it.report.id].resolved
    first, second, third = view.samples
    assert [it.stages[0].resolved for it in view.samples] == [True, False, True]
    assert first.redundant == 0.5 and first.divergence is None
    assert third.setting == "threshold=0.5" and first.setting == "threshold=0.8"
    apart = second.divergence
    assert apart is not None and (apart.other, apart.shared) == ("a" * 16, 2)
    assert apart.own is not None and apart.own.words == "bash: pwd" and apart.own.page.endswith("#step-3")
    assert apart.others is not None and apart.others.words == "bash: ls"


def test_a_sample_that_does_the_same_and_one_that_ends_are_told(world: SampleWorld) -> None:
    world.chain(CHAIN, length=1)
    for sample, commands in enumerate((("ls",), ("ls",))):
        world.trajectory(f"{sample:016x}", CHAIN, talk(*commands), sample=sample)
    world.trajectory("f" * 16, CHAIN, Talk().system().query(1).bash("ls"), sample=2)
    page = read_page(Site(world.store, ViewOptions(), Path(), Path()).render(f"chains/{CHAIN}/compare.html") or b"")
    assert "Does the same as No. 1, 0000000000, in all 2 steps." in page.text
    assert "ends here" in page.text


def test_many_samples_are_paged_and_each_leads_to_its_page(world: SampleWorld, tmp_path: Path) -> None:
    world.chain(CHAIN, length=1)
    for sample in range(45):
        world.trajectory(f"{sample:016x}", CHAIN, talk("ls", f"cat {sample}"), sample=sample)
    site = Site(world.store, ViewOptions(), tmp_path, tmp_path, once=True)
    pages = [path for path in site.pages() if re.search(r"chains/c+/compare", path)]
    assert len(pages) == 3
    bodies = {path: read_page(site.render(path) or b"") for path in pages}
    anchors = [anchor for page in bodies.values() for anchor in page.ids if anchor.startswith("sample-")]
    assert len(anchors) == len(set(anchors)) == 45
    for sample in (0, 19, 20, 44):
        path = f"trajectories/{sample:016x}/index.html"
        [link] = [link for link in read_page(site.render(path) or b"").links if "compare" in link and "#" in link]
        assert link.partition("#")[2] in bodies[target(path, link)].ids
    assert site.render(f"chains/{CHAIN}/compare-after-{0:016x}.html") is None


def test_a_chain_with_one_sample_that_is_shown_has_no_comparison(world: SampleWorld, tmp_path: Path) -> None:
    world.chain(CHAIN, length=1)
    world.trajectory("a" * 16, CHAIN, talk("ls"))
    world.trajectory("b" * 16, CHAIN, talk("ls"), sample=1, outcome="rejected", accepted=0)
    site = Site(world.store, ViewOptions(outcome="accepted"), tmp_path, tmp_path)
    assert not [path for path in site.pages() if "compare" in path and path.startswith("chains/")]
    assert site.render(f"chains/{CHAIN}/compare.html") is None
    body = (site.render(f"trajectories/{'a' * 16}/index.html") or b"").decode()
    assert "compare.html" not in body


def sides_of(pages: ComparePages, name: str) -> SidesView:
    found = pages.view(name)
    assert found is not None and found[0] == "sides"
    view: SidesView = found[1]
    return view


def two_models(world: SampleWorld, chains: int) -> None:
    for number in range(chains):
        chain = world.chain(f"{number:016x}", length=1, first=number + 1)
        world.select(chain, "evidence")
        for place, model in enumerate(("one", "other")):
            good = place == 0 or number % 2 == 0
            world.trajectory(
                f"{number:015x}{place}",
                chain,
                talk("cat a", *["cat a"] * place),
                outcome="accepted" if good else "rejected",
                accepted=int(good),
                model=model,
            )


def test_groups_and_pairs_are_those_of_evaluate(world: SampleWorld) -> None:
    two_models(world, 4)
    with world.store.reading() as tx:
        runs = evaluated_runs(tx, chains_of(tx, TaskSet()))
        found = beside(with_views(tx, runs), "model", "1", "2")
    view = compare_view(runs)
    assert [dict(group) for group in evaluation(runs)["groups"]] == [
        {name: value for name, value in group.items() if name != "pass_1"} for group in view.groups
    ]
    [pair] = view.pairs
    assert (pair.page, pair.instances) == ("compare/1-2.html", 4)
    sides = sides_of(compare_pages(world.store), "1-2.html")
    assert sides.names == ("one", "other")
    for row, measure in zip(sides.measures, ("resolved", "steps", "calls", "redundant"), strict=False):
        told = found.measures[measure]
        assert (row.one, row.other, row.difference, row.low, row.high, row.cliffs_delta) == (
            told.one,
            told.other,
            told.difference,
            told.low,
            told.high,
            told.cliffs_delta,
        )
    assert sides.only == (len(found.only_one), len(found.only_other)) == (2, 0)
    assert [(row.sides[0].resolved, row.sides[1].resolved, row.only) for row in sides.rows] == [
        (1, 1, None),
        (1, 0, 0),
        (1, 1, None),
        (1, 0, 0),
    ]


def test_stages_of_a_pair_are_paged_by_key_and_many_conversations_are_not_read(
    world: SampleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons, "_ROWS", 3)
    monkeypatch.setattr(comparisons, "_MOST_READ", 9)
    two_models(world, 5)
    own = compare_pages(world.store)
    first = sides_of(own, "1-2.html")
    second = sides_of(own, str(first.next))
    assert list(own.pages()) == ["compare/index.html", "compare/1-2.html", f"compare/{first.next}"]
    assert [row.chain for row in (*first.rows, *second.rows)] == [f"{number:016x}" for number in range(5)]
    assert (second.start, second.next, first.unread) == (3, None, 10)
    assert "redundant views" not in {row.name for row in first.measures}


def test_a_pair_links_to_trajectories_that_are_shown_alone(world: SampleWorld) -> None:
    two_models(world, 1)
    view = sides_of(compare_pages(world.store, frozenset({f"{0:015x}1"})), "1-2.html")
    assert view.rows[0].sides[0].links == () and len(view.rows[0].sides[1].links) == 1


@pytest.mark.parametrize("name", ["1-1.html", "2-1.html", "1-9.html", "0-1.html", "1-2-after-x.html", "x.html", ""])
def test_what_is_no_pair_is_no_page(world: SampleWorld, name: str) -> None:
    two_models(world, 1)
    assert compare_pages(world.store).view(name) is None
