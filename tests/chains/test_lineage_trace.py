"""Lineage of mined repositories: which pairs are stored, and that walks go on where the last one ended."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chains.history import repositories
from chains.lineage import cache
from chains.lineage.trace import TraceReport, trace
from prchain.core.console.progress import SILENT
from prchain.core.errors import IncompleteRepository, ShallowRepository
from sql.store import Store
from sql.tables import Lineage, LineageLanding, LineageWalk
from tests.chains.chainworld import NAME, Shop, function, mined, module
from tests.miner.gitworld import SUBMODULE, Content, World, git
from tests.miner.minedworld import mine_by_git

PRICES = "src/till/prices.py"


def traced(store: Store, folder: Path) -> TraceReport:
    with store.reading() as tx:
        (repository,) = repositories(tx)
    return trace(store, repository, folder / "mirrors", SILENT.task(""))


def pairs(store: Store) -> dict[tuple[int, int], dict[str, Any]]:
    columns = [column.name for column in Lineage.__table__.columns]
    with store.reading() as tx:
        rows = [dict(zip(columns, row, strict=True)) for row in tx.rows(Lineage, *columns)]
    return {(row["later"], row["earlier"]): row for row in rows}


def outcomes(store: Store) -> dict[int, str]:
    with store.reading() as tx:
        return dict(map(tuple, tx.rows(LineageLanding, "number", "outcome")))


def everything(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    with store.reading() as tx:
        for table in (Lineage, LineageLanding, LineageWalk):
            names = [column.name for column in table.__table__.columns if column.name != "key_before"]
            found[table.__tablename__] = [tuple(row) for row in tx.rows(table, *names)]
    return found


def grown(folder: Path) -> Shop:
    """Three pull requests on one function, of which none cites another."""
    shop = Shop(folder)
    shop.land(1, {PRICES: module("prices", function("round_amount"))}, "Round amounts")
    shop.land(2, {PRICES: module("prices", function("round_amount", 5))}, "Mend negative amounts")
    more = function("round_amount", 5).replace("    return", "    log_rounding(round_amount_checked)\n    return")
    shop.land(3, {PRICES: module("prices", more)}, "Tell what was rounded")
    return shop


def test_a_pull_request_that_changes_anothers_lines_is_paired_with_it(tmp_path: Path) -> None:
    with mined(tmp_path, grown(tmp_path)) as store:
        report = traced(store, tmp_path)
        assert (report.landed, report.is_whole, report.why) == (3, True, "it is the first")
        found = pairs(store)
        assert found[2, 1]["real_lines"] == found[2, 1]["source_lines"] == found[2, 1]["removed_lines"] == 3
        assert found[2, 1]["functions"] == ["round_amount"]
        assert outcomes(store) == {1: "unpaired", 2: "paired", 3: "paired"}


def test_lines_put_into_anothers_function_are_enough_for_a_pair(tmp_path: Path) -> None:
    with mined(tmp_path, grown(tmp_path)) as store:
        traced(store, tmp_path)
        found = pairs(store)
        assert (found[3, 1]["real_lines"], found[3, 1]["inserted_lines"]) == (0, 1)
        assert found[3, 1]["functions"] == ["round_amount"]


def test_the_view_tells_shares_and_that_nobody_cites(tmp_path: Path) -> None:
    with mined(tmp_path, grown(tmp_path)) as store:
        traced(store, tmp_path)
        with store.reading() as tx:
            query = "SELECT share_of_source, share_of_target, cited FROM lineage_edges WHERE source = 2"
            assert tx.connection.exec_driver_sql(query).one() == (1.0, 3 / 5, 0)


def test_names_that_another_introduced_count_inside_a_function_that_was_there(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.land(1, {"src/till/prices.py": module("prices", function("round_half_even"))}, "Round")
    cart = module("cart").replace(
        "    return amount * cart_factor_a", "    amount = round_half_even(amount)\n    return amount * cart_factor_a"
    )
    shop.land(2, {"src/till/cart.py": cart}, "Use it")
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        assert pairs(store)[2, 1]["names"] == ["round_half_even"]


@pytest.mark.parametrize(
    "after",
    [
        module("prices", function("round_amount").replace("    ", "        ")),
        module("prices", "# " + function("round_amount")),
        function("round_amount") + "\n\n\n" + module("prices"),
    ],
    ids=["indented", "commented", "moved"],
)
def test_lines_that_are_only_moved_or_indented_are_not_changed(tmp_path: Path, after: str) -> None:
    shop = Shop(tmp_path)
    shop.land(1, {PRICES: module("prices", function("round_amount"))}, "Round amounts")
    shop.land(2, {PRICES: after}, "Tidy")
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        assert not [pair for pair in pairs(store).values() if pair["real_lines"] > 1]


def test_a_landing_that_touches_many_others_is_stored_as_a_count(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    table = [f"entry_{number} = compute({number})" for number in range(51)]
    for number in range(1, 52):
        shop.land(number, {PRICES: "\n".join(table[:number]) + "\n"}, f"Add entry {number}")
    shop.land(52, {PRICES: "\n".join(f"{line} + 1" for line in table) + "\n"}, "Add one everywhere")
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        assert outcomes(store)[52] == "sweeping"
        assert not [pair for pair in pairs(store) if pair[0] == 52]
        with store.reading() as tx:
            assert next(tx.rows(LineageLanding, "owners", number=52))[0] == 51


def test_a_rebase_landing_owns_the_lines_of_all_its_commits(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    first = module("prices", function("round_amount"))
    head = shop.propose(1, {PRICES: first}, {PRICES: module("prices", function("round_amount"), function("refund"))})
    shop.commit("main", {"pushes.txt": "x\n"}, "push")
    shop.rebase("main", head)
    both = module("prices", function("round_amount", 5), function("refund", 5))
    shop.land(2, {PRICES: both}, "Mend both")
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        assert pairs(store)[2, 1]["functions"] == ["refund", "round_amount"]


def branched(folder: Path) -> Shop:
    """A release branch with a backport of the third pull request, and a merge of that branch into the default one."""
    shop = grown(folder)
    fix = function("round_amount", 9)
    shop.branch("stable", shop.refs["refs/heads/main"])
    shop.land(4, {PRICES: module("prices", fix)}, "Mend refunds")
    backport = shop.propose(5, {PRICES: module("prices", fix)}, base="stable")
    shop.commit("stable", {"stable.txt": "x\n"}, "push")
    shop.squash("stable", backport, "Backport of refunds (#5)")
    only_there = shop.propose(6, {"src/till/taxes.py": module("taxes", function("old_duty"))}, base="stable")
    shop.squash("stable", only_there, "Know old duties (#6)")
    head = shop.pull(7, "stable", keep_branch=True)
    shop.merge("main", head, "Merge pull request #7 from shop/stable\n\nBring stable home")
    shop.land(8, {"src/till/taxes.py": module("taxes", function("old_duty", 4))}, "Mend old duties")
    return shop


def test_a_backport_is_the_same_change_and_makes_no_pairs(tmp_path: Path) -> None:
    with mined(tmp_path, branched(tmp_path)) as store:
        traced(store, tmp_path)
        assert outcomes(store)[5] == "same_change"
        with store.reading() as tx:
            assert next(tx.rows(LineageLanding, "same_as", number=5))[0] == 4
        assert (4, 2) in pairs(store)
        assert not [pair for pair in pairs(store) if 5 in pair]


def test_a_merge_that_brings_landings_owns_nothing_and_makes_no_pairs(tmp_path: Path) -> None:
    with mined(tmp_path, branched(tmp_path)) as store:
        traced(store, tmp_path)
        assert outcomes(store)[7] == "carries_landings"
        assert not [pair for pair in pairs(store) if 7 in pair or pair == (8, 6)]


def test_landings_of_a_branch_that_is_gone_are_walked(tmp_path: Path) -> None:
    shop = branched(tmp_path)
    shop.drop("stable")
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        assert "off_line" not in outcomes(store).values()


def test_an_unchanged_repository_is_not_even_opened(tmp_path: Path) -> None:
    with mined(tmp_path, branched(tmp_path)) as store:
        traced(store, tmp_path)
        before = everything(store)
        shutil.rmtree(tmp_path / "till.git")
        assert traced(store, tmp_path).walked_commits == 0
        assert everything(store) == before


def _land_more(shop: Shop) -> None:
    shop.land(9, {PRICES: module("prices", function("round_amount", 11))}, "Mend once more")
    again = shop.propose(10, {PRICES: module("prices", function("round_amount", 12))}, base="stable")
    shop.squash("stable", again, "Mend the old one (#10)")
    shop.save()


def test_a_second_walk_goes_on_and_ends_with_the_same_rows(tmp_path: Path) -> None:
    shop = branched(tmp_path)
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        _land_more(shop)
        mine_by_git(store, tmp_path, shop, NAME)
        report = traced(store, tmp_path)
        assert (report.is_whole, report.why, report.walked_commits) == (False, "", 3)
        step_by_step = everything(store)
        with store.transaction() as tx:
            tx.delete(LineageWalk)
        assert traced(store, tmp_path).is_whole
        assert everything(store) == step_by_step


@pytest.mark.parametrize("damage", ["gone", "cut", "other_version", "not_ours"])
def test_without_a_usable_state_the_walk_begins_anew(tmp_path: Path, damage: str) -> None:
    shop = branched(tmp_path)
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        (state,) = tmp_path.glob("mirrors/**/owners")
        if damage == "gone":
            state.unlink()
        elif damage == "cut":
            state.write_bytes(state.read_bytes()[:-40])
        elif damage == "not_ours":
            state.write_bytes(b"something else")
        _land_more(shop)
        mine_by_git(store, tmp_path, shop, NAME)
        with pytest.MonkeyPatch.context() as patch:
            if damage == "other_version":
                patch.setattr(cache, "VERSION", cache.VERSION + 1)
            report = traced(store, tmp_path)
        assert report.why == "the state of the last walk is gone"
        assert (9, 8) not in pairs(store) and (9, 4) in pairs(store)


def test_a_rewritten_branch_is_noticed_and_walked_anew(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        shop.branch("main", shop.made(shop.made("main").parents[0]).number)
        shop.commit("main", {"readme.txt": "rewritten\n"}, "another history")
        shop.save()
        with store.transaction() as tx:
            tx.delete(LineageWalk)
        assert traced(store, tmp_path).rewritten == ("main",)
        shop.land(9, {PRICES: module("prices", function("round_amount", 11))}, "Mend once more")
        shop.save()
        mine_by_git(store, tmp_path, shop, NAME)
        report = traced(store, tmp_path)
        assert (report.why, report.rewritten) == ("a branch was rewritten since the last walk", ())
        assert 3 not in outcomes(store)


def test_a_full_disk_loses_the_state_and_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    shop = branched(tmp_path)
    with mined(tmp_path, shop) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            traced(store, tmp_path)
        assert "No space left on device" in caplog.text
        assert not list(tmp_path.glob("mirrors/**/owners*"))
        assert (4, 2) in pairs(store)
        assert traced(store, tmp_path).walked_commits == 0


_KILLED = """
import os, signal, sys
from pathlib import Path
from contextlib import closing
from chains.history import repositories
from chains.lineage import cache, trace
from sql.store import Store

class Task:
    steps = 0
    def advance(self, count=1):
        Task.steps += 1
        if Task.steps == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
    def update(self, **_): pass
    def phase(self, *_): pass
    def done(self, message=""): pass

if sys.argv[3] == "before the state":
    cache.save = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    Task.advance = lambda self, count=1: None
with closing(Store.open(sys.argv[1], create=False)) as store:
    with store.reading() as tx:
        (mined,) = repositories(tx)
    trace.trace(store, mined, Path(sys.argv[2]), Task())
"""


@pytest.mark.parametrize("moment", ["2", "before the state"])
def test_a_kill_loses_nothing(tmp_path: Path, moment: str) -> None:
    shop = branched(tmp_path)
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        _land_more(shop)
        mine_by_git(store, tmp_path, shop, NAME)
        arguments = [sys.executable, "-c", _KILLED, str(tmp_path / "prchain.db"), str(tmp_path / "mirrors"), moment]
        assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
        again = traced(store, tmp_path)
        assert again.walked_commits == (3 if moment == "2" else 0)
        shop.land(11, {PRICES: module("prices", function("round_amount", 13))}, "Mend for good")
        shop.save()
        mine_by_git(store, tmp_path, shop, NAME)
        assert not traced(store, tmp_path).is_whole
        step_by_step = everything(store)
        with store.transaction() as tx:
            tx.delete(LineageWalk)
        traced(store, tmp_path)
        assert everything(store) == step_by_step


def _remove_blob(world: World, content: str) -> None:
    name = git(world.path, "hash-object", "--stdin", stdin=content.encode()).strip()
    (world.path / "objects" / name[:2] / name[2:]).unlink()


def test_a_missing_file_is_unknown_until_it_is_read_whole_and_the_walk_goes_on(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    shop.land(4, {"src/till/taxes.py": module("taxes", function("import_duty"))}, "Know duties")
    shop.land(5, {"src/till/taxes.py": module("taxes", function("import_duty", 3))}, "Mend duties")
    with mined(tmp_path, shop) as store:
        _remove_blob(shop, module("prices", function("round_amount")))
        report = traced(store, tmp_path)
        assert report.missing_blobs == 1
        assert (5, 4) in pairs(store)
        assert not [pair for pair in pairs(store) if pair[1] == 1]
        shop.land(6, {"src/till/taxes.py": module("taxes", function("import_duty", 8))}, "Mend more")
        shop.save()
        mine_by_git(store, tmp_path, shop, NAME)
        assert not traced(store, tmp_path).is_whole
        assert (6, 5) in pairs(store)


def test_a_repository_without_landings_has_no_lineage(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.pull(1, shop.commit(None, {"a.py": "x = 1\n"}, "proposed", parents=[shop.refs["refs/heads/main"]]))
    with mined(tmp_path, shop) as store:
        report = traced(store, tmp_path)
        assert (report.landed, report.walked_commits, pairs(store)) == (0, 0, {})


def test_a_partial_clone_is_refused_in_one_line(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    with mined(tmp_path, shop) as store:
        git(shop.path, "config", "remote.origin.promisor", "true")
        name = git(shop.path, "ls-tree", "-r", "--format=%(objectname)", "main").split("\n")[0]
        (shop.path / "objects" / name[:2] / name[2:]).unlink()
        with pytest.raises(IncompleteRepository, match="is a partial clone"):
            traced(store, tmp_path)


def test_a_shallow_clone_is_refused_in_one_line(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    with mined(tmp_path, shop) as store:
        (shop.path / "shallow").write_text(shop.sha(shop.made("main").parents[0]) + "\n")
        with pytest.raises(ShallowRepository):
            traced(store, tmp_path)


def test_grafts_and_replacements_of_the_repository_are_not_followed(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    with mined(tmp_path, shop) as store:
        tip = shop.sha("main")
        (shop.path / "info").mkdir(exist_ok=True)
        (shop.path / "info" / "grafts").write_text(f"{tip}\n")
        git(shop.path, "update-ref", f"refs/replace/{shop.sha(shop.made('main').parents[0])}", shop.sha(1))
        traced(store, tmp_path)
        assert {(2, 1), (3, 1)} <= pairs(store).keys()


def test_an_octopus_merge_binary_files_and_submodules_are_walked(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    tip = shop.refs["refs/heads/main"]
    sides = [shop.commit(None, {f"side{place}.py": "x = 1\n"}, "side", parents=[tip]) for place in range(2)]
    files: dict[str | bytes, Content] = {
        "side0.py": "x = 1\n",
        "side1.py": "x = 1\n",
        "logo.png": b"\x89PNG\0\1",
        "lib": (SUBMODULE, b"a" * 40),
    }
    shop.commit("main", files, "Merge two sides", parents=[tip, *sides])
    shop.land(4, {"logo.png": b"\x89PNG\0\2", "lib": (SUBMODULE, b"b" * 40), "side0.py": "x = 2\n"}, "New logo")
    shop.land(5, {"logo.png": None, "lib": None, "side0.py": "x = call(3)\n"}, "No logo")
    with mined(tmp_path, shop) as store:
        traced(store, tmp_path)
        assert pairs(store)[5, 4]["removed_lines"] == 1


def test_a_branch_without_landings_is_not_walked(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    with mined(tmp_path, shop) as store:
        commits = traced(store, tmp_path).walked_commits
    shop.branch("wild", shop.refs["refs/heads/main"])
    for number in range(5):
        shop.commit("wild", {"wild.py": f"wild = {number}\n"}, "wild")
    other = tmp_path / "other"
    other.mkdir()
    with mined(other, shop) as store:
        assert traced(store, other).walked_commits == commits


@pytest.mark.whole
def test_a_file_of_a_million_lines_is_walked(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    rows = [f"row_{number} = {number}" for number in range(1_000_000)]
    shop.land(1, {"src/till/table.py": "\n".join(rows) + "\n"}, "Add a table")
    rows[500_000] = "row_500000 = compute(500000)"
    shop.land(2, {"src/till/table.py": "\n".join(rows) + "\n"}, "Mend one row")
    with mined(tmp_path, shop) as store:
        arguments = [sys.executable, "-c", _MEMORY, str(tmp_path / "prchain.db"), str(tmp_path / "mirrors")]
        printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
        assert pairs(store)[2, 1]["real_lines"] == 1
    assert 0 < int(printed) < 1 << 30


_MEMORY = """
import sys
from pathlib import Path
from prchain.core.console.progress import SILENT
from sql.store import Store
from chains.history import repositories
from chains.lineage.trace import trace

store = Store.open(sys.argv[1], create=False)
with store.reading() as tx:
    (mined,) = repositories(tx)
print(trace(store, mined, Path(sys.argv[2]), SILENT.task("")).memory)
"""
"""In a process of its own: the largest memory of a test's process is that of all tests before it."""
