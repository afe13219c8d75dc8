"""The export formats: each module of this folder holds one, as `FORMAT`."""

from __future__ import annotations

from prchain.core.catalogue import Catalogue
from prchain.core.errors import UsageError
from trajectories.export.format import Format, PredictionFormat
from trajectories.export.options import ExportOptions

FORMATS = Catalogue[Format | PredictionFormat](__name__, "FORMAT")


def chosen_format(name: str, options: ExportOptions) -> Format:
    """The format of samples of a name. Raises `UsageError` for a format of predictions, and if the format cannot mask
    turns as the options require, or its readers do not read the recipe that they name."""
    found = FORMATS[name]
    if isinstance(found, PredictionFormat):
        raise UsageError(f"{name} is a format of predictions, not of samples")
    if not found.trains and options.rows == "turns":
        raise UsageError(f"{name} tells whole trajectories; --rows turns is for formats that trainers read")
    if not found.trains and options.max_tokens is not None:
        raise UsageError(f"{name} tells whole trajectories; --max-tokens is for formats that trainers read")
    if found.loss is None and options.rows == "conversations" and not options.masks_nothing:
        raise UsageError(
            f"{name} cannot leave turns out of the loss: write one row a turn with --rows turns ({found.turns_hint}), "
            "or put every turn under loss with --mask faulty=off --rejected keep (or drop)"
        )
    if options.recipe not in (None, name):
        raise UsageError(f"--recipe {options.recipe} trains on --format {options.recipe}, not on {name}")
    return found
