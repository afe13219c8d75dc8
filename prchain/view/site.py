"""All pages of a view: their paths, and the bytes of each. The server looks up, the folder of files iterates."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from chains.chain_report import ListedChain
from prchain.core.errors import UsageError
from prchain.view import chains, facets, funnel, html, patches, proofs, rollouts, samples, shown, tasks
from prchain.view.comparisons import ComparePages
from prchain.view.diffs import whole_text
from prchain.view.exports import ExportPages
from prchain.view.labels import LabelPages, labelled_chain
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
    trajectory_page,
)
from prchain.view.texts import Cleaner
from prchain.view.trees import ChainTrees
from sql.labels import write_label
from sql.store import Store
from sql.tables import Chain, ChainStage, Repository, Task, Trajectory, Validation
from trajectories.provenance import read_provenance, repository_of
from trajectories.rollouts.report import TrajectoryReport, trajectory_report

_T = TypeVar("_T")

ROWS = 100
"""Rows of a list on one page."""

_FILES = ("view.css", "view.js")


class Site:
    """A database as pages. What lists are made of is read anew for each page, or, with `once`, once for all."""

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
        """`labeller` is who may mark chains; None: nobody, and no page has a form. Raises `UsageError` for an export that is
        none."""
        self._store = store
        self._options = options
        self._folders = (mirrors, data_dir)
        self._clean = Cleaner(secrets)
        self._once = once
        self._read: dict[str, Any] = {}
        self._last: TrajectoryReport | None = None
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
        if not self._once:
            return read()
        if name not in self._read:
            self._read[name] = read()
        known: _T = self._read[name]
        return known

    def _report(self, trajectory: str) -> TrajectoryReport:
        """A trajectory with its messages; with `once` it is kept until another one is asked for."""
        if self._once and self._last is not None and self._last.id == trajectory:
            return self._last
        self._last = trajectory_report(self._store, trajectory, messages=True)
        return self._last

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

    # ---- which pages there are

    def pages(self) -> Iterator[str]:
        """The paths of all pages, each once, the first page first. Raises `UsageError`, `StoreError`."""
        yield FUNNEL
        yield from (f"{ASSETS}/{name}" for name in _FILES)
        for facet in self._facets().values():
            yield from self._facet_pages(facet)
        yield from (f"{CHAINS}/{name}" for name in self._chain_lists())
        for chain in self._chain_ids().values():
            yield from self._chain_pages(chain)
        yield from (f"{TRAJECTORIES}/{name}" for name in self._trajectory_lists())
        with self._store.reading() as tx:
            ids = shown.every_id(tx, self._options)
        for trajectory in ids:
            yield from self._trajectory_pages(trajectory)
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
            yield f"{facet.folder}/{_after(after)}"

    def _chain_ids(self) -> dict[str, str]:
        """Slug to id, of all chains."""

        def read() -> dict[str, str]:
            with self._store.reading() as tx:
                return {slug(chain): chain for chain in chains.chain_ids(tx, self._options.repository)}

        return self._known("chain ids", read)

    def _chain_lists(self) -> Iterator[str]:
        found = self._all_chains()
        yield FUNNEL
        yield from (_after(found[place - 1].id) for place in range(ROWS, len(found), ROWS))

    def _chain_pages(self, chain: str) -> Iterator[str]:
        visible = self._shown()
        with self._store.reading() as tx:
            has_task, has_proof = tx.count(Task, chain_id=chain), tx.count(Validation, chain_id=chain)
            stages = [position for (position,) in tx.rows(ChainStage, "position", chain_id=chain)]
            compared = samples.samples_pages(tx, chain, visible)
        yield chain_page(chain)
        if has_task:
            yield chain_page(chain, "task.html")
        if has_proof:
            yield from (chain_page(chain, name) for name in ("proof.html", "tests.txt"))
        yield from (chain_page(chain, name) for name in compared)
        if self._options.reference:
            yield from (chain_page(chain, f"stage-{position}.txt") for position in stages)

    def _trajectory_lists(self) -> Iterator[str]:
        yield FUNNEL
        after: str | None = None
        while True:
            with self._store.reading() as tx:
                rows, more = shown.list_page(tx, self._options, after, ROWS)
            if not more:
                return
            after = rows[-1].id
            yield _after(after)

    def _trajectory_pages(self, trajectory: str) -> Iterator[str]:
        names = [FUNNEL, "data.js", "patch.html", "conversation.txt"]
        names += [f"text-{ordinal}.txt" for ordinal in rollouts.long_messages(self._report(trajectory))]
        yield from (trajectory_page(trajectory, name) for name in names)

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
            TRAJECTORIES: self._of_trajectories,
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

    def _page(self, template: str, path: str, **values: Any) -> bytes:
        clean = {name: self._clean.value(value) for name, value in values.items()}
        return html.page(template, path, clean, forms=self.labeller is not None, exported=EXPORT in self._others)

    def _text(self, text: str | None) -> bytes | None:
        return None if text is None else self._clean.text(text).encode("utf-8", "replace")

    def _funnel(self, path: str) -> bytes:
        return self._page("funnel", path, sections=funnel.sections(self._counted()))

    def _of_facets(self, path: str, rest: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        facet = self._facets().get(folder)
        if facet is None:
            return None
        after = _key(name)
        if after is not None and after.startswith("x-"):
            after = self._id_of(after, Trajectory if facet.kind == "rollouts" else Chain)
        if name != FUNNEL and after is None:
            return None
        if after is not None and facets.is_numbered(facet) and not re.fullmatch("[0-9]{1,18}", after):
            return None
        visible = self._shown()
        with self._store.reading() as tx:
            rows, last = facets.page_rows(tx, facet, after, ROWS)
        rows_shown = facet_rows(facet, rows, visible)
        return self._page("counted", path, facet=facet, **rows_shown, next=None if last is None else _after(last))

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
            return self._page("chain", path, view=view, labels=self._labels.of_chain(chain), labeller=self.labeller)
        if page == "task.html":
            return self._page("task", path, view=tasks.task_view(self._store, chain, options, *folders))
        if page == "proof.html":
            return self._page("proof", path, view=proofs.proof_view(self._store, chain, options))
        if page.startswith("compare"):
            found = samples.samples_view(self._store, chain, page, self._shown())
            return None if found is None else self._page("samples", path, view=found)
        if page == "tests.txt":
            return self._text(proofs.all_tests(self._store, chain))
        stage = re.fullmatch(r"stage-([1-9][0-9]{0,3})\.txt", page)
        return self._text(self._reference(chain, int(stage[1]))) if stage and options.reference else None

    def _of_others(self, path: str, rest: str) -> bytes | None:
        found = self._others[path.partition("/")[0]].view(rest)
        return None if found is None else self._page(found[0], path, view=found[1])

    def _reference(self, chain: str, position: int) -> str | None:
        trees = ChainTrees(self._store, chain, *self._folders)
        references = trees.references()
        if references is None:
            return f"{trees.problem}\n"
        return whole_text(references[position - 1]) if position <= len(references) else None

    def _chain_list(self, path: str, name: str) -> bytes | None:
        found = self._all_chains()
        start, after = 0, _key(name)
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
        following = _after(found[start + ROWS - 1].id) if more else None
        return self._page("chains", path, rows=rows, total=len(found), start=start, next=following)

    def _of_trajectories(self, path: str, rest: str) -> bytes | None:
        name, _, page = rest.partition("/")
        if not page:
            return self._trajectory_list(path, name)
        trajectory = self._id_of(name, Trajectory)
        visible = self._shown()
        if trajectory is None or (visible is not None and trajectory not in visible):
            return None
        options, folders, repository = self._options, self._folders, self._repository_of(trajectory)
        report = self._report(trajectory)
        if page == FUNNEL:
            view = rollouts.trajectory_view(report, repository, options)
            chain, compared = view.report.chain_id and chain_page(view.report.chain_id), None
            if view.report.chain_id:
                with self._store.reading() as tx:
                    compared = samples.samples_page_of(tx, view.report.chain_id, trajectory, visible)
            return self._page("trajectory", path, view=view, chain=chain, compared=compared)
        if page == "data.js":
            data = rollouts.conversation(self._store, report, repository, options, *folders)
            return _script(self._clean.value(data))
        if page == "patch.html":
            patch = patches.patch_view(self._store, report, options, *folders)
            chain = patch.trajectory["chain_id"] and chain_page(patch.trajectory["chain_id"])
            return self._page("patch", path, view=patch, chain=chain)
        if page == "conversation.txt":
            return self._text(rollouts.conversation_text(report, options))
        text = re.fullmatch(r"text-([0-9]{1,9})\.txt", page)
        return self._text(rollouts.message_text(report, int(text[1]), options)) if text else None

    def _trajectory_list(self, path: str, name: str) -> bytes | None:
        key = _key(name)
        after = None if key is None else self._id_of(key, Trajectory)
        if name != FUNNEL and after is None:
            return None
        with self._store.reading() as tx:
            found, more = shown.list_page(tx, self._options, after, ROWS)
        rows = [
            {"row": row, "page": trajectory_page(row.id), "chain": row.chain_id and chain_page(row.chain_id)}
            for row in found
        ]
        return self._page("trajectories", path, rows=rows, next=_after(found[-1].id) if more else None)

    def _id_of(self, name: str, table: type[Chain] | type[Trajectory]) -> str | None:
        """The id whose slug is `name`."""
        with self._store.reading() as tx:
            if not name.startswith("x-"):
                return next((str(id_) for (id_,) in tx.rows(table, "id", id=name)), None)
            return next((str(id_) for (id_,) in tx.rows(table, "id") if slug(id_) == name), None)

    def _repository_of(self, trajectory: str) -> str:
        with self._store.reading() as tx:
            [(chain,)] = tx.rows(Trajectory, "chain_id", id=trajectory)
            if chain is None:
                origin = read_provenance(tx, trajectory)
                return repository_of(origin.repository if origin else None)
            [(repository,)] = tx.rows(Chain, "repository_id", id=chain)
            [(owner, name)] = tx.rows(Repository, "owner", "name", id=repository)
            return f"{owner}/{name}"


def facet_rows(facet: facets.Facet, rows: list[Any], visible: frozenset[str] | None) -> dict[str, Any]:
    """The rows of a count as the page shows them: each cell a text, and where it leads. Pure."""
    listing = facets.LISTS[facet.kind]

    def link(column: str, value: Any) -> str | None:
        if value is None:
            return None
        if column == "chain":
            return chain_page(value)
        if column == "trajectory" and (visible is None or value in visible):
            return trajectory_page(value)
        return None

    cells = [[(row[column], link(column, row[column])) for column in listing.columns] for row in rows]
    return {"heading": listing.heading, "columns": listing.columns, "rows": cells}


def _after(key: str) -> str:
    return f"after-{slug(key)}.html"


def _key(name: str) -> str | None:
    found = re.fullmatch(r"after-([A-Za-z0-9_-]+)\.html", name)
    return found[1] if found else None


def _script(data: Any) -> bytes:
    """Data as a script: JSON, packed, as a text that needs no escapes. The same data gives the same bytes."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    packed = base64.b64encode(gzip.compress(text, 6, mtime=0))
    return b'prchainData("' + packed + b'");\n'
