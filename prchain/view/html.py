"""Templates to pages. Texts are escaped by Jinja2, and everything that a page shows has been cleaned before."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from prchain.view.places import ASSETS, CHAINS, COMPARE, EXPORT, FUNNEL, LABELS, MONEY, TRAJECTORIES, root_of
from prchain.view.texts import known_from, marked, sureness, title_of
from prchain.view.tones import tone

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'"
"""The Content-Security-Policy of every page: scripts and styles of our own files, and nothing else from anywhere."""
FORM_POLICY = POLICY.replace("form-action 'none'", "form-action 'self'")
"""Where pages hold a form: it may be sent to where they are from."""


def usd(value: float | None) -> str:
    """An amount of money in four digits, or that it is not known."""
    return "price unknown" if value is None else f"{value:,.4f} USD"


def duration(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {int(seconds % 60)} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def mean(value: float | None) -> str:
    """A mean as tables show it; a dash where there is none."""
    return "-" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def many(number: int, word: str, plural: str = "") -> str:
    """A number with its word: `1 step`, `2,000 steps`."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  loaded with the first page

    found = Environment(
        loader=PackageLoader("prchain.view"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = {
        "tone": tone,
        "usd": usd,
        "duration": duration,
        "mean": mean,
        "many": many,
        "sureness": sureness,
        "known_from": known_from,
    }
    found.filters.update(filters, marked=marked, words=_words, subject=title_of)
    return found


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def page(template: str, path: str, values: dict[str, Any], *, forms: bool = False, exported: bool = False) -> bytes:
    """The page at `path` of a template; `values` are clean. `forms`: it may hold one; `exported`: there are pages of an
    export."""
    root = root_of(path)
    folders = {"chains": CHAINS, "rollouts": TRAJECTORIES, "compare": COMPARE, "money": MONEY, "labels": LABELS}
    folders |= {"export": EXPORT}
    places = {"home": root + FUNNEL} | {name: f"{root}{folder}/{FUNNEL}" for name, folder in folders.items()}
    known: dict[str, Any] = {"root": root, "assets": f"{root}{ASSETS}", "places": places, "section": template}
    known["exported"] = exported
    # Without a referrer, browsers send a form as from nowhere.
    known |= {"policy": FORM_POLICY if forms else POLICY, "referrer": "same-origin" if forms else "no-referrer"}
    return _environment().get_template(f"{template}.html.j2").render(**known, **values).encode("utf-8", "replace")


def asset(name: str) -> bytes:
    """A script or a style of ours."""
    return (files("prchain.view") / "assets" / name).read_bytes()
