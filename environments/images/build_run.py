"""Building the images of chosen chains' stages, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from environments.images.provide import Provider
from environments.stages import ChainStages, Stage, open_git, open_trees, read_chain
from prchain.core.console.progress import Progress
from prchain.core.errors import BuildFailed, GitError, NoRecipe
from prchain.core.settings import Settings
from sql.chosen import find_chain, selected_ids
from sql.store import Store

BUILT = "built"
CACHED = "cached"


@dataclass(frozen=True, slots=True)
class Build:
    """The result for one image, or for one stage that has none. `stages` counts the stages that it serves."""

    repository: str
    outcome: str
    image: str | None = None
    stages: int = 1
    seconds: float = 0.0
    repairs: int = 0
    notes: tuple[str, ...] = ()
    reason: str | None = None
    """Of a failure, with the log's decisive lines."""

    @property
    def ok(self) -> bool:
        """Whether the image is there."""
        return self.outcome in {BUILT, CACHED}


def build_images(
    store: Store,
    provider: Provider,
    settings: Settings,
    progress: Progress,
    *,
    strategy: str,
    repository: str | None = None,
    limit: int | None = None,
    chain: str | None = None,
    rebuild: bool = False,
) -> list[Build]:
    """Build what the stages of the chosen chains need, best chain first; returns the results in that order.

    `chain` is the beginning of the id of one chain, whatever chose it; other choices are then ignored. Raises
    what is not one build's fault: `SandboxError` and `ImageError` for the engine, `LlmError`, `RecipeError`,
    `UsageError` for a repository that was not mined, or a chain that is not there.
    """
    with store.reading() as tx:
        chain_ids = [find_chain(tx, chain)] if chain is not None else selected_ids(tx, strategy, repository, limit)
        chains = [read_chain(tx, chain_id) for chain_id in chain_ids]
    task = progress.task("stages", sum(len(chain.stages) for chain in chains), cost=lambda: _cost(provider))
    builds: dict[tuple[str, ...], Build] = {}
    for chain_stages in chains:
        for stage in chain_stages.stages:
            unit = f"{chain_stages.repository}#{stage.number}"
            task.tell(unit, "image")
            build = _build(provider, settings, chain_stages, stage, rebuild)
            task.tell(unit, "")
            key = (build.repository, build.image or build.reason or "")
            if key in builds:
                build = replace(builds[key], stages=builds[key].stages + 1)
            builds[key] = build
            task.advance()
    task.done(f"{sum(build.ok for build in builds.values()):,} of {len(builds):,} images are there")
    return list(builds.values())


def _cost(provider: Provider) -> str | None:
    spending = provider.spending()
    return spending.words_so_far() if spending is not None else None


def _build(provider: Provider, settings: Settings, chain: ChainStages, stage: Stage, rebuild: bool) -> Build:
    try:
        git = open_git(chain, settings.mirrors_dir)
        trees = open_trees(chain, git, settings.data_dir)
        provided = provider.provide(chain.repository, trees, git, stage, rebuild=rebuild)
    except BuildFailed as error:
        return Build(chain.repository, error.name, reason=error.words)
    except (NoRecipe, GitError) as error:
        return Build(chain.repository, error.name, reason=str(error))
    return Build(
        chain.repository,
        CACHED if provided.cached else BUILT,
        provided.image,
        seconds=provided.seconds,
        repairs=provided.repairs,
        notes=provided.notes,
    )
