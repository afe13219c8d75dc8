"""All pages of a view: their paths, and the bytes of each. The server looks up, the folder of files iterates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chains.chain_report import ListedChain
from prchain.core.errors import UsageError
from prchain.view import chains, facets, funnel, html, process_graphs, proofs, samples, shown, tasks
from prchain.view.comparisons import ComparePages
from prchain.view.diffs import whole_text
from prchain.view.exports import ExportPages
from prchain.view.labels import LabelPages, labelled_chain, neighbours, next_unlabelled
from prchain.view.money import MoneyPages
from prchain.view.options import ViewOptions
from prchain.view.places import (
    ASSETS,
    CHAINS,
    COMPARE,
    COUNTED,
    EXPORT,
    FUNNEL,
    LABELS,
    MONEY,
    TRAJECTORIES,
    chain_page,
    slug,
)
from prchain.view.texts import Cleaner
from prchain.view.trajectory_pages import TrajectoryPages
from prchain.view.trees import ChainTrees
from prchain.view.writing import PageWriter, after_page, key_of
from sql.changes import stamp_of
from sql.labels import write_label
from sql.store import Store
from sql.tables import ChainStage, Task, Validation

_T = TypeVar("_T")

ROWS = 100
"""Rows of a list on one page."""

_FILES = ("view.css", "view.js")


class PageGroup(NamedTuple):
    """A chain or a trajectory, whose pages are made of it alone."""

    kind: str
    """`CHAINS` or `TRAJECTORIES`."""
    id: str


class Site:
    """A database as pages. What lists are made of is read anew where the database has changed; with `once` never."""

    def __init__(
        self,
        store: Store,
        options: ViewOptions,
        mirrors: Path,
        data_dir: Path,
        secrets: tuple[str, ...] = (),
        *,
        once: bool = False,
        labeller: str | None = None,
    ) -> None:
        """`labeller` is who may mark chains; None: nobody, and no page has a form.

        Raises `UsageError` for a file that is no export.
        """
        self._store = store
        self._options = options
        self._folders = (mirrors, data_dir)
        self._once = once
        self._read: dict[str, tuple[str, Any]] = {}
        self._writer = PageWriter(Cleaner(secrets), forms=labeller is not None, exported=options.export is not None)
        self.trajectories = TrajectoryPages(store, options, self._folders, self._writer, self._shown, once=once)
        pages = (store, options.repository, self._shown, self._known)
        own_notes = options.reference or labeller is not None  # a form without its note would take the note back
        self._labels = LabelPages(store, options.repository, self._known, notes=own_notes)
        self._others: dict[str, ComparePages | MoneyPages | LabelPages | ExportPages] = {
            COMPARE: ComparePages(*pages),
            MONEY: MoneyPages(*pages),
            LABELS: self._labels,
        }
        if options.export is not None:
            self._others[EXPORT] = ExportPages(store, options.export, options, self._shown)
        self.labeller = labeller

    def _known(self, name: str, read: Callable[[], _T]) -> _T:
        """What was read under that name; anew where something was written to the database since, but with `once`."""
        stamp = "" if self._once else stamp_of(self._store)
        if name not in self._read or self._read[name][0] != stamp:
            self._read[name] = (stamp, read())
        known: _T = self._read[name][1]
        return known

    def _counted(self) -> list[facets.CountedRepository]:
        return self._known("counted", lambda: facets.counted_repositories(self._store, self._options.repository))

    def _facets(self) -> dict[str, facets.Facet]:
        """Folder to the count whose rows it lists."""
        return self._known("facets", lambda: {facet.folder: facet for facet in funnel.facets(self._counted())})

    def _all_chains(self) -> list[ListedChain]:
        return self._known("chains", lambda: chains.all_chains(self._store, self._options.repository))

    def _shown(self) -> frozenset[str] | None:
        def read() -> frozenset[str] | None:
            with self._store.reading() as tx:
                return shown.shown_ids(tx, self._options)

        return self._known("shown", read)

    def warm(self) -> None:
        """Make the first page, so that nobody waits for it: what it is made of is kept, and so are its templates.

        Raises `UsageError` for a repository that is not there and an outcome that nothing has, `StoreError`.
        """
        with self._store.reading() as tx:
            shown.check_outcome(tx, self._options.outcome)
        self._counted()
        self._funnel(FUNNEL)

    # ---- which pages there are

    def pages(self) -> Iterator[str]:
        """The paths of all pages, each once, the first page first. Raises `UsageError`, `StoreError`."""
        yield from self.shared_pages()
        for group in self.groups():
            yield from self.pages_of(group)

    def groups(self) -> list[PageGroup]:
        """The chains and trajectories, each of which has pages of its own."""
        chains = [PageGroup(CHAINS, chain) for chain in self._chain_ids().values()]
        return chains + [PageGroup(TRAJECTORIES, trajectory) for trajectory in self.trajectories.ids()]

    def pages_of(self, group: PageGroup) -> Iterator[str]:
        """The paths of a group's pages."""
        return self._chain_pages(group.id) if group.kind == CHAINS else self.trajectories.pages_of(group.id)

    def shared_pages(self) -> Iterator[str]:
        """The paths of all other pages, the first page first."""
        yield FUNNEL
        yield from (f"{ASSETS}/{name}" for name in _FILES)
        for facet in self._facets().values():
            yield from self._facet_pages(facet)
        yield from (f"{CHAINS}/{name}" for name in self._chain_lists())
        yield from self.trajectories.lists()
        for section in self._others.values():
            yield from section.pages()

    def _facet_pages(self, facet: facets.Facet) -> Iterator[str]:
        yield facet.page
        after: str | None = None
        while True:
            with self._store.reading() as tx:
                _, after = facets.page_rows(tx, facet, after, ROWS)
            if after is None:
                return
            yield f"{facet.folder}/{after_page(after)}"

    def _chain_ids(self) -> dict[str, str]:
        """Slug to id, of all chains."""

        def read() -> dict[str, str]:
            with self._store.reading() as tx:
                return {slug(chain): chain for chain in chains.chain_ids(tx, self._options.repository)}

        return self._known("chain ids", read)

    def _chain_lists(self) -> Iterator[str]:
        found = self._all_chains()
        yield FUNNEL
        yield from (after_page(found[place - 1].id) for place in range(ROWS, len(found), ROWS))

    def _chain_pages(self, chain: str) -> Iterator[str]:
        visible = self._shown()
        with self._store.reading() as tx:
            has_task, has_proof = tx.count(Task, chain_id=chain), tx.count(Validation, chain_id=chain)
            stages = [position for (position,) in tx.rows(ChainStage, "position", chain_id=chain)]
            compared = samples.samples_pages(tx, chain, visible)
            graphs = process_graphs.graphs_of(tx, chain)
        yield chain_page(chain)
        if has_task:
            yield chain_page(chain, "task.html")
        if has_proof:
            yield from (chain_page(chain, name) for name in ("proof.html", "tests.txt"))
        yield from (chain_page(chain, name) for name in compared)
        if self._options.reference:
            yield from (chain_page(chain, f"stage-{position}.txt") for position in stages)
            yield from (chain_page(chain, f"graph-{graph}.html") for graph, _, _ in graphs)

    # ---- the one thing that is written

    def label(self, path: str, label: str, note: str) -> bool:
        """Store what the labeller says of the chain of a form at `path`; an empty `label` takes it back. False where
        there is no such form.

        Raises `UsageError` for a label or a note that cannot be, `StoreError`.
        """
        name = labelled_chain(path)
        chain = None if name is None else self._chain_ids().get(name)
        if chain is None or self.labeller is None:
            return False
        with self._store.transaction() as tx:
            write_label(tx, chain, self.labeller, label or None, note)
        return True

    # ---- their bytes

    def render(self, path: str) -> bytes | None:
        """The bytes of a page; None where there is none. Raises `StoreError`."""
        first, _, rest = path.partition("/")
        readers: dict[str, Callable[[str, str], bytes | None]] = {
            CHAINS: self._of_chains,
            TRAJECTORIES: self.trajectories.render,
            COUNTED: self._of_facets,
            **dict.fromkeys(self._others, self._of_others),
        }
        try:
            if path == FUNNEL:
                return self._funnel(path)
            if first == ASSETS:
                return html.asset(rest) if rest in _FILES else None
            return readers[first](path, rest) if first in readers else None
        except UsageError:  # its row is gone since the page that leads here was made
            return None

    def _funnel(self, path: str) -> bytes:
        return self._writer.page("funnel", path, sections=funnel.sections(self._counted()))

    def _of_facets(self, path: str, rest: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        facet = self._facets().get(folder)
        if facet is None:
            return None
        after = key_of(name)
        if after is not None and after.startswith("x-"):
            after = self.trajectories.id_of(after) if facet.kind == "rollouts" else self._chain_ids().get(after)
        if name != FUNNEL and after is None:
            return None
        if after is not None and facets.is_numbered(facet) and not re.fullmatch("[0-9]{1,18}", after):
            return None
        visible = self._shown()
        with self._store.reading() as tx:
            rows, last = facets.page_rows(tx, facet, after, ROWS)
        rows_shown = facets.facet_rows(facet, rows, visible, graphs=self._options.reference)
        return self._writer.page(
            "counted", path, facet=facet, **rows_shown, next=None if last is None else after_page(last)
        )

    def _of_chains(self, path: str, rest: str) -> bytes | None:
        name, _, page = rest.partition("/")
        if not page:
            return self._chain_list(path, name)
        chain = self._chain_ids().get(name)
        if chain is None:
            return None
        options, folders = self._options, self._folders
        if page == FUNNEL:
            view = chains.chain_view(self._store, chain, options, *folders)
            with self._store.reading() as tx:
                graphs = process_graphs.graphs_of(tx, chain) if options.reference else []
            known = {"labels": self._labels.of_chain(chain), "labeller": self.labeller, "graphs": graphs}
            return self._writer.page("chain", path, view=view, **known, **self._around(chain))
        if (graph := re.fullmatch(r"graph-([A-Za-z0-9]{1,64})\.html", page)) and options.reference:
            drawn = process_graphs.process_graph_view(self._store, graph[1], chain)
            return None if drawn is None else self._writer.page("graph", path, view=drawn)
        if page == "task.html":
            return self._writer.page("task", path, view=tasks.task_view(self._store, chain, options, *folders))
        if page == "proof.html":
            return self._writer.page("proof", path, view=proofs.proof_view(self._store, chain, options))
        if page.startswith("compare"):
            found = samples.samples_view(self._store, chain, page, self._shown())
            return None if found is None else self._writer.page("samples", path, view=found)
        if page == "tests.txt":
            return self._writer.text(proofs.all_tests(self._store, chain))
        stage = re.fullmatch(r"stage-([1-9][0-9]{0,3})\.txt", page)
        return self._writer.text(self._reference(chain, int(stage[1]))) if stage and options.reference else None

    def _around(self, chain: str) -> dict[str, str | None]:
        """The pages that a chain's page leads on to."""
        listed = [it.id for it in self._all_chains()]
        before, after = neighbours(listed, chain)
        mine = None if self.labeller is None else self._labels.labelled_by(self.labeller)
        unlabelled = None if mine is None else next_unlabelled(listed, chain, mine)
        named = {"before": before, "after": after, "unlabelled": unlabelled}
        return {name: None if it is None else chain_page(it) for name, it in named.items()}

    def _of_others(self, path: str, rest: str) -> bytes | None:
        found = self._others[path.partition("/")[0]].view(rest)
        return None if found is None else self._writer.page(found[0], path, view=found[1])

    def _reference(self, chain: str, position: int) -> str | None:
        trees = ChainTrees(self._store, chain, *self._folders)
        references = trees.references()
        if references is None:
            return f"{trees.problem}\n"
        return whole_text(references[position - 1]) if position <= len(references) else None

    def _chain_list(self, path: str, name: str) -> bytes | None:
        found = self._all_chains()
        start, after = 0, key_of(name)
        if after is not None:
            start = next((place for place, row in enumerate(found, start=1) if slug(row.id) == after), 0)
        if name != FUNNEL and not start:
            return None
        labels = self._labels.by_chain()
        rows = [
            {"row": row, "page": chain_page(row.id), "labels": labels.get(row.id, ())}
            for row in found[start : start + ROWS]
        ]
        more = start + ROWS < len(found)
        following = after_page(found[start + ROWS - 1].id) if more else None
        return self._writer.page("chains", path, rows=rows, total=len(found), start=start, next=following)
