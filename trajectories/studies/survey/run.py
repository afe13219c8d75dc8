"""A survey from its draw to its report. The draw follows from its seed, and every proof is stored when it ends, so that
a run which was cut off is gone on with by the same command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chains.draw import draw_landings
from environments.backend import Backend
from environments.images.images import list_images
from environments.proofs.validate import ValidateOptions
from environments.proofs.validations import ValidateReport, ValidateRun, ValidationChoice, open_run
from prchain.core.console.progress import Progress
from prchain.core.errors import EngineUnavailable, ImageError
from prchain.core.settings import Settings
from sql.store import Store
from trajectories.studies.survey.candidates import passing_over
from trajectories.studies.survey.options import SurveyOptions
from trajectories.studies.survey.survey import SurveyReport, survey_report


def run_survey(
    settings: Settings,
    store: Store,
    progress: Progress,
    options: SurveyOptions,
    *,
    names: Sequence[str] = (),
    backend: Backend,
    repair: bool = False,
    budget_usd: float | None = None,
) -> tuple[SurveyReport, ValidateReport]:
    """Draw, prove what is not proved yet, and report; of a dry run the second value is empty.

    Raises `UsageError`, `NotARepository`, and what `open_run` raises.
    """
    with passing_over(settings, backend) as pass_over:
        draw = draw_landings(
            store,
            settings.mirrors_dir,
            progress,
            names=names,
            sample=options.sample,
            seed=options.seed,
            write=not options.dry_run,
            pass_over=pass_over,
        )
    # Best first is no order here: a survey that is cut off has begun with every period.
    choice = ValidationChoice(retry=options.retry, chain_ids=tuple(it.chain_id for it in draw.landings))
    with open_run(
        settings,
        ValidateOptions(backend=backend.name),
        choice,
        repair=repair and not options.dry_run,
        budget_usd=budget_usd,
        progress=progress,
    ) as run:
        proved = ValidateReport()
        if draw.landings and not options.dry_run:
            if run.pending()[0]:
                run.prover.backend.clear_away()
            proved = run.run(settings.workers)
        sizes = _image_bytes(run) if backend.needs_image and draw.landings else None
    with store.reading() as tx:
        report = survey_report(
            tx,
            draw,
            seed=options.seed,
            wanted=options.sample,
            backend=backend.name,
            stopped=proved.failed,
            image_bytes=sizes,
        )
    return report, proved


def _image_bytes(run: ValidateRun) -> Mapping[str, tuple[int, int]] | None:
    """What every image of the engine takes alone, and as a whole; None where no engine answers: the rest is known."""
    try:
        images = list_images(run.prover.provider.engine())
    except (EngineUnavailable, ImageError):
        return None
    return {it.name: (it.own_bytes or 0, it.size_bytes) for it in images}
