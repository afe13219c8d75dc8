"""The command demo."""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path

import click

from environments.backends import BACKENDS
from prchain.core.cli_options import CatalogueOption, json_option
from prchain.core.console.terminal import present


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where its files go, its own database among them: a new or empty folder, or a demo's.  [default: data/demo]",
)
@click.option(
    "--backend",
    cls=CatalogueOption,
    of=BACKENDS,
    help="Where code runs, if not on the best that works here.",
)
@click.option("--all", "everything", is_flag=True, help="Also process graphs, windows, guidance, and a cheat.")
@json_option
def demo(folder: Path | None, backend: str | None, everything: bool, as_json: bool) -> None:
    """Run every stage on a small repository of our own, made on the spot: no network, no key, some two minutes.

    It shows each command line before it runs it. A script stands in for the model; DEMO_MODEL names a real one, which
    the usual settings lead to (OPENAI_BASE_URL, OPENAI_API_KEY, PRCHAIN_LLM_PRICE_INPUT ...) and which may cost money.

    \b
    Example:
      prchain demo
      prchain demo --all --folder /var/tmp/demo
      DEMO_MODEL=glm-4.6 prchain demo
    """
    from prchain.cli import run
    from prchain.demo.run import MODEL_VARIABLE, print_outcome, run_demo

    model = os.environ.get(MODEL_VARIABLE) or None
    # Another model's tasks and rollouts are kept apart from the script's.
    default = Path("data", "demo" if model is None else f"demo-{re.sub(r'[^A-Za-z0-9.-]+', '-', model)}")
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        outcome = run_demo((folder or default).absolute(), backend=backend, model=model, everything=everything, run=run)
    row = {**asdict(outcome.funnel), "samples": outcome.samples, "files": outcome.files, "failed": outcome.failed}
    present(as_json, row, print_outcome, outcome)
