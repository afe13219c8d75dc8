"""The command `prchain export`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from prchain.core.cli_options import choice_option, db_option, json_option, proof_option, repository_option
from prchain.core.console.terminal import counted, present, say, say_some, tally
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.settings import Settings
from sql.store import Store
from trajectories.export.formats import FORMATS

if TYPE_CHECKING:
    from trajectories.export.export import ExportReport
    from trajectories.export.format import PredictionFormat
    from trajectories.export.options import ExportOptions, PairKind

MASKS = ("faulty", "tool_errors", "command_errors", "guidance")

_SHARED_PARAMETERS = frozenset({"form", "out", "outcome", "repository", "model", "force", "db", "as_json"})
_PREDICTION_PARAMETERS = frozenset({"sample", "like"})
"""Parameters of every format, and parameters of formats of predictions; all others are for formats of samples."""

_CHOICES = ("outcome", "repository", "model", "sample", "like")
"""Parameters that choose trajectories."""

_HITS_SHOWN = 100
"""As many as in the card."""


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS]),
    default="slime",
    show_default=True,
    help="Who reads it; docs/export.md tells what each can express.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to write: JSON lines, or Parquet where the name ends in .parquet and the format has columns; with mini "
    "a folder; - is standard output.",
)
@choice_option(
    "--rows",
    ["conversations", "turns"],
    "turns: a row for every turn under loss, for trainers that cannot leave turns out of it.",
)
@click.option(
    "--mask",
    metavar="LIST",
    default="",
    help="Leave these out of the loss, too: tool_errors (a tool refused), command_errors (a command failed; not tests "
    "that ran, nor grep that found nothing), guidance.",
)
@click.option("--unmask", metavar="LIST", default="", help="Put these under loss: faulty.")
@choice_option(
    "--refinements",
    ["mask", "keep", "drop"],
    "Rejected rounds: out of the loss, under loss as any other, or leave their samples out.",
)
@choice_option(
    "--guidance", ["keep", "drop"], "Whether an observer's words stay in the conversation; they are never under loss."
)
@click.option(
    "--grounded",
    is_flag=True,
    help="With --guidance drop: a turn right after such words is under loss only where all paths, names and numbers "
    "in it were shown otherwise.",
)
@choice_option(
    "--reasoning",
    ["field", "inline", "drop"],
    "A turn's reasoning: a field of its own where the format has one; before the content in <think>; nowhere.",
)
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="The longest sample that is wanted.")
@choice_option("--too-long", ["drop", "split"], "Longer ones: leave them out, or split them at stage boundaries.")
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A tokenizer.json to count with, and the chat template beside it; else tokens are estimated.",
)
@click.option(
    "--split",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    metavar="SHARE",
    help="So much of the samples goes into a second file, for validation.",
)
@choice_option(
    "--split-by",
    ["repository", "chain"],
    "What is never in both files; chain: nor any chain that shares a pull request with it.",
)
@choice_option(
    "--per-chain",
    ["all", "shortest"],
    "shortest: of a chain's trajectories that passed the most stages, the one in which the model said the least.",
)
@choice_option(
    "--pairs",
    ["none", "short-long", "rejection-sampling"],
    "Two sets of the same chains in two files: accepted prefixes and what they were extended to; or rollouts as they "
    "came and kept ones, with equal queries.",
)
@click.option(
    "--at-most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only N samples (or pairs), drawn at random of all that would be written: as many as another file has.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of --split, --at-most and --pairs.")
@choice_option(
    "--duplicates",
    ["trees", "conversation", "keep"],
    "Leave out samples of a chain that end with the same trees; only equal conversations; none.",
)
@click.option(
    "--outcome",
    metavar="LIST",
    default="",
    help="Trajectories of these outcomes.  [default: the kept ones; with swebench all that have ended]",
)
@repository_option
@click.option("--model", metavar="NAME", help="Of one model's agents only.")
@click.option(
    "--scaffold",
    metavar="LIST",
    default="",
    help="Of these scaffolds only: react, curated, ...  [default: all but disclosed]",
)
@click.option("--sample", type=int, metavar="N", help="With swebench: which sample.  [default: the lowest]")
@click.option(
    "--like",
    metavar="ID",
    help="With swebench: only rollouts with the model, judge, options and prompts of this trajectory, named by its id "
    "or the beginning of it. Needed where there are several.",
)
@click.option(
    "--overlap",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Texts that no sample should hold, say a benchmark's: JSON, or a text a line. The card tells which samples "
    "share 13 words in a row; with --out - standard error does.",
)
@click.option(
    "--recipe",
    type=click.Choice(["slime", "swift"]),
    help="With the format of the same name: write the papers' training arguments, too, to FILE.recipe.sh.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@proof_option
@db_option
@json_option
@click.pass_context
def export(
    context: click.Context,
    form: str,
    out: Path,
    rows: Literal["conversations", "turns"],
    mask: str,
    unmask: str,
    refinements: Literal["mask", "keep", "drop"],
    guidance: Literal["keep", "drop"],
    grounded: bool,
    reasoning: Literal["field", "inline", "drop"],
    max_tokens: int | None,
    too_long: Literal["drop", "split"],
    tokenizer: Path | None,
    split: float,
    split_by: Literal["repository", "chain"],
    per_chain: Literal["all", "shortest"],
    pairs: PairKind,
    at_most: int | None,
    seed: int,
    duplicates: Literal["trees", "conversation", "keep"],
    outcome: str,
    repository: str | None,
    model: str | None,
    scaffold: str,
    sample: int | None,
    like: str | None,
    overlap: Path | None,
    recipe: Literal["slime", "swift"] | None,
    force: bool,
    proof: str,
    db: str | None,
    as_json: bool,
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
      prchain export --pairs short-long --out sft.jsonl
      prchain export --format swift --out s.jsonl --max-tokens 65536
    """
    from sql.strength import ProofFilter
    from trajectories.export.format import PredictionFormat
    from trajectories.export.masks import DEFAULT_MASKS
    from trajectories.export.options import ExportOptions
    from trajectories.outcomes import KEPT

    settings = Settings.load(db=db)
    chosen = FORMATS[form]
    _check_options(context, form, predictions=isinstance(chosen, PredictionFormat))
    if str(out) == "-" and as_json:
        raise UsageError("--json reports on standard output, where --out - writes; give a file's name")
    if isinstance(chosen, PredictionFormat):
        _export_predictions(
            settings, chosen, out, outcome, repository, model, like, sample, force=force, as_json=as_json
        )
        return
    outcomes = frozenset(_words(outcome)) or KEPT
    masks = DEFAULT_MASKS | _masks(mask, "--mask")
    options = ExportOptions(
        outcomes,
        repository,
        model,
        rows,
        masks - _masks(unmask, "--unmask"),
        refinements,
        guidance,
        reasoning,
        max_tokens,
        too_long,
        tokenizer,
        split,
        split_by,
        seed,
        duplicates,
        overlap=overlap,
        per_chain=per_chain,
        at_most=at_most,
        scaffolds=frozenset(_words(scaffold)) or None,
        recipe=recipe,
        grounded=grounded,
        pairs=pairs,
        proof=ProofFilter(proof),
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
    from sql.strength import ProofFilter, doubt_words, say_proofs
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
        closing(Store.open(settings.db, create=False)) as store,
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
        say_proofs(doubt_words(report.card.get("proofs", {})), 0)
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
            say(f"no sample is for {part}: its file is empty; --split-by chain, or another --split, may help", err=True)
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
    for path in report.files:
        say(f"  {path}")


def _export_predictions(
    settings: Settings,
    form: PredictionFormat,
    out: Path,
    outcome: str,
    repository: str | None,
    model: str | None,
    like: str | None,
    sample: int | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
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
    with closing(Store.open(settings.db, create=False)) as store, store.reading() as tx, Files(force=force) as files:
        check_requested(tx, outcomes=outcomes, repository=repository, model=model)
        writer = JsonLines(StandardOutput() if to_stdout else files.open(out))
        found = form.rows(
            tx,
            settings.mirrors_dir,
            settings.data_dir,
            outcomes=outcomes,
            repository=repository,
            model=model,
            like=like,
            sample=sample,
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
    choices = [f"--{name}" for name in _CHOICES if context.params[name] not in (None, "")]
    if left_out:
        reason = tally(dict(sorted(left_out.items())))
    elif choices:
        reason = f"no {noun} was {'found' if '--outcome' in choices else done} that fits {', '.join(choices)}"
    else:
        reason = f"no {noun} was {done} yet; run `prchain rollouts run` first"
    end_command(done=True, good=0, nothing=f"nothing to export: {reason}")


def _words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _masks(text: str, option: str) -> Any:
    from trajectories.export.masks import Mask

    for word in _words(text):
        if word not in MASKS:
            raise UsageError(f"{option} takes {', '.join(MASKS)}, and {word!r} is none of them")
    return frozenset(Mask(word) for word in _words(text))
