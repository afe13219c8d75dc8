"""What a stage needs before a sandbox can be started: its plan, and the image of its dependencies.

One `Provider` serves a whole run and all its threads: one thread builds an image while the others wait, those of other
runs on the database, too. An image that failed to build fails at once for every later stage that needs it. The next run
tries again.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import and_, func, select

from environments.images.buildlogs import plain_log
from environments.images.buildtree import GitTree
from environments.images.debian_wishes import files_of_ci
from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.images import Image, build_image, find_image
from environments.images.interpreters.offered import Interpreters
from environments.images.neighbours import Neighbour, next_best, serving
from environments.images.node_project import Nodes
from environments.images.plans import Pythons, make_plan, version_of_tags
from environments.images.published.images import published_plan
from environments.images.published.offers import PublishedImages
from environments.images.published.said import Published, is_outdated, is_published
from environments.images.recipes import Recipe, named_recipe
from environments.images.repair import changed_keys, repair, store_recipe
from environments.images.stage_image import BUILT, StageBase, StageImage
from environments.images.tags import tag_at
from environments.images.tried_again import hangs_on
from environments.images.wanted_python import OLDEST, can_come, era_of
from environments.sandboxes.engine import LONG, EngineDiskFull, connect
from prchain.core.errors import BuildFailed, ImageMissing, IndexUnreachable
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.ledger import Spending
from prchain.core.settings import Settings
from sql.lock import wait_for_lock
from sql.outcomes import PROVED
from sql.store import Store
from sql.tables import BuiltImage, ChainStage, StageTests, Validation

_MUCH_LATER = 90
"""Where a stage and its image's packages are more days apart, a note says so."""


@dataclass(frozen=True, slots=True)
class _ImageRequest:
    """A request for one image."""

    plan: ImagePlan
    tree: GitTree
    landed_at: datetime
    replan: Callable[[Recipe | None], ImagePlan]
    """The plan with another recipe; None: with the one that fits now."""


class Provider:
    """Makes plans and images for stages; safe for threads.

    Without `images` it makes plans alone. `engine` is a `docker.DockerClient`, made when it is first needed. With a
    `gateway`, a recipe that does not build is repaired by a model (`environments.images.repair`), and the one that
    worked is stored among the user's. With a `store`, every build that ends leaves a row of `BuiltImage`; one that
    fails leaves its log in `build_logs`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        images: bool = True,
        engine: Any = None,
        gateway: Gateway | None = None,
        store: Store | None = None,
        interpreters: Interpreters | None = None,
    ) -> None:
        self._settings = settings
        self._images = images
        self._engine = engine
        self._own_engine = engine is None
        self._gateway = gateway
        self._store = store
        self._logs = build_logs(settings)
        self._build_settings = BuildSettings.of(settings)
        # Whoever brings an engine of its own says what it offers.
        if engine is None and images:
            interpreters = Interpreters(self._build_settings, self._one_run_at_a_time)
        self._interpreters = interpreters
        self._guard = threading.Lock()
        self._building: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._repairing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._failed: dict[str, BuildFailed] = {}
        self._published = None if store is None else PublishedImages(store, self._one_run_at_a_time, self._record)
        self.renew = False
        """Whether stages that were proved in an image get what is chosen today."""
        self._built: dict[str, int] = {}
        """Images that this run built, with the changes that their recipes needed."""

    @property
    def recipes_dir(self) -> Path:
        """Where the user's recipes lie, and where a repaired one is stored."""
        return self._settings.environments_recipes_dir or self._settings.data_dir / "recipes"

    def engine(self) -> Any:
        """The client of the engine; raises `EngineUnavailable`."""
        with self._guard:
            if self._engine is None:
                self._engine = connect(self._settings.environments_engine, timeout=LONG)
            return self._engine

    def spending(self) -> Spending | None:
        """What repairs have cost so far; None where nothing is repaired."""
        return self._gateway.spending() if self._gateway is not None else None

    def close(self) -> None:
        """Close the engine's client, where it was made here."""
        with self._guard:
            if self._own_engine and self._engine is not None:
                self._engine.close()
                self._engine = None

    def provide(
        self,
        repository: str,
        trees: TreeStore,
        git: GitRepository,
        stage: StageBase,
        *,
        rebuild: bool = False,
        own: bool = False,
    ) -> StageImage:
        """The plan for the tree that a stage of `repository` (``owner/name``) starts from, and its image.

        Dependencies are resolved as of the day the stage landed, where the index tells dates. Where the image is not
        there, that of a neighbour is tried first (`environments.images.neighbours`), and at last where it does not
        build; `own`: it is not. `rebuild` builds an image that exists again, once a run. An imported stage works in its
        publisher's image, where that can be had, and ours is built for it where not; one that was proved stays in the
        image of its proof. Raises `NoRecipe`;
        `BuildFailed`, the same one whenever it is asked for again; `IndexUnreachable`;
        `RecipeError` for a user's recipe; what an engine raises (`ImageMissing`, `EngineUnavailable`, `ImageError`);
        `LlmError` where no repair can be asked for.
        """
        tree, landed, planned = self._planner(repository, trees, git, stage)
        said = self._said_of(stage)
        if not self._images:
            if said is not None and said.has_own_tests:
                raise ImageMissing(f"its tests run in {said.image} alone, and this backend has no images")
            return StageImage(planned(), None)
        kept = None if rebuild else self._proved_image(stage)
        words = ""
        if self._published is not None and said is not None and (kept is None or is_published(kept)):
            plan_of = partial(planned, to_build=False)
            found = self._published.provide(self.engine(), repository, said, plan_of, kept=kept, rebuild=rebuild)
            if isinstance(found, StageImage):
                return found
            if said.has_own_tests:
                raise ImageMissing(f"its tests run in {said.image} alone: {found}")
            words = f"in an image of ours: {found}"
        plan = planned()
        if kept is not None and not is_published(kept):
            plan = replace(plan, image=kept)
            return StageImage(plan, kept, cached=True, publisher=words)
        order = _ImageRequest(plan, tree, landed, planned)
        alone = own or rebuild
        if not alone and (served := self._of_neighbour(order)):
            return replace(served, publisher=words)
        try:
            image = self._image(order, rebuild=rebuild)
        except BuildFailed as failure:
            if not alone and (served := self._next_best(order)):
                image = served
            elif self._gateway is None:
                raise
            else:
                image = self._repaired(order, failure, self._gateway)
        return replace(image, publisher=words)

    @property
    def repairs(self) -> bool:
        """Whether a model mends recipes."""
        return self._gateway is not None

    def repaired(
        self,
        repository: str,
        trees: TreeStore,
        git: GitRepository,
        stage: StageBase,
        failure: BuildFailed,
        proves: Callable[[StageImage], None],
    ) -> StageImage:
        """The image of a recipe that a model changed, in which `proves` finds nothing wrong: else it raises
        `BuildFailed`, as `failure` is one, with what the stage's tests say. The recipe is stored among the user's.
        Raises the last `BuildFailed`, and what `provide` raises.
        """
        if self._gateway is None:
            raise failure
        tree, landed, planned = self._planner(repository, trees, git, stage)
        return self._repaired(_ImageRequest(planned(), tree, landed, planned), failure, self._gateway, proves)

    def _planner(
        self, repository: str, trees: TreeStore, git: GitRepository, stage: StageBase
    ) -> tuple[GitTree, datetime, Callable[..., ImagePlan]]:
        """The tree that a stage starts from, when it landed, and what makes plans for it."""
        tree = GitTree(trees, stage.base)
        tag = tag_at(git, stage.base)
        landed = datetime.fromisoformat(stage.landed_at)
        landed = landed if landed.tzinfo else landed.replace(tzinfo=UTC)

        def planned(recipe: Recipe | None = None, *, to_build: bool = True) -> ImagePlan:
            known = self._interpreters if to_build else None
            return make_plan(
                repository,
                tree,
                base_image=self._settings.environments_base_image,
                version=version_of_tags([tag]),
                tag=tag,
                recipe=recipe,
                folder=self._users_recipes(),
                pythons=self._pythons(landed) if to_build else None,
                nodes=Nodes(landed, known.node_refused) if known else None,
                go_refused=known.go_refused if known else None,
                landed=GitTree(trees, stage.landed) if stage.landed and to_build and self._images else None,
            )

        return tree, landed, planned

    def runner(self, repository: str, trees: TreeStore, stage: StageBase) -> str:
        """The runner of a stage's tests, for which nothing is built and no engine asked; of an imported stage whose
        publisher names an image, the one in that. Raises `NoRecipe`, `RecipeError`."""
        tree = GitTree(trees, stage.base)
        base = self._settings.environments_base_image
        ours = partial(make_plan, repository, tree, base_image=base, folder=self._users_recipes())
        said = self._said_of(stage)
        if said is not None and not self._images and not said.has_own_tests:
            said = None
        return ours().runner if said is None else published_plan(repository, said, "", ours)[0].runner

    def _said_of(self, stage: StageBase) -> Published | None:
        return self._published.said_of(stage) if self._published is not None else None

    def hangs_on(self, repository: str, recipe: str) -> str:
        """What a build with a recipe hangs on beside its tree (`environments.images.tried_again`)."""
        return hangs_on(self._build_settings, self.recipes_dir, repository, recipe)

    def _users_recipes(self) -> Path | None:
        folder = self.recipes_dir
        return folder if self._settings.environments_recipes_dir or folder.is_dir() else None

    def _pythons(self, landed: datetime) -> Pythons | None:
        """What there is to choose from; None where images are not made here."""
        if self._interpreters is None or not self._images:
            return None
        engine = self.engine()
        return Pythons(frozenset(self._interpreters.offers(engine)), self._interpreters.default(engine), landed)

    def _proved_image(self, stage: StageBase) -> str | None:
        """The image in which the stage was proved, where it is still there: what it is named by may have changed since,
        and what was proved in it is known of it alone.

        Chains share stages, and each was proved for itself; of a stage whose chain is not known, the last proof counts.
        """
        if self._store is None or self.renew:
            return None
        query = (
            select(StageTests.image)
            .join(
                ChainStage,
                and_(ChainStage.chain_id == StageTests.chain_id, ChainStage.position == StageTests.position),
            )
            .outerjoin(Validation, Validation.chain_id == StageTests.chain_id)
            .where(
                ChainStage.base_sha == stage.base,
                ChainStage.landed_at == stage.landed_at,
                StageTests.outcome == PROVED,
                StageTests.image.is_not(None),
            )
            .order_by(func.coalesce(Validation.validated_at, "").desc(), StageTests.chain_id)
        )
        if stage.chain:
            query = query.where(StageTests.chain_id == stage.chain, StageTests.position == stage.position)
        with self._store.reading() as tx:
            name = tx.connection.execute(query).scalars().first()
        if name is None or is_outdated(name):  # an agent may see in it what today's rules take away
            return None
        return name if find_image(self.engine(), name) else None

    def _of_neighbour(self, order: _ImageRequest) -> StageImage | None:
        """The image of a neighbour that serves in place of one that would have to be built."""
        if self._store is None or not self._settings.environments_neighbours:
            return None
        return _served(order.plan, serving(self.engine(), self._store, order.plan, order.tree, order.landed_at))

    def _next_best(self, order: _ImageRequest) -> StageImage | None:
        """The image of a neighbour for a stage whose own does not build."""
        if self._store is None or not self._settings.environments_neighbours:
            return None
        return _served(order.plan, next_best(self.engine(), self._store, order.plan, order.tree, order.landed_at))

    def _image(self, order: _ImageRequest, *, rebuild: bool = False, repairs: int = 0) -> StageImage:
        # An interpreter that does not run in the base image is offered no more, so that this ends.
        while (image := self._image_of(order, rebuild, repairs)) is None:
            order = replace(order, plan=order.replan(order.plan.recipe))
        return image

    def _image_of(self, order: _ImageRequest, rebuild: bool, repairs: int) -> StageImage | None:
        """The image of a plan; None where its interpreter turns out not to run here."""
        name = order.plan.image
        with self._guard:
            building = self._building[name]
        with building, self._one_run_at_a_time(f"image-{sha256(name.encode()).hexdigest()[:16]}"):
            if name in self._failed:
                raise self._failed[name].with_traceback(None)
            try:
                settings, as_of = self._build_settings, order.landed_at
                python, requires = order.plan.python, order.plan.variables.get("PYTHON", "")
                if python is None and not can_come(requires):
                    words = f"the project asks for Python {requires}: from 3.6 on there is none"
                    raise BuildFailed(f"{words} (a recipe's key python outranks it)", step="plan")
                if python is not None and python.minor == OLDEST:
                    as_of = max(as_of, era_of(python.minor))
                if self._interpreters is not None and (rebuild or find_image(self.engine(), name) is None):
                    found = self._interpreters.settings_of(self.engine(), order.plan)
                    if found is None:
                        return None
                    settings = found
                image = build_image(
                    self.engine(),
                    order.plan,
                    order.tree,
                    settings,
                    as_of=as_of,
                    rebuild=rebuild and name not in self._built,
                )
            except BuildFailed as failure:
                self._failed[name] = failure
                self._keep_log(name, failure.log)
                self._record_failure(order.plan, failure, repairs)
                raise
            except (
                IndexUnreachable,
                EngineDiskFull,
            ) as failure:  # says nothing of the image: no row, and the next one asks again
                self._keep_log(name, failure.log)
                raise
            if not image.cached:
                self._built[name] = repairs
                self._keep_log(name, "")
            self._record(image, repairs)
        notes = (*image.notes, *_distance(image, order.landed_at))
        return StageImage(order.plan, name, notes, image.seconds, image.cached, self._built.get(name, 0))

    def _one_run_at_a_time(self, work: str) -> AbstractContextManager[None]:
        """Waits for another run on the database that builds or repairs the same thing."""
        if self._store is None:
            return contextlib.nullcontext()
        return wait_for_lock(self._store, work, "prchain environments")

    def _repaired(
        self,
        order: _ImageRequest,
        failure: BuildFailed,
        gateway: Gateway,
        proves: Callable[[StageImage], None] = lambda image: None,
    ) -> StageImage:
        """The image of a recipe that a model changed; one repair of a repository at a time, as it has one recipe."""
        plan = order.plan
        with self._guard:
            repairing = self._repairing[plan.repository]
        with repairing, self._one_run_at_a_time(f"repair-{sha256(plan.repository.encode()).hexdigest()[:16]}"):
            fresh = order.replan(None)
            if fresh.image != plan.image:  # another thread has repaired the recipe meanwhile
                try:
                    image = self._image(replace(order, plan=fresh))
                    proves(image)
                    return image
                except BuildFailed as again:
                    plan, failure = fresh, again
            builds = 0

            def build(recipe: Recipe) -> StageImage:
                nonlocal builds
                builds += 1
                image = self._image(replace(order, plan=order.replan(recipe)), repairs=builds)
                proves(image)
                return image

            paths = dict.fromkeys((*plan.manifests, *files_of_ci(order.tree)))
            texts = {path: order.tree.read(path).decode("utf-8", "replace") for path in paths}
            recipe, provided = repair(gateway, plan.repository, plan.recipe, texts, failure, build)
            folder = self.recipes_dir
            origin = named_recipe(recipe.name, folder if folder.is_dir() else None)
            store_recipe(folder, plan.repository, recipe, changed_keys(origin, recipe))
        return provided

    def _keep_log(self, name: str, log: str) -> None:
        """Store the log of a build that failed for people; a build that worked removes it."""
        path = self._logs / f"{name.rpartition('/')[2].replace(':', '-')}.log"
        with contextlib.suppress(OSError):  # the log only helps people, the result is known without it
            if log:
                self._logs.mkdir(parents=True, exist_ok=True)
                path.write_text(plain_log(log), encoding="utf-8", errors="replace")
            else:
                path.unlink(missing_ok=True)

    def _record(self, image: Image, repairs: int = 0) -> None:
        if self._store is None:
            return
        row = {
            "name": image.name,
            "repository": image.repository,
            "recipe": image.recipe,
            "outcome": BUILT,
            "reason": None,
            "notes": image.notes,
            "as_of": image.as_of,
            "size_bytes": image.size_bytes,
            "seconds": image.seconds,
            "repairs": repairs,
            "built_at": image.created,
        }
        with self._store.transaction() as tx:
            known = next(tx.rows(BuiltImage, "outcome", name=image.name), ("",))[0]
            # A cached image's own row tells how long it took and what it needed.
            if not image.cached or known != BUILT:
                tx.upsert(BuiltImage, [row])

    def _record_failure(self, plan: ImagePlan, failure: BuildFailed, repairs: int) -> None:
        if self._store is None:
            return
        failure.image = plan.image
        reason = {
            "message": str(failure),
            "step": failure.step,
            "lines": list(failure.lines),
            "hangs_on": self.hangs_on(plan.repository, plan.recipe.name),
        }
        row: dict[str, Any] = {
            "name": plan.image,
            "repository": plan.repository,
            "recipe": plan.recipe.name,
            "outcome": failure.name,
            "reason": reason,
            "notes": [],
            "as_of": None,
            "size_bytes": None,
            "seconds": failure.seconds,
            "repairs": repairs,
            "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with self._store.transaction() as tx:
            tx.upsert(BuiltImage, [row])


def build_logs(settings: Settings) -> Path:
    """The folder of the logs of builds that failed, each named after its image."""
    return settings.data_dir / "build_logs"


def _served(plan: ImagePlan, neighbour: Neighbour | None) -> StageImage | None:
    if neighbour is None:
        return None
    image = neighbour.image
    words = neighbour.words
    return StageImage(replace(plan, image=image.name), image.name, image.notes, cached=True, neighbour=words)


def _distance(image: Image, landed: datetime) -> tuple[str, ...]:
    """A note where an image's packages are far in time from the stage: stages with equal manifests share an image."""
    if image.as_of is None:
        return ()
    days = (datetime.fromisoformat(image.as_of) - landed).days
    return (f"dated {abs(days)} days {'after' if days > 0 else 'before'} the stage",) if abs(days) > _MUCH_LATER else ()
