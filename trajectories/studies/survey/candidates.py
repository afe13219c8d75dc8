"""Whether a landing has tests that a runner takes for some, as a proof asks it: known from git, before any build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from chains.history import LandedPullRequest, MinedRepository
from environments.backend import Backend
from environments.images.provide import Provider
from environments.proofs.foresight import UNREADABLE
from environments.stages import ChainStages, Stage, open_git, open_trees, stage_patches
from environments.workplace import StageSuite, Workplace
from prchain.core.errors import IncompleteRepository, NoRecipe, PrchainError
from prchain.core.settings import Settings

NO_TESTS = "no_tests"
"""The test patch has no file that the runner takes for tests; the filter of chains that is named so asks less."""


@contextmanager
def passing_over(
    settings: Settings, backend: Backend
) -> Iterator[Callable[[MinedRepository, LandedPullRequest], str | None]]:
    """Says why a landing cannot be proved whatever is built for it, as an outcome, or None.

    What no recipe fits is no such case: that there is none is a figure of a survey. Raises `RecipeError` for one of the
    user's.
    """
    with closing(Provider(settings, images=False)) as provider:

        def why(mined: MinedRepository, landed: LandedPullRequest) -> str | None:
            stage = Stage(1, landed.number, landed.base_sha, landed.landed_sha, landed.landed_at)
            chain = ChainStages("", mined.id, mined.full_name, mined.host, mined.location, (stage,))
            git = open_git(chain, settings.mirrors_dir)
            trees = open_trees(chain, git, settings.data_dir)
            try:
                patches = tuple(stage_patches(git, trees, chain.stages))
                provided = provider.provide(mined.full_name, trees, git, stage)
                suite = StageSuite.of(Workplace(provided, trees, backend=backend), stage, patches)
            except NoRecipe:
                return None
            except IncompleteRepository as error:
                return error.name
            except PrchainError:
                raise
            except UNREADABLE:  # its proof ends with it, which is a figure of the survey
                return None
            return None if suite.own_files else NO_TESTS

        yield why
