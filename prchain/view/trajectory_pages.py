"""The pages below ``trajectories``: their list, and for each its conversation, patch, windows and guidance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from prchain.view import curated, guided, patches, rollouts, samples, shown
from prchain.view.options import ViewOptions
from prchain.view.places import FUNNEL, TRAJECTORIES, chain_page, slug, trajectory_page
from prchain.view.writing import PageWriter, after_page, key_of
from sql.store import Store
from sql.tables import Chain, Repository, Trajectory
from trajectories.provenance import read_provenance, repository_of
from trajectories.rollouts.report import TrajectoryReport, trajectory_report

_ROWS = 100


class TrajectoryPages:
    """The pages; `shown` are the trajectories that the view shows, None for all."""

    def __init__(
        self,
        store: Store,
        options: ViewOptions,
        folders: tuple[Path, Path],
        writer: PageWriter,
        shown_ids: Callable[[], frozenset[str] | None],
        *,
        once: bool,
    ) -> None:
        """`folders` are those of mirrors and data. `once`: a trajectory is kept until another one is asked for."""
        self._store = store
        self._options = options
        self._folders = folders
        self._writer = writer
        self._shown = shown_ids
        self._once = once
        self._last: TrajectoryReport | None = None

    def lists(self) -> Iterator[str]:
        """The paths of the list."""
        yield from (f"{TRAJECTORIES}/{name}" for name in self._lists())

    def ids(self) -> list[str]:
        """The trajectories, in the order of the list."""
        with self._store.reading() as tx:
            return shown.every_id(tx, self._options)

    def pages_of(self, trajectory: str) -> Iterator[str]:
        """The paths of one trajectory."""
        names = [FUNNEL, "data.js", "patch.html", "conversation.txt", *self._more(trajectory)]
        names += [f"text-{ordinal}.txt" for ordinal in rollouts.long_messages(self._report(trajectory))]
        yield from (trajectory_page(trajectory, name) for name in names)

    def render(self, path: str, rest: str) -> bytes | None:
        """The bytes of a page; None where there is none."""
        name, _, page = rest.partition("/")
        if not page:
            return self._list(path, name)
        trajectory = self.id_of(name)
        visible = self._shown()
        if trajectory is None or (visible is not None and trajectory not in visible):
            return None
        options, report = self._options, self._report(trajectory)
        chain = report.chain_id and chain_page(report.chain_id)
        if page == FUNNEL:
            view = rollouts.trajectory_view(report, self._repository_of(trajectory), options)
            compared = None
            if report.chain_id:
                with self._store.reading() as tx:
                    compared = samples.samples_page_of(tx, report.chain_id, trajectory, visible)
            more = self._more(trajectory)
            return self._writer.page("trajectory", path, view=view, chain=chain, compared=compared, more=more)
        if page == "data.js":
            repository = self._repository_of(trajectory)
            return self._writer.script(rollouts.conversation(self._store, report, repository, options, *self._folders))
        if page == "patch.html":
            patch = patches.patch_view(self._store, report, options, *self._folders)
            return self._writer.page("patch", path, view=patch, chain=chain)
        if page == "conversation.txt":
            return self._writer.text(rollouts.conversation_text(report, options))
        if page in ("curation.html", "guidance.html"):
            return self._of_studies(path, page, report, chain)
        text = re.fullmatch(r"text-([0-9]{1,9})\.txt", page)
        return self._writer.text(rollouts.message_text(report, int(text[1]), options)) if text else None

    def _of_studies(self, path: str, page: str, report: TrajectoryReport, chain: str | None) -> bytes | None:
        if page not in self._more(report.id):
            return None
        if page == "guidance.html":
            guidance = guided.guidance_view(self._store, report, self._options)
            return self._writer.page("guidance", path, view=guidance, chain=chain)
        curation = curated.curated_view(self._store, report.id, self._options)
        return self._writer.page("curation", path, view=curation, chain=chain)

    def _more(self, trajectory: str) -> list[str]:
        """The pages of curation and guidance that it has. Process graphs are made of references."""
        with self._store.reading() as tx:
            own = self._options.reference and curated.is_curated(tx, trajectory)
            return [
                *(["curation.html"] if own else []),
                *(["guidance.html"] if guided.is_guided(tx, trajectory) else []),
            ]

    def _report(self, trajectory: str) -> TrajectoryReport:
        if self._once and self._last is not None and self._last.id == trajectory:
            return self._last
        self._last = trajectory_report(self._store, trajectory, messages=True)
        return self._last

    def _lists(self) -> Iterator[str]:
        yield FUNNEL
        after: str | None = None
        while True:
            with self._store.reading() as tx:
                rows, more = shown.list_page(tx, self._options, after, _ROWS)
            if not more:
                return
            after = rows[-1].id
            yield after_page(after)

    def _list(self, path: str, name: str) -> bytes | None:
        key = key_of(name)
        after = None if key is None else self.id_of(key)
        if name != FUNNEL and after is None:
            return None
        with self._store.reading() as tx:
            found, more = shown.list_page(tx, self._options, after, _ROWS)
        rows = [
            {"row": row, "page": trajectory_page(row.id), "chain": row.chain_id and chain_page(row.chain_id)}
            for row in found
        ]
        following = after_page(found[-1].id) if more else None
        return self._writer.page("trajectories", path, rows=rows, next=following)

    def id_of(self, name: str) -> str | None:
        """The trajectory whose slug is `name`."""
        with self._store.reading() as tx:
            if not name.startswith("x-"):
                return next((str(id_) for (id_,) in tx.rows(Trajectory, "id", id=name)), None)
            return next((str(id_) for (id_,) in tx.rows(Trajectory, "id") if slug(id_) == name), None)

    def _repository_of(self, trajectory: str) -> str:
        with self._store.reading() as tx:
            [(chain,)] = tx.rows(Trajectory, "chain_id", id=trajectory)
            if chain is None:
                origin = read_provenance(tx, trajectory)
                return repository_of(origin.repository if origin else None)
            [(repository,)] = tx.rows(Chain, "repository_id", id=chain)
            [(owner, name)] = tx.rows(Repository, "owner", "name", id=repository)
            return f"{owner}/{name}"
