"""A repository whose pull requests build on each other in every relevant way, mined into a database."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chains.build import ChainBuilder
from chains.options import BuildOptions, BuildReport
from chains.stages.filters import Filters
from prchain.core.console.progress import open_progress
from sql.store import Store
from sql.tables import Chain, ChainStage, Selection
from tests.miner.gitworld import Content, World
from tests.miner.minedworld import mine_by_git, mined_store

NAME = "shop/till"

_LICENCE = Path(__file__).parents[2].joinpath("LICENSE").read_text(encoding="utf-8")


def module(name: str, *extra: str) -> str:
    """Program text of a dozen telling lines, with functions added to it."""
    rows = [f"def {name}_part_{place}(amount):\n    return amount * {name}_factor_{place} + {place}" for place in "abc"]
    return "\n\n\n".join((*rows, *extra)) + "\n"


def function(name: str, step: int = 0) -> str:
    """A function of several telling lines."""
    return (
        f"def {name}(amount):\n    {name}_intermediate = amount + {step}\n"
        f"    {name}_result = {name}_intermediate * {step + 2}\n"
        f"    {name}_checked = check_{name}({name}_result, {step})\n"
        f"    return {name}_checked"
    )


class Shop(World):
    """A world that lands pull requests by squash, each with one message."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "till.git")
        start: dict[str | bytes, Content] = {
            "LICENSE": _LICENCE,
            **{f"src/till/{name}.py": module(name) for name in ("cart", "prices", "taxes", "print")},
            "docs/index.md": "# till\n",
        }
        self.commit("main", start, "start")

    def land(self, number: int, files: Mapping[str, Content], message: str) -> int:
        """Propose and squash; another author's commit comes between any two landings."""
        changes: dict[str | bytes, Content] = dict(files.items())
        head = self.propose(number, changes)
        self.commit("main", {"pushes.txt": f"{number}\n"}, f"push before {number}")
        subject, newline, rest = message.partition("\n")
        return self.squash("main", head, f"{subject} (#{number}){newline}{rest}")


def grown(folder: Path) -> Shop:
    """Two chains, a change that is reverted, a docs-only follow-up and a bare mention; the tests have their numbers."""
    shop = Shop(folder)
    round_1 = function("round_half_even_amount")
    shop.land(1, {"src/till/prices.py": module("prices", round_1)}, "Round amounts as banks do")
    shop.land(
        2,
        {"src/till/prices.py": module("prices", function("round_half_even_amount", 5))},
        "Mend the rounding of negative amounts\n\nFollow-up to #1, which forgot refunds.",
    )
    shop.land(
        3,
        {"src/till/prices.py": module("prices", function("round_half_even_amount", 7), function("refund_amount"))},
        "Refund amounts\n\nFollow-up to #2.",
    )
    shop.land(4, {"src/till/taxes.py": module("taxes", function("import_duty"))}, "Know import duties")
    shop.land(5, {"src/till/taxes.py": module("taxes")}, 'Revert "Know import duties"\n\nThis reverts #4.')
    shop.land(6, {"docs/index.md": "# till\n\nRounds.\n"}, "Describe rounding\n\nFollow-up to #3.")
    shop.land(7, {"src/till/print.py": module("print", function("itemised_receipt"))}, "Print receipts")
    shop.land(
        8,
        {"src/till/cart.py": module("cart", function("redeem_voucher"))},
        "Take vouchers\n\nThe wording is the same as in #7.",
    )
    return shop


@contextmanager
def mined(folder: Path, world: World, database: str | None = None) -> Iterator[Store]:
    """The world in a database."""
    world.save()
    if database is None:
        store = mined_store(folder, world, NAME)
    else:
        store = Store.open(database)
        mine_by_git(store, folder, world, NAME)
    try:
        yield store
    finally:
        store.close()


def build(store: Store, folder: Path, **options: Any) -> BuildReport:
    """Build the chains of the one repository, by who cites whom unless another strategy is named."""
    options.setdefault("strategy", "reference")
    filters = options.pop("filters", Filters())
    with open_progress(stream=io.StringIO()) as progress:
        builder = ChainBuilder(
            store, mirrors=folder, progress=progress, options=BuildOptions(filters=filters, **options)
        )
        (report,) = builder.build()
    return report


def chosen(store: Store, strategy: str = "reference", outcome: str = "selected") -> dict[str, tuple[int, ...]]:
    """Id to numbers of the chains of a strategy."""
    with store.reading() as tx:
        ids = [row[0] for row in tx.rows(Selection, "chain_id", strategy=strategy, outcome=outcome)]
        return {id_: tuple(row[0] for row in tx.rows(ChainStage, "number", chain_id=id_)) for id_ in ids}


def dump(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of chains, without the time of selection."""
    with store.reading() as tx:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for table in (Chain, ChainStage, Selection):
            names = [column.name for column in table.__table__.columns if column.name != "selected_at"]
            found[table.__tablename__] = sorted(tuple(row) for row in tx.rows(table, *names))
    return found
