"""A small shop with a history: a git repository, mined into a database, with the rows of its chains.

Three pull requests build on each other (`CHAIN`); `crowd` makes any number of single ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chains.identity import chain_id
from chains.tasks.excerpt import ExcerptLimits
from chains.tasks.query import QueryConstructor
from chains.tasks.rows import read_draft
from chains.tasks.run import TaskRun, TaskRunOptions
from chains.tasks.screening import ChainScreener
from chains.tasks.writer import TaskWriter
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.ledger import Ledger
from prchain.core.llm.model import Request
from prchain.core.llm.price import Price
from sql.store import Store
from sql.tables import (
    Base,
    Chain,
    ChainStage,
    ClosingReference,
    Issue,
    Landing,
    PullRequestText,
    Repository,
    Selection,
)
from tests import models
from tests.memory_ledger import MemoryLedger
from tests.miner.gitworld import Content, World
from tests.miner.minedworld import mined_store
from tests.models import Answer

NAME = "shop/till"
CHAIN = (1, 2, 3)

START: dict[str | bytes, Content] = {
    "README.md": "# till\n",
    "src/till/__init__.py": "",
    "src/till/prices.py": "def net_price(amount, tax):\n    return amount / (1 + tax)\n",
    "src/till/cart.py": (
        "from till.prices import net_price\n\n\nclass Cart:\n    def __init__(self):\n        self.items = []\n\n"
        "    def total(self):\n        return sum(self.items)\n"
    ),
    "tests/test_cart.py": "from till.cart import Cart\n\n\ndef test_empty():\n    assert Cart().total() == 0\n",
}
ROUNDING = "def round_half_even_cents(amount):\n    return float(Decimal(amount).quantize(Decimal('0.01')))\n"
PRICES_1 = "from decimal import Decimal\n\n\n" + str(START["src/till/prices.py"]) + "\n\n" + ROUNDING
CART_1 = str(START["src/till/cart.py"]).replace(
    "return sum(self.items)", "return round_half_even_cents(sum(self.items))"
)
COUPONS = (
    "class CouponLedger:\n    def __init__(self):\n        self.redeemed_codes = set()\n\n"
    "    def redeem_once(self, code):\n        if code in self.redeemed_codes:\n"
    "            raise ValueError('coupon was spent before')\n        self.redeemed_codes.add(code)\n"
)
RECEIPT = (
    "def print_itemised_receipt(cart, ledger):\n    lines_of_receipt = [str(item) for item in cart.items]\n"
    "    lines_of_receipt += sorted(ledger.redeemed_codes)\n    return '\\n'.join(lines_of_receipt)\n"
)
TEST_ROUNDING = (
    "from till.prices import round_half_even_cents\n\n\n"
    "def test_half():\n    assert round_half_even_cents('0.125') == 0.12\n"
)
TEST_COUPONS = "from till.coupons import CouponLedger\n\n\ndef test_once():\n    CouponLedger().redeem_once('X1')\n"
TEST_RECEIPT = "from till import receipt\n\n\ndef test_lines():\n    assert receipt.print_itemised_receipt\n"


def prose(text: str) -> str:
    """A text without the line breaks of this file."""
    return " ".join(text.split())


QUERIES = {
    1: prose("""
        Cashiers complain that sums on the till differ from the bank by a cent, because halves of a cent always go up
        while the bank sends them to the even neighbour. Totals should follow the bank's rule. Amounts are computed
        in src/till/prices.py, which knows about taxes and nothing about cents yet, and the basket in src/till/cart.py
        adds its entries without any rounding. Let the price module offer the bank's way of rounding an amount, and let
        the basket use it when somebody asks what everything costs together; what a single entry costs stays as it is.
    """),
    2: prose("""
        A shop hands out vouchers and has found that people use the same one several times. Whoever pays with a voucher
        that was used earlier should be told so, and nothing should be deducted. The basket in src/till/cart.py has no
        memory of vouchers. Give the program a place that remembers which of them have been used, and make the basket
        ask there before it accepts one, so that the second use of the same voucher fails with a clear message.
    """),
    3: prose("""
        Customers want to see what they bought and which vouchers they used. Nothing prints that today. Starting from
        what the basket in src/till/cart.py holds and from the memory of used vouchers, produce a text with one line for
        every entry, followed by the vouchers in alphabetical order, and let the basket hand it out on request. What is
        in src/till/prices.py deals with money at large by now and deserves a file of a more fitting name.
    """),
}
OVERVIEW = prose("""
    The work turns a plain till into one that a shop can trust: its sums agree with the bank, vouchers count once, and
    customers see what they paid for. It begins with the way amounts are rounded, goes on to remembering which vouchers
    have been used, and ends with a printed text that shows entries and vouchers together, for which it needs both.
""")
PLAN = {"why": "Sums were off.", "where": "The price module.", "how": "By rounding as banks do."}


@dataclass
class TaskWorld:
    """A mined repository with chains in a database."""

    folder: Path
    store: Store
    world: World
    chains: list[str] = field(default_factory=list)

    @property
    def database(self) -> str:
        """The path of the database."""
        return str(self.store.url.database)

    @property
    def repository_id(self) -> int:
        """Of the one repository."""
        return int(self.rows(Repository, "id")[0][0])

    def rows(self, table: type[Base], *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        """Some columns of the rows of a table."""
        with self.store.reading() as tx:
            return [tuple(row) for row in tx.rows(table, *columns, **equals)]

    def add_chain(self, numbers: Sequence[int], *, strategy: str = "reference", score: float = 1.0) -> str:
        """Write the rows of a chain, as `prchain chains build` does, and return its id."""
        columns = ("number", "branch", "base_sha", "landed_sha", "landed_at", "subject")
        landed = {row[0]: row for row in self.rows(Landing, *columns)}
        id_ = chain_id("github.com", NAME, [(number, landed[number][3]) for number in numbers])
        stages = [
            {
                **dict(zip(columns, landed[number], strict=True)),
                "chain_id": id_,
                "position": place,
                "repository_id": self.repository_id,
                "source_files": 1,
                "source_lines": 2,
                "test_files": 1,
                "test_lines": 2,
                "relation": "follow_up" if place > 1 else None,
                "confidence": 0.9 if place > 1 else None,
                "signs": [{"sign": "shared_files", "weight": 0.2, "detail": "src/till/cart.py"}] if place > 1 else None,
            }
            for place, number in enumerate(numbers, 1)
        ]
        with self.store.transaction() as tx:
            tx.upsert(
                Chain,
                [
                    {
                        "id": id_,
                        "repository_id": self.repository_id,
                        "length": len(numbers),
                        "licence": "MIT",
                        "language": "python",
                    }
                ],
            )
            tx.upsert(ChainStage, stages)
            tx.upsert(
                Selection,
                [
                    {
                        "strategy": strategy,
                        "chain_id": id_,
                        "score": score,
                        "outcome": "selected",
                        "reason": None,
                        "selected_at": "2026-01-01T00:00:00Z",
                    }
                ],
            )
        self.chains.append(id_)
        return id_

    def say(self, number: int, **texts: str) -> None:
        """Give a pull request texts as the API would: title, body, comment, review, review_comment."""
        with self.store.transaction() as tx:
            tx.upsert(
                PullRequestText,
                [
                    {
                        "repository_id": self.repository_id,
                        "number": number,
                        "field": name,
                        "key": "" if name in {"title", "body"} else "1",
                        "author": "ada",
                        "author_kind": "User",
                        "author_association": None,
                        "body": body,
                        "created_at": "2026-01-01T00:00:00Z",
                        "path": "src/till/cart.py" if name == "review_comment" else None,
                    }
                    for name, body in texts.items()
                ],
            )

    def close_issue(self, number: int, issue: int, title: str, body: str) -> None:
        """Let a pull request close an issue."""
        key = {"repository_id": self.repository_id, "issue_repository": NAME, "issue_number": issue}
        with self.store.transaction() as tx:
            tx.upsert(Issue, [{**key, "title": title, "body": body, "state": "closed", "author": "bob"}])
            tx.upsert(ClosingReference, [{**key, "number": number}])

    def run(self, model: FakeModel | Gateway, **options: Any) -> TaskRun:
        """A run over the chains with a model, or with a whole gateway."""
        gateway = model if isinstance(model, Gateway) else gateway_of(model)
        chosen = TaskRunOptions(**options)
        least = chosen.least_worth
        screener = ChainScreener(gateway, ExcerptLimits(), least) if least is not None else None
        constructor = QueryConstructor(gateway, review=chosen.review, names=chosen.names)
        writer = TaskWriter(self.store, constructor, self.folder / "mirrors", screener)
        return TaskRun(self.store, gateway, writer, chosen)


def gateway_of(
    model: FakeModel, ledger: Ledger | None = None, *, budget: float | None = None, price: Price | None = None
) -> Gateway:
    """A gateway that does not wait between repeats."""
    route = Route(model, price or Price(input=1.0, output=2.0))
    return Gateway(ledger or MemoryLedger(), default=route, budget_usd=budget, pause=lambda tries: None)


def screening(count: int, **stage: Any) -> dict[str, Any]:
    """The screening of a chain of so many stages that is worth a task; of the last one it says `stage` instead."""
    good = {"aims": ["one thing"], "behaviour": True, "tellable": True, "tested": True, "why": "it is plain"}
    links = [{"relation": "needs", "why": "it calls what was added"} for _ in range(count - 1)]
    return {"stages": [*[good] * (count - 1), good | stage], "links": links, "worth": 4, "why": "it is short"}


def good_answer(request: Request) -> Any:
    """The replies of a well-behaved model."""
    if request.purpose == "plan":
        return PLAN
    if request.purpose == "review":
        return {"findings": []}
    if request.purpose == "screen":
        return screening(request.messages[-1].content.count("<<<patch "))
    if request.purpose == "overview":
        return {"overview": OVERVIEW}
    return {"query": QUERIES[int(request.subject.rpartition("/")[2])]}


@dataclass
class FakeModel(models.FakeModel):
    """The fake model, well-behaved by default."""

    answer: Answer = good_answer


def stored(world: TaskWorld, chain: str | None = None) -> dict[str, Any]:
    """The rows of a chain's task, without times."""
    with world.store.reading() as tx:
        draft = read_draft(tx, chain or world.chains[0])
    assert draft is not None
    return {
        "task": (draft.outcome, draft.reason, draft.overview, draft.attempts),
        "stages": [(stage.outcome, stage.attempts) for stage in draft.stages],
        "draft": draft,
    }


def failing(purpose: str, error: Exception, *, position: int | None = None) -> FakeModel:
    def answer(request: Request) -> Any:
        here = position is None or request.subject.endswith(f"/{position}")
        return error if request.purpose == purpose and here else good_answer(request)

    return FakeModel(answer)


def shop(
    folder: Path,
    *,
    patches: Mapping[int, Mapping[str | bytes, Content]] | None = None,
    messages: Mapping[int, str] | None = None,
) -> World:
    """The repository; `patches` add files to a pull request, `messages` replace its landing's message."""
    world = World(folder / "till.git")
    world.commit("main", START, "start")
    changes: dict[int, dict[str | bytes, Content]] = {
        1: {"src/till/prices.py": PRICES_1, "src/till/cart.py": CART_1, "tests/test_prices.py": TEST_ROUNDING},
        2: {
            "src/till/coupons.py": COUPONS,
            "src/till/cart.py": CART_1 + "\n    def redeem(self, ledger, code):\n        ledger.redeem_once(code)\n",
            "tests/test_coupons.py": TEST_COUPONS,
            "docs/coupons.md": "Coupons count once.\n",
            "poetry.lock": "# locked\n",
        },
        3: {
            "src/till/receipt.py": RECEIPT,
            "src/till/logo.bin": b"\0\1\2\3",
            "src/till/prices.py": None,
            "src/till/money.py": PRICES_1 + "\n# moved\n",
            "src/till/umlaut.py": b"# caf\xe9\n",
            "tests/test_receipt.py": TEST_RECEIPT,
            "tests/data/golden.bin": b"\0golden",
        },
    }
    landing_messages = {
        1: "Round as banks do (#1)\n\nHalves of a cent go to the even neighbour.",
        2: "Count coupons once (#2)\n\nFollow-up to #1.",
        3: "Print receipts (#3)\n\nFollow-up to #2.",
        **(messages or {}),
    }
    for number in CHAIN:
        head = world.propose(number, {**changes[number], **(patches or {}).get(number, {})})
        world.commit("main", {"unrelated": f"{number}\n"}, f"push {number}")
        world.squash("main", head, landing_messages[number])
    world.save()
    return world


def crowd_query(number: int) -> str:
    """A clean query for a pull request of `crowd`."""
    return prose(f"""
        Readers of the report in src/part{number}.py see stale figures, because the part keeps what it computed once
        for as long as the program runs. Let it forget old figures as soon as its inputs change, and leave the rest
        alone, so that every reader gets what is true at that moment without asking twice.
    """)


def crowd_answer(request: Request) -> Any:
    """The replies of a well-behaved model for `crowd`."""
    if request.purpose == "query":
        match = re.search(r"<<<files \w+\nsrc/part(\d+)\.py", request.messages[-1].content)
        assert match is not None
        return {"query": crowd_query(int(match[1]))}
    return good_answer(request)


def crowd(folder: Path, count: int) -> World:
    """A repository with many small, independent pull requests."""
    world = World(folder / "till.git")
    parts: dict[str | bytes, Content] = {
        f"src/part{n}.py": f"def part(x):\n    return x + {n}\n" for n in range(1, count + 1)
    }
    world.commit("main", parts, "start")
    for number in range(1, count + 1):
        name = f"forget_stale_figures_{number}"
        part = f"def part(x):\n    return {name}(x)\n\n\ndef {name}(x):\n    return x + {number}\n"
        test = f"from part{number} import {name}\n\n\ndef test():\n    assert {name}(1)\n"
        head = world.propose(number, {f"src/part{number}.py": part, f"tests/test_part{number}.py": test})
        world.squash("main", head, f"Forget stale figures (#{number})")
    world.save()
    return world


@contextmanager
def mined(folder: Path, world: World, chains: Sequence[Sequence[int]]) -> Iterator[TaskWorld]:
    """The world in a database, with these chains."""
    store = mined_store(folder, world, NAME)
    task_world = TaskWorld(folder, store, world)
    for numbers in chains:
        task_world.add_chain(numbers)
    try:
        yield task_world
    finally:
        store.close()
