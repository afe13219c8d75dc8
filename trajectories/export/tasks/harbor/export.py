"""Writing chains as Harbor's task folders: one of each proved stage, and one of each chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal
from uuid import NAMESPACE_URL, uuid5

from chains.tasks.record import StageRecord, TaskRecord
from environments.backends import BACKENDS
from environments.images.provide import Provider
from prchain.core.errors import PrchainError, UsageError
from prchain.core.settings import Settings
from prchain.core.swebench.instances import instance_id
from sql.store import Store
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.folder import (
    AgentUser,
    HarborTask,
    Network,
    digest,
    files_of,
)
from trajectories.export.tasks.harbor.image import ImageFacts
from trajectories.export.tasks.harbor.material import ChainMaterial
from trajectories.export.tasks.harbor.places import TaskFolders, TaskPlace, TaskRows
from trajectories.export.write import Files
from trajectories.task import StageTask, read_task

Steps = Literal["both", "single", "chain"]
"""Which folders: of stages, of chains, or of both."""

SINGLE, CHAIN = "stages", "chains"
"""The data sets, each a folder below the one that is named."""

TABLE = ".parquet"
"""The end of a file's name that takes them as rows."""

GRADER = "trajectories.export.tasks.harbor.inside.grade"
_ORGANISATION = "prchain"


@dataclass(frozen=True, slots=True)
class HarborOptions:
    """What decides the folders besides the tasks. `registry` is a prefix under which images are pushed."""

    steps: Steps = "both"
    network: Network = "declared"
    registry: str | None = None
    min_reward: float | None = 1.0
    agent_user: AgentUser = "image"


@dataclass(frozen=True, slots=True)
class Omitted:
    """A stage, or a chain (`position` 0), without a folder, and why."""

    chain_id: str
    position: int
    outcome: str
    reason: str


@dataclass
class HarborReport:
    """What was written."""

    digests: dict[str, dict[str, str]] = field(default_factory=lambda: {SINGLE: {}, CHAIN: {}})
    """By data set and task."""
    omitted: list[Omitted] = field(default_factory=list)
    images: set[str] = field(default_factory=set)

    @property
    def counts(self) -> dict[str, int]:
        """Folders by data set."""
        return {name: len(found) for name, found in self.digests.items()}


class HarborExport:
    """The folders of one export, in a `place`; `backend` is Docker's, connected."""

    material_type: ClassVar[type[ChainMaterial]] = ChainMaterial

    def __init__(
        self,
        store: Store,
        settings: Settings,
        provider: Provider,
        backend: Any,
        place: TaskPlace,
        options: HarborOptions,
    ) -> None:
        self._store, self._settings = store, settings
        self._provider, self._backend = provider, backend
        self._place, self._options = place, options
        self.report = HarborReport()

    def write(self, record: TaskRecord) -> None:
        """Write the folders of a chain. What has none, and why, is in the report; a machine's failure is raised."""
        with self._store.reading() as tx:
            task = read_task(tx, record.chain_id, record.interface_mode)
        material = self.material_type(
            task,
            self._settings.mirrors_dir,
            self._settings.data_dir,
            self._provider,
            self._backend,
            as_root=self._options.agent_user == "declared",
        )
        if self._options.steps != "single":
            with self.named(record.chain_id, 0):
                self._write_chain(material, record)
        if self._options.steps != "chain":
            for stage, described in zip(task.stages, record.stages, strict=True):
                with self.named(record.chain_id, stage.position):
                    self._write_single(material, record, stage, described)

    @contextmanager
    def named(self, chain_id: str, position: int) -> Iterator[None]:
        """What is raised inside is why the stage, or the chain, has no folder; but for a machine's failure."""
        try:
            yield
        except PrchainError as error:
            if error.infrastructure is not None:
                raise
            self.report.omitted.append(Omitted(chain_id, position, error.name, str(error)))

    def _write_single(
        self, material: ChainMaterial, record: TaskRecord, stage: StageTask, described: StageRecord
    ) -> None:
        name = _task_name(record, instance_id(record.repository.name, record.chain_id, stage.position))
        canary = _canary(name)
        text = _instruction(material.workplace(stage).provided.plan.workdir, stage.query)
        step = material.step(stage, stage, name="", instruction=text, canary=canary)
        task = HarborTask(
            name=name,
            description=f"{record.repository.name}, pull request #{described.number}: {described.title}",
            keywords=_keywords(record),
            metadata={**_metadata(record, [described], canary), "position": stage.position},
            image=self._image(material.image(stage).name),
            workdir=material.workplace(stage).provided.plan.workdir,
            network=self._options.network,
            steps=[step],
            grader=bundle(GRADER),
            seconds=material.workplace(stage).test_timeout,
            canary=canary,
            agent=self._agent(material.image(stage).facts),
        )
        self._write_folder(SINGLE, task)

    def _write_chain(self, material: ChainMaterial, record: TaskRecord) -> None:
        name = _task_name(record, instance_id(record.repository.name, record.chain_id, 0).removesuffix("__s0"))
        canary = _canary(name)
        first = material.task.stages[0]
        image, workdir = material.shared_image, material.workplace(first).provided.plan.workdir
        steps = []
        for stage in material.task.stages:
            texts = [material.task.overview, stage.query] if stage is first else [stage.query]
            text = _instruction(workdir, *texts)
            step = material.step(stage, first, name=str(stage.position), instruction=text, canary=canary)
            steps.append(material.with_setup(step, stage, canary))
        self._write_folder(
            CHAIN,
            HarborTask(
                name=name,
                description=f"{record.repository.name}, pull requests "
                + ", ".join(f"#{stage.number}" for stage in record.stages),
                keywords=_keywords(record),
                metadata=_metadata(record, record.stages, canary),
                image=self._image(image.name),
                workdir=workdir,
                network=self._options.network,
                steps=steps,
                grader=bundle(GRADER),
                seconds=material.workplace(first).test_timeout,
                min_reward=self._options.min_reward,
                canary=canary,
                agent=self._agent(image.stages[0]),
            ),
        )

    def _image(self, name: str) -> str:
        """The name by which a task finds the image: the local tag, or one in a registry, to which it is pushed."""
        self.report.images.add(name)
        if self._options.registry is None:
            return name
        return push(self._backend.client, name, self._options.registry)

    def _agent(self, facts: ImageFacts) -> str | None:
        return facts.user if self._options.agent_user == "declared" else None

    def _write_folder(self, data_set: str, task: HarborTask) -> None:
        files = files_of(task)
        self._place.write(data_set, task.name.partition("/")[2], files)
        self.report.digests[data_set][task.name] = digest(files)

    def finish(self) -> None:
        """Write the lists of what was written."""
        for data_set, digests in self.report.digests.items():
            if digests:
                what = "one stage each" if data_set == SINGLE else "one chain of pull requests each"
                words = f"Tasks from real pull requests, {what}"
                self._place.finish(data_set, f"{_ORGANISATION}/{data_set}", words, digests)


def push(client: Any, image: str, registry: str) -> str:
    """Push an image under a prefix; returns its name there. Raises `UsageError` where the registry refuses."""
    from environments.sandboxes.engine import engine_failures  # noqa: PLC0415  for who pushes alone

    name = f"{registry.rstrip('/')}/{image}"
    repository, _, tag = name.rpartition(":")
    with engine_failures():
        client.images.get(image).tag(repository, tag)
        lines = list(client.images.push(repository, tag, stream=True, decode=True))
    errors = [str(line["error"]) for line in lines if "error" in line]
    if errors:
        raise UsageError(f"{name} cannot be pushed: {errors[0][:200]}")
    return name


@contextmanager
def open_export(
    store: Store, settings: Settings, out: Path, options: HarborOptions, *, force: bool = False
) -> Iterator[HarborExport]:
    """An export with an engine, into a folder or a file whose name ends in .parquet, which `force` replaces. Raises
    `EngineUnavailable`, and `UsageError` for a file of both data sets."""
    with ExitStack() as stack:
        place: TaskPlace = TaskFolders(out)
        files: Files | None = None
        if out.suffix == TABLE:
            if options.steps == "both":
                raise UsageError("a file holds one data set: choose --steps chain or --steps single")
            files = stack.enter_context(Files(force=force))
            place = TaskRows(files.open(out))
            stack.callback(place.close)
        backend = stack.enter_context(BACKENDS["docker"].of(settings).connected())
        provider = stack.enter_context(closing(Provider(settings, store=store)))
        export = HarborExport(store, settings, provider, backend, place, options)
        yield export
        export.finish()
        if files is not None and not any(export.report.counts.values()):
            files.discard()


def write_tasks(export: HarborExport, tasks: Iterator[TaskRecord], tell: Callable[[str], None]) -> HarborReport:
    """Write the folders of all tasks, one after the other: nothing of a chain is kept once it is written."""
    for record in tasks:
        tell(record.chain_id)
        with export.named(record.chain_id, 0):
            export.write(record)
    return export.report


def _instruction(workdir: str, *texts: str) -> str:
    place = f"The repository is in {workdir}. Nobody but tests that you cannot see will judge what you leave there."
    return "\n\n".join([text.strip() for text in texts] + [place]) + "\n"


def _task_name(record: TaskRecord, name: str) -> str:
    return f"{_ORGANISATION}/{name.lstrip('.-_').replace('..', '.')}"


def _canary(name: str) -> str:
    """A text that no other task has."""
    return f"prchain canary {uuid5(NAMESPACE_URL, name)}"


def _keywords(record: TaskRecord) -> list[str]:
    return [word for word in ("pull-requests", record.language, "benchmark" if record.benchmark else None) if word]


def _metadata(record: TaskRecord, stages: Sequence[StageRecord], canary: str) -> dict[str, Any]:
    """What stands in ``[metadata]``; TOML knows no null."""
    evidence = [
        {"to": stage.number, "relation": stage.evidence.relation or "", "confidence": stage.evidence.confidence or 0.0}
        for stage in record.stages
        if stage.evidence is not None
    ]
    proofs = [
        {
            "pull_request": stage.number,
            "f2p": len(stage.tests.f2p),
            "p2p": len(stage.tests.p2p),
            "worth": stage.proof.worth if stage.proof else "not_measured",
        }
        for stage in stages
        if stage.tests is not None
    ]
    return {
        "chain": record.chain_id,
        "stages": len(record.stages),
        "repository": record.repository.name,
        "pull_requests": [{"number": it.number, "url": it.url, "base": it.base_sha} for it in stages],
        "licence": record.licence or "unknown",
        "language": record.language or "unknown",
        "strategy": record.strategy,
        "evidence": evidence,
        "proof": proofs,
        "judge": "none: tests alone decide",
        "benchmark": record.benchmark,
        "canary": canary,
    }
