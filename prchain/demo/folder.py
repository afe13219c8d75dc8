"""The files that the demo works with: settings, the list of repositories, a recipe, the script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from environments.images.recipes import override_name
from prchain.core.errors import UsageError
from prchain.core.settings import FILE, Settings
from prchain.demo.backend import ChosenBackend, path_with_python
from prchain.demo.library import REPOSITORY
from prchain.demo.script import write_script

LIST = "repos.txt"
SCRIPT = "script.jsonl"
LIBRARY = "measures"
"""The folder of the repository."""

_CLAIM = "# Made by `prchain demo`, which writes it anew each time.\n"
"""First line of the demo's prchain.toml: it marks the folder as the demo's, so that no other files are replaced."""

_RECIPE = """\
# Over the recipe for Python. The library stands on nothing and its tests are unittest's: any Python 3 will do, and
# nothing is installed or downloaded.
recipe = "python"
build = []
refresh = []
check = ["python3 --version"]
runner = "unittest"
test = "python3 {tools}/python_reporter.py"
"""


def claim(folder: Path) -> None:
    """Make the folder the demo's: a new one, an empty one, or one that an earlier run has claimed.

    Raises `UsageError` for any other, and touches nothing there.
    """
    settings = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if settings.exists():
            if not settings.read_bytes().startswith(_CLAIM.encode()):
                raise UsageError(f"{settings} is not the demo's, which would replace it; give --folder another folder")
        elif any(folder.iterdir()):
            raise UsageError(f"{folder} holds files and no demo; give --folder a folder that is new or empty")
        else:
            _write(settings, _CLAIM)
    except OSError as error:
        raise UsageError(f"{folder} cannot be the demo's folder: {error.strerror or error}") from error


def prepare(folder: Path, chosen: ChosenBackend, user: Settings, model: str | None) -> dict[str, str | float]:
    """Write the files of a claimed folder anew and return the settings that prchain.toml now has.

    `user` are the user's own settings, of which a real `model` takes the endpoint and its prices.
    """
    settings: dict[str, str | float] = {"db": "sqlite:///prchain.db", "data_dir": "."}
    settings["environments_backend"] = chosen.backend.name
    if model is None:
        settings["llm_script"] = SCRIPT
        _write(folder / SCRIPT, write_script(chosen.backend.workdir))
    else:
        settings |= {"llm_model": model, "llm_base_url": user.llm_base_url}
        prices = {name: getattr(user, f"llm_price_{name}") for name in ("input", "cached", "output")}
        settings |= {f"llm_price_{name}": price for name, price in prices.items() if price is not None}
    if chosen.image is not None:
        settings["environments_base_image"] = chosen.image
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    _write(folder / FILE, "".join([_CLAIM, *lines]))
    _write(folder / LIST, f"{REPOSITORY} = {LIBRARY}    # a git repository beside this file\n")
    (folder / "recipes").mkdir(exist_ok=True)
    variables = path_with_python() if chosen.backend.unsafe else {}
    _write(folder / "recipes" / override_name(REPOSITORY), _RECIPE + _table("environment", variables))
    return settings


def _table(name: str, values: Mapping[str, str]) -> str:
    return (
        f"\n[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()) if values else ""
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
