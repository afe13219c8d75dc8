"""Pages of money: the sums are those of `stats` and `sql spending`, and samples together cost all that was spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert

from prchain.core.errors import UsageError
from prchain.view import money
from prchain.view.money import FOR_CHAINS, FOR_NOTHING, FOR_REPOSITORIES, MoneyView, money_view, read_spending
from prchain.view.money import sample_costs as costs_of
from prchain.view.options import ViewOptions
from prchain.view.site import Site
from sql.named import find_query, run_query
from sql.tables import LlmCall
from tests.databases import open_new
from tests.prchain.view.pagereader import read_page
from tests.trajectories.sampleworld import SampleWorld
from trajectories.studies.statistics.stats import stats


def call(
    world: SampleWorld, purpose: str, subject: str, usd: float | None, day: str = "2024-01-01", **row: str
) -> None:
    texts = dict.fromkeys(("run", "request_hash", "prompt", "prompt_hash"), "x")
    numbers = {"sample": 0, "attempt": 0, "ordinal": 0, "tokens_in": 10, "tokens_out": 2}
    values = {"model": "m", "state": "stored", "usd": usd, "started_at": f"{day}T00:00:00Z", **row}
    with world.store.transaction() as tx:
        tx.connection.execute(insert(LlmCall).values(purpose=purpose, subject=subject, **texts, **numbers, **values))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    """Two chains, one without a sample; calls for everything that calls are for."""
    with closing(open_new(tmp_path / "prchain.db")) as store:
        found = SampleWorld(store)
        found.chain("c1")
        found.chain("c2", repository=("lab", "sums"), first=20)
        found.trajectory("t1", "c1", model="small")
        found.trajectory("t2", "c1", sample=1, model="large")
        found.trajectory("t3", "c1", sample=2, outcome="rejected", accepted=0)
        found.trajectory("t4", "c2", outcome="rejected", accepted=0)
        call(found, "agent", "t1/1", 1.0, model="small")
        call(found, "agent", "t2/1", 3.0, "2024-01-02", model="large")
        call(found, "judge", "t2/1", 0.5, "2024-01-02")
        call(found, "agent", "t3/1", 0.25, "2024-01-02")
        call(found, "agent", "t4/1", 0.125, "2024-01-03")
        call(found, "query", "c1/1", 0.75)
        call(found, "query", "c2/1", 0.0625)
        call(found, "repair", "shop/till", 2.0)
        call(found, "plan", "gone/1", 0.03125)
        call(found, "agent", "t1/1", 9.0, state="released")
        yield found


def view_of(world: SampleWorld, repository: str | None = None) -> MoneyView:
    with world.store.reading() as tx:
        return money_view(read_spending(tx, repository))


def test_sums_are_those_of_the_terminal(world: SampleWorld) -> None:
    view = view_of(world)
    with world.store.reading() as tx:
        told = stats(tx)
    with run_query(world.store, find_query("spending"), {}) as result:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    tables = {title: {line.name: line for line in lines} for title, _, lines in view.tables}
    assert view.whole.usd == pytest.approx(told["all_purposes"]["usd"]) == pytest.approx(7.71875)
    assert view.samples == 2
    assert view.usd_per_sample == pytest.approx(told["all_purposes"]["usd_per_sample"])
    by_purpose = told["all_purposes"]["by_purpose"]
    assert {name: line.usd for name, line in tables["By purpose"].items()} == pytest.approx(by_purpose)
    for title, column in (("By purpose", "purpose"), ("By model", "model")):
        for name, line in tables[title].items():
            mine = [row for row in rows if row[column] == name]
            assert line.usd == pytest.approx(sum(row["usd"] for row in mine))
            assert line.calls == sum(row["calls"] for row in mine)
    assert [line.name for line in view.tables[3][2]] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    for _, _, lines in view.tables:
        assert sum(line.known for line in lines) == pytest.approx(view.whole.known)
        assert sum(line.share for line in lines) == pytest.approx(100, abs=0.01)


def test_what_was_spent_is_told_by_how_it_ended(world: SampleWorld) -> None:
    lines = {line.name: line.usd for line in view_of(world).tables[2][2]}
    assert lines == {
        "accepted": 4.5,
        "rejected": 0.375,
        FOR_CHAINS: 0.8125,
        FOR_REPOSITORIES: 2.0,
        FOR_NOTHING: 0.03125,
    }


def test_samples_together_cost_all_that_was_spent(world: SampleWorld) -> None:
    with world.store.reading() as tx:
        found = read_spending(tx)
    one, other = costs_of(found, frozenset({"t2"}))
    assert (one.id, one.own, one.of_chain) == ("t1", 1.0, 0.5)
    assert (other.id, other.own, other.of_chain) == ("t2", 3.5, 0.5)
    assert one.of_others == other.of_others == (0.125 + 0.0625 + 2.0 + 0.03125) / 2
    assert sum(it.whole or 0 for it in (one, other)) == pytest.approx(money_view(found).whole.usd)
    assert one.page is None and other.page == "trajectories/t2/index.html"


def test_of_one_repository_is_told_what_was_asked_for_it(world: SampleWorld) -> None:
    view = view_of(world, "Lab/Sums")
    assert view.whole.usd == 0.1875 and view.samples == 0 and view.usd_per_sample is None
    assert view_of(world, "shop/till").whole.usd == 7.5
    with world.store.reading() as tx, pytest.raises(UsageError, match="no/where has not been mined"):
        read_spending(tx, "no/where")


def test_a_price_that_is_not_known_makes_sums_unknown_and_is_told(world: SampleWorld) -> None:
    call(world, "agent", "t1/2", None)
    view = view_of(world)
    [agent] = [line for line in view.tables[0][2] if line.name == "agent"]
    assert (view.whole.usd, agent.usd, agent.unpriced, agent.known) == (None, None, 1, 4.375)
    assert view.usd_per_sample is None
    with world.store.reading() as tx:
        one, other = costs_of(read_spending(tx), None)
    assert (one.own, one.whole) == (None, None) and other.whole is not None
    page = read_page(Site(world.store, ViewOptions(), Path(), Path()).render("money/index.html") or b"")
    assert "at least 4.3750" in page.text and "1 call without a price" in page.text


def test_samples_are_paged_and_each_stands_once(
    world: SampleWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(money, "_ROWS", 2)
    for number in range(5, 8):
        world.trajectory(f"t{number}", "c1", sample=number)
    site = Site(world.store, ViewOptions(), tmp_path, tmp_path, once=True)
    pages = [path for path in site.pages() if path.startswith("money/samples")]
    assert pages == ["money/samples.html", "money/samples-after-t2.html", "money/samples-after-t6.html"]
    links = [link for path in pages for link in read_page(site.render(path) or b"").links if "trajectories/t" in link]
    assert [link.split("/")[-2] for link in links] == ["t1", "t2", "t5", "t6", "t7"]
    for path in ("money/x.html", "money/samples-after-x.html", "money/", "money/samples-after-t5.html"):
        assert site.render(path) is None


def test_nothing_spent_is_said(tmp_path: Path) -> None:
    with closing(open_new(tmp_path / "none.db")) as store:
        site = Site(store, ViewOptions(), tmp_path, tmp_path)
        assert "No model was paid yet" in read_page(site.render("money/index.html") or b"").text
        assert "No sample is here yet" in read_page(site.render("money/samples.html") or b"").text
