"""The command `prchain export`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prchain.core.cli_options import (
    IMPORTED,
    STRATEGIES,
    WHICH,
    Command,
    db_option,
    given,
    json_option,
    labels_option,
    option,
    proof_option,
    repository_option,
    told_options,
)
from prchain.core.console.terminal import counted, present, say, say_some, tally
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.export.formats import FORMATS
from trajectories.export.options import ExportOptions, PredictionChoice

if TYPE_CHECKING:
    from prchain.core.keyed import Given
    from prchain.core.settings import Settings
    from trajectories.export.export import ExportReport
    from trajectories.export.format import PredictionFormat

MASKS = ("faulty", "tool_errors", "command_errors", "unfounded_claims", "guidance")

_SHARED_PARAMETERS = frozenset({"form", "out", "outcome", "repository", "strategy", "model", "force", "db", "as_json"})
_PREDICTION_PARAMETERS = frozenset({"predictions"})
"""Parameters of every format, and parameters of formats of predictions; all others are for formats of samples."""

_CHOICES = ("outcome", "repository", "strategy", "model", "scaffold", "predictions")
"""Parameters that choose trajectories."""

_HITS_SHOWN = 100
"""As many as in the card."""

_SHARED_SHOWN = 5


@click.command(cls=Command)
@option(
    "--format",
    "form",
    type=click.Choice([*FORMATS]),
    default="slime",
    show_default=True,
    heading="File",
    help="Who reads it; docs/export.md tells what each can express.",
)
@option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    heading="File",
    help="JSON lines, or Parquet where the name ends in .parquet; with atif and mini a folder; - is standard output.",
)
@option("--force", is_flag=True, heading="File", help="Replace files that are there.")
@told_options(ExportOptions, "rows", "recipe")
@option(
    "--outcome",
    metavar="LIST",
    default="",
    heading=WHICH,
    help="Trajectories of these outcomes.  [default: the kept ones; with swebench all that have ended]",
)
@repository_option
@option(
    "--strategy",
    type=click.Choice([*STRATEGIES.choices, IMPORTED]),
    metavar="NAME",
    heading=WHICH,
    help="Of chains that this strategy chose only.",
)
@option("--model", metavar="NAME", heading=WHICH, help="Of one model's agents only.")
@option(
    "--scaffold",
    metavar="LIST",
    default="",
    heading=WHICH,
    help="Only these: react,curated:commit=random.  [default: all but disclosed]",
)
@told_options(PredictionChoice)
@told_options(ExportOptions, "per_chain", "duplicates", "at_most", "seed", "pairs", "retell", "branches", "benchmarks")
@option(
    "--mask",
    metavar="LIST",
    default="",
    heading="Loss",
    help="Leave these out of the loss, too: tool_errors (a tool refused), command_errors (a command failed, but for "
    "tests and grep), unfounded_claims (says that tests pass without having seen it), guidance; or "
    "not: faulty=off.",
)
@told_options(ExportOptions, "refinements", "guidance", "grounded", "reasoning", "max_tokens", "too_long", "tokenizer")
@told_options(ExportOptions, "validation", "split_by", "overlap")
@proof_option
@labels_option
@db_option
@json_option
@click.pass_context
def export(
    context: click.Context,
    /,
    form: str,
    out: Path,
    force: bool,
    outcome: str,
    repository: str | None,
    strategy: str | None,
    model: str | None,
    scaffold: str,
    predictions: Given,
    mask: str,
    proof: str,
    labels: str,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Write kept trajectories as training data, with a data card beside them.

    Only what the model said is under loss: not what tools answered, nor rounds that were rejected, nor faulty turns.
    swebench writes predictions for SWE-bench's harness, and takes none of the options of samples. Where there is
    nothing to write, no file is written.

    \b
    Example:
      prchain export --format slime --out sft.jsonl --split 0.05
      prchain export --format trl --rows turns --out t.parquet --mask tool_errors
      prchain export --format swift --recipe swift --out sft.jsonl --at-most 500
      prchain export --pairs short-long --out sft.jsonl --max-tokens 65536
    """
    from sql.label_filter import LabelFilter
    from sql.proof_filter import ProofFilter
    from trajectories.export.format import PredictionFormat
    from trajectories.outcomes import KEPT

    settings = load_settings(db=db)
    chosen = FORMATS[form]
    _check_options(context, form, predictions=isinstance(chosen, PredictionFormat))
    if str(out) == "-" and as_json:
        raise UsageError("--json reports on standard output, where --out - writes; give a file's name")
    if isinstance(chosen, PredictionFormat):
        of = PredictionChoice(**predictions)
        which = {"repository": repository, "model": model}
        _export_predictions(settings, chosen, out, outcome, which, strategy, of, force=force, as_json=as_json)
        return
    outcomes = frozenset(_words(outcome)) or KEPT
    scaffolds, windows = _scaffolds(scaffold)
    options = ExportOptions(
        outcomes=outcomes,
        repository=repository,
        strategy=strategy,
        model=model,
        masks=_masks(mask),
        scaffolds=scaffolds,
        windows=windows,
        proof=ProofFilter(proof),
        labels=LabelFilter(labels),
        **given(flags),
    )
    _export_samples(settings, form, options, out, force=force, as_json=as_json)


def _check_options(context: click.Context, form: str, *, predictions: bool) -> None:
    """Raise `UsageError` for options on the command line that do not apply."""
    from click.core import ParameterSource

    allowed = _SHARED_PARAMETERS | _PREDICTION_PARAMETERS
    on_command_line = {
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    wrong = on_command_line - allowed if predictions else on_command_line & _PREDICTION_PARAMETERS
    if names := [param.opts[0] for param in context.command.params if param.name in wrong]:
        written = "predictions, not samples" if predictions else "samples, not predictions"
        raise UsageError(f"--format {form} writes {written}: leave out {', '.join(names)}")


def _inputs(settings: Settings, options: ExportOptions | None = None) -> Iterator[Path]:
    """The files that an export reads."""
    from prchain.core.settings import FILE
    from sql.engine import parse_url, sqlite_file

    yield Path(FILE)
    if database := sqlite_file(parse_url(settings.db)):
        yield from (database.with_name(f"{database.name}{end}") for end in ("", "-wal", "-shm", "-journal"))
    if options and options.overlap:
        yield options.overlap
    if options and options.tokenizer:
        yield options.tokenizer
        # Its chat template is in one of these files.
        yield from map(options.tokenizer.with_name, ("tokenizer_config.json", "chat_template.jinja"))


def _export_samples(
    settings: Settings, form: str, options: ExportOptions, out: Path, *, force: bool, as_json: bool
) -> None:
    from prchain.core.console.progress import open_progress
    from sql.proof_filter import ProofFilter
    from sql.taken_proofs import doubt_words, say_proofs
    from trajectories.export.export import VALIDATION, export_to, set_paths
    from trajectories.export.export import export as export_to_files
    from trajectories.export.formats import chosen_format
    from trajectories.export.recipe import recipe_path
    from trajectories.export.wanted import check_requested
    from trajectories.export.write import StandardOutput, card_paths, check_inputs, sibling_path

    chosen = chosen_format(form, options)
    to_stdout = str(out) == "-"
    if not to_stdout:
        written = [
            path
            for one in set_paths(out, options).values()
            for path in (one, sibling_path(one, VALIDATION), *card_paths(one), recipe_path(one))
        ]
        check_inputs(written, _inputs(settings, options))
    with (
        opened_store(settings.db) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        with store.reading() as tx:
            check_requested(
                tx,
                outcomes=options.outcomes,
                repository=options.repository,
                model=options.model,
                scaffolds=options.scaffolds,
            )
        if to_stdout:
            report = export_to(store, chosen, options, StandardOutput(), secrets=settings.secrets)
        else:
            report = export_to_files(
                store, chosen, options, out, force=force, progress=progress, secrets=settings.secrets
            )
    count = report.samples.total()
    if options.proof is ProofFilter.ANY:
        say_proofs([doubt_words(report.card.get("proofs", {}), "proved stage", " in these samples")], 0)
    if count or as_json:
        present(as_json, _report_row(report), _print, report, to_stdout=to_stdout)
    if not count:
        if options.pairs == "short-long" and report.left_out:
            say("no pair differs; `prchain rollouts extend` extends accepted prefixes", err=True)
        elif options.pairs == "rejection-sampling" and report.left_out:
            say("no pair differs; roll out more --samples of each chain", err=True)
        _end_without_rows("trajectory", "kept", report.left_out)


def _report_row(report: ExportReport) -> dict[str, Any]:
    return {
        "samples": dict(report.samples),
        "rows": dict(report.rows),
        "left_out": dict(sorted(report.left_out.items())),
        "files": [str(path) for path in report.files],
        "tokens_how": report.tokens_how,
        "in_several_tasks": len(report.shared),
        "samples_that_share_text": None if report.overlap is None else len(report.overlap.hits),
    }


def _print(report: ExportReport, *, to_stdout: bool) -> None:
    from trajectories.export.overlap import WORDS

    if report.left_out:
        say(f"left out: {tally(dict(sorted(report.left_out.items())))}", err=to_stdout)
    say(f"tokens are {report.tokens_how}", err=to_stdout)
    parts = tally({f"for {part}": count for part, count in report.samples.items() if len(report.samples) > 1})
    for part, count in report.samples.items():
        if not count:
            say(
                f"no sample is for {part}: its file is empty; --split SHARE:by=chain, or another share, may help",
                err=True,
            )
    total = counted(sum(report.samples.values()), "sample")
    say(f"{total}{f' ({parts})' if parts else ''}, {counted(sum(report.rows.values()), 'row')}", err=to_stdout)
    if replaced := report.card.get("replaced"):
        say(f"replaced in texts: {tally(replaced)}", err=to_stdout)
    if found := report.overlap:
        say(
            f"{len(found.hits):,} of {found.looked_at:,} samples share {WORDS} words in a row with {found.name}",
            err=to_stdout,
        )
        if to_stdout:  # there is no card that lists them
            hits = [f"{hit.sample}: entries {', '.join(map(str, hit.lines))}" for hit in found.hits]
            say_some(hits, _HITS_SHOWN, indent=2, err=True)
    if report.shared:
        names = ", ".join([*report.shared][:_SHARED_SHOWN]) + (" ..." if len(report.shared) > _SHARED_SHOWN else "")
        pulls = counted(len(report.shared), "pull request")
        say(f"{pulls} in several of these tasks, which no split parts: {names}", err=to_stdout)
    for path in report.files:
        say(f"  {path}")


def _export_predictions(
    settings: Settings,
    form: PredictionFormat,
    out: Path,
    outcome: str,
    which: Mapping[str, str | None],
    strategy: str | None,
    of: PredictionChoice,
    *,
    force: bool,
    as_json: bool,
) -> None:
    from sql.chosen import selected_ids
    from trajectories.export.tasks.predictions import MissingPrediction
    from trajectories.export.wanted import check_requested
    from trajectories.export.write import Files, JsonLines, StandardOutput, check_inputs
    from trajectories.outcomes import FINAL

    if out.suffix == ".parquet":
        raise UsageError(f"{form.reader} harness reads JSON lines only; give --out another suffix than .parquet")
    to_stdout = str(out) == "-"
    if not to_stdout:
        check_inputs([out], _inputs(settings))
    outcomes = frozenset(_words(outcome)) or FINAL
    left_out: list[MissingPrediction] = []
    with opened_store(settings.db) as store, store.reading() as tx, Files(force=force) as files:
        check_requested(tx, outcomes=outcomes, **which)
        writer = JsonLines(StandardOutput() if to_stdout else files.open(out))
        found = form.rows(
            tx,
            settings.mirrors_dir,
            settings.data_dir,
            outcomes=outcomes,
            **which,
            chains=None if strategy is None else selected_ids(tx, strategy),
            like=of.like,
            sample=of.sample,
            left_out=left_out.append,
        )
        for prediction in found:
            writer.write(prediction)
        writer.close()
        if not writer.count:
            files.discard()
    for missing in left_out:
        say(f"{missing.instance}: left out, {missing.outcome}{f': {missing.reason}' * bool(missing.reason)}", err=True)
    if as_json or (writer.count and not to_stdout):
        file = str(out) if writer.count else None
        row = {"predictions": writer.count, "left_out": len(left_out), "file": file}
        present(as_json, row, say, f"{counted(writer.count, 'prediction')} written to {out}")
    if not writer.count:
        _end_without_rows("stage", "tried", Counter(missing.outcome for missing in left_out))


def _end_without_rows(noun: str, done: str, left_out: Mapping[str, int]) -> None:
    """Say why there is nothing to export, and end with exit code 1."""
    context = click.get_current_context()
    choices = [f"--{name}" for name in _CHOICES if context.params[name] not in (None, "", {})]
    if left_out:
        reason = tally(dict(sorted(left_out.items())))
    elif choices:
        reason = f"no {noun} was {'found' if '--outcome' in choices else done} that fits {', '.join(choices)}"
    else:
        reason = f"no {noun} was {done} yet; run `prchain rollouts run` first"
    end_command(done=True, good=0, nothing=f"nothing to export: {reason}")


def _words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _scaffolds(text: str) -> tuple[frozenset[str] | None, Mapping[str, Any]]:
    """The names in a list of scaffolds, None where it is empty; and what the windows of curated trajectories have to
    have: ``KEY=VALUE`` after a colon, and more of them as the next words. Raises `UsageError`."""
    from prchain.core.keyed import KeyedType
    from prchain.core.told import keys_of
    from trajectories.curation.windows.options import WindowOptions
    from trajectories.privileged import CURATED

    names: list[str] = []
    settings: list[str] = []
    for word in _words(text):
        name, colon, setting = word.partition(":")
        if colon or "=" not in word:
            names.append(name)
        if colon or "=" in word:
            settings.append(setting if colon else word)
            if names[-1:] != [CURATED]:
                raise UsageError(f"--scaffold {word}: only {CURATED} has settings, as in {CURATED}:commit=random")
    if not settings:
        return frozenset(names) or None, {}
    try:
        windows = KeyedType([*keys_of(WindowOptions).values()]).convert(",".join(settings), None, None)
    except click.BadParameter as error:
        raise UsageError(f"--scaffold {CURATED}: {error.message}") from None
    return frozenset(names), dict(windows)


def _masks(text: str) -> Any:
    from trajectories.export.masks import DEFAULT_MASKS, Mask

    off = {f"{mask}=off": mask for mask in sorted(DEFAULT_MASKS)}
    words = _words(text)
    for word in words:
        if word not in MASKS and word not in off:
            raise UsageError(f"--mask takes {', '.join([*MASKS, *off])}, and {word!r} is none of them")
    masked = DEFAULT_MASKS | {Mask(word) for word in words if word in MASKS}
    return masked - {off[word] for word in words if word in off}
