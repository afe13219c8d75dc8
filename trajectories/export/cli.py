"""The commands `prchain export` and `prchain stats`."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from prchain.cli_options import db_option, json_option, repository_option
from prchain.errors import UsageError
from prchain.settings import Settings
from sql.store import Store

if TYPE_CHECKING:
    from trajectories.export.export import ExportReport
    from trajectories.export.options import ExportOptions

FORMATS = ("slime", "swift", "openai", "sharegpt", "trl", "mini", "swebench")
MASKS = ("faulty", "tool_errors", "guidance")


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="slime",
    show_default=True,
    help="Who reads it; docs/export.md tells what each can express.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to write: JSON lines, or Parquet where the name ends in .parquet; - is standard output.",
)
@click.option(
    "--rows",
    type=click.Choice(["conversations", "turns"]),
    default="conversations",
    show_default=True,
    help="turns: a row for every turn under loss, for trainers that cannot leave turns out of it.",
)
@click.option("--mask", metavar="LIST", default="", help="Leave these out of the loss, too: tool_errors, guidance.")
@click.option("--unmask", metavar="LIST", default="", help="Put these under loss: faulty.")
@click.option(
    "--refinements",
    type=click.Choice(["mask", "keep", "drop"]),
    default="mask",
    show_default=True,
    help="Rejected rounds: out of the loss, under loss as any other, or leave their samples out.",
)
@click.option(
    "--guidance",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="Whether an observer's words stay in the conversation; they are never under loss.",
)
@click.option(
    "--reasoning",
    type=click.Choice(["field", "inline", "drop"]),
    default="field",
    show_default=True,
    help="A turn's reasoning: a field of its own where the format has one; before the content in <think>; nowhere.",
)
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="The longest sample that is wanted.")
@click.option(
    "--too-long",
    type=click.Choice(["drop", "split"]),
    default="drop",
    show_default=True,
    help="Longer ones: leave them out, or split them at stage boundaries.",
)
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
@click.option(
    "--split-by",
    type=click.Choice(["repository", "chain"]),
    default="repository",
    show_default=True,
    help="What is never in both files; chain: nor any chain that shares a pull request with it.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the split.")
@click.option(
    "--duplicates",
    type=click.Choice(["trees", "conversation", "keep"]),
    default="trees",
    show_default=True,
    help="Leave out samples of a chain that end with the same trees; only equal conversations; none.",
)
@click.option("--outcome", metavar="LIST", default="", help="Trajectories of these outcomes.  [default: the kept ones]")
@repository_option
@click.option("--model", metavar="NAME", help="Of one model's agents only.")
@click.option("--sample", type=int, metavar="N", help="With swebench: which sample.  [default: the lowest]")
@click.option(
    "--overlap",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Texts that no sample should hold, say a benchmark's; the card tells which samples share 13 words in a row.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@db_option
@json_option
def export(
    form: str,
    out: Path,
    rows: Literal["conversations", "turns"],
    mask: str,
    unmask: str,
    refinements: Literal["mask", "keep", "drop"],
    guidance: Literal["keep", "drop"],
    reasoning: Literal["field", "inline", "drop"],
    max_tokens: int | None,
    too_long: Literal["drop", "split"],
    tokenizer: Path | None,
    split: float,
    split_by: Literal["repository", "chain"],
    seed: int,
    duplicates: Literal["trees", "conversation", "keep"],
    outcome: str,
    repository: str | None,
    model: str | None,
    sample: int | None,
    overlap: Path | None,
    force: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Write kept trajectories as training data, with a data card beside them.

    Only what the model said is under loss: not what tools answered, nor rounds that were rejected, nor faulty turns.

    \b
    Example:
      prchain export --format slime --out sft.jsonl --split 0.05
      prchain export --format trl --rows turns --out sft.parquet --mask tool_errors
      prchain export --format swift --out sft.jsonl --max-tokens 65536 --too-long split --tokenizer tokenizer.json
    """
    from trajectories.export.masks import DEFAULT_MASKS
    from trajectories.export.options import ExportOptions
    from trajectories.outcomes import KEPT

    settings = Settings.load(db=db)
    if str(out) == "-" and as_json:
        raise UsageError("--json reports on standard output, where --out - writes; give a file's name")
    outcomes = frozenset(_words(outcome)) or KEPT
    if form == "swebench":
        _swebench(settings, out, outcome, repository, model, sample, force=force, as_json=as_json)
        return
    if sample is not None:
        raise UsageError("--sample is for --format swebench, which takes one prediction a stage")
    masks = DEFAULT_MASKS | _masks(mask, "--mask")
    options = ExportOptions(
        outcomes, repository, model, rows, masks - _masks(unmask, "--unmask"), refinements, guidance, reasoning,
        max_tokens, too_long, tokenizer, split, split_by, seed, duplicates, overlap,
    )  # fmt: skip
    _samples(settings, form, options, out, force=force, as_json=as_json)


def _samples(settings: Settings, form: str, options: ExportOptions, out: Path, *, force: bool, as_json: bool) -> None:
    from prchain.progress import open_progress
    from trajectories.export.export import export as write
    from trajectories.export.export import export_to
    from trajectories.export.formats.registry import chosen_format

    chosen = chosen_format(form, options)
    with (
        closing(Store.open(settings.db, create=False)) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        if str(out) == "-":
            report = export_to(store, chosen, options, sys.stdout.buffer, secrets=settings.secrets)
        else:
            report = write(store, chosen, options, out, force=force, progress=progress, secrets=settings.secrets)
    if as_json:
        click.echo(json.dumps(_report_row(report), indent=2))
    else:
        _print(report, to_stdout=str(out) == "-")


def _report_row(report: ExportReport) -> dict[str, Any]:
    return {
        "samples": dict(report.samples),
        "rows": dict(report.rows),
        "left_out": dict(sorted(report.left_out.items())),
        "files": [str(path) for path in report.files],
        "tokens_how": report.tokens_how,
    }


def _print(report: ExportReport, *, to_stdout: bool) -> None:
    from prchain.terminal import counted, say

    for name, count in sorted(report.left_out.items()):
        say(f"left out: {count:,} {name}", err=to_stdout)
    say(f"tokens are {report.tokens_how}", err=to_stdout)
    parts = ", ".join(f"{count:,} for {part}" for part, count in report.samples.items() if len(report.samples) > 1)
    total = counted(sum(report.samples.values()), "sample")
    say(f"{total}{f' ({parts})' if parts else ''}, {counted(sum(report.rows.values()), 'row')}", err=to_stdout)
    for path in report.files:
        say(f"  {path}")


def _swebench(
    settings: Settings,
    out: Path,
    outcome: str,
    repository: str | None,
    model: str | None,
    sample: int | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    from prchain.terminal import counted, say
    from trajectories.export.predictions import Unpredicted, predictions
    from trajectories.export.write import Files, JsonLines
    from trajectories.outcomes import FINAL

    left_out: list[Unpredicted] = []
    with closing(Store.open(settings.db, create=False)) as store, store.reading() as tx, Files(force=force) as files:
        stream = sys.stdout.buffer if str(out) == "-" else files.open(out)
        writer = JsonLines(stream)
        found = predictions(
            tx, settings.mirrors_dir, settings.data_dir, outcomes=frozenset(_words(outcome)) or FINAL,
            repository=repository, model=model, sample=sample, left_out=left_out.append,
        )  # fmt: skip
        for one in found:
            writer.write(one)
        writer.close()
    for missing in left_out:
        say(f"{missing.instance}: left out, {missing.outcome}{f': {missing.reason}' * bool(missing.reason)}", err=True)
    if as_json:
        click.echo(json.dumps({"predictions": writer.count, "left_out": len(left_out), "file": str(out)}, indent=2))
    elif str(out) != "-":
        say(f"{counted(writer.count, 'prediction')} written to {out}")


def _words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _masks(text: str, option: str) -> Any:
    from trajectories.export.masks import Mask

    for word in _words(text):
        if word not in MASKS:
            raise UsageError(f"{option} takes {', '.join(MASKS)}, and {word!r} is none of them")
    return frozenset(Mask(word) for word in _words(text))


@click.command()
@db_option
@json_option
def stats(db: str | None, as_json: bool) -> None:
    """Print what the rollouts come to, beside the paper's figures.

    \b
    Example:
      prchain stats
    """
    from prchain.terminal import say
    from trajectories.export.stats import lines
    from trajectories.export.stats import stats as figures

    with closing(Store.open(Settings.load(db=db).db, create=False)) as store, store.reading() as tx:
        row = figures(tx)
    if as_json:
        click.echo(json.dumps(row, indent=2))
    else:
        for line in lines(row):
            say(line)
