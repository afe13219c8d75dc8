"""A real browser over the pages: Chromium without a window, and what it complains of."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # it refuses to run as root with one
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
KINDS = {
    *("funnel", "counted-index", "money-index", "money-samples", "labels-index", "export-index", "export-row"),
    *(f"chains-{name}" for name in ("index", "one-index", "one-task", "one-proof", "one-compare", "one-graph")),
    *(f"trajectories-{name}" for name in ("index", "one-index", "one-patch", "one-curation", "one-guidance")),
    *("compare-index", "compare-two"),
}
"""The kinds of pages, as `one_of_each_kind` names them."""
READY = "html[data-ready]"
"""What the pages' own script marks at its end."""

_AXE = """(colours) => axe.run({
  resultTypes: ['violations'],
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'],
  preload: false,
  rules: { 'color-contrast': { enabled: colours } },
})"""
"""Without `preload`, axe asks for no style sheet."""

PACKAGES = Path(os.environ.get("PRCHAIN_TEST_BROWSER", "/nowhere")).absolute()
"""The folder of playwright and axe, which `make test` installs where there is a browser."""


def program() -> str | None:
    """The browser of this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Complaints:
    """What went wrong while pages were open: words of the console, errors, requests to elsewhere."""

    base: str
    """What the address of every request has to begin with."""
    found: list[str] = field(default_factory=list)

    def of(self, page: Any) -> Any:
        """Listen to a page, and return it."""
        page.on("console", lambda message: self.found.append(f"{page.url}: console: {message.text[:300]}"))
        page.on("pageerror", lambda error: self.found.append(f"{page.url}: error: {str(error)[:300]}"))
        page.on("request", self._asked)
        page.on("requestfailed", lambda request: self.found.append(f"{page.url}: failed: {request.url[:200]}"))
        page.on("dialog", self._shown)
        return page

    def _shown(self, dialog: Any) -> None:
        self.found.append(f"a dialog: {dialog.message[:200]}")
        dialog.dismiss()

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.base):
            self.found.append(f"a request to {request.url[:200]}")


@contextmanager
def browser() -> Iterator[Any]:
    """The browser, running. It asks no host but those of its pages: there is no proxy and no name is looked up."""
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program(), args=list(ARGUMENTS))
        try:
            yield running
        finally:
            running.close()


def open_page(page: Any, address: str) -> None:
    """Go to a page and wait until its script is through."""
    page.goto(address)
    page.wait_for_selector(READY, timeout=60_000)


def one_of_each_kind(paths: Sequence[str]) -> dict[str, str]:
    """Name of a kind of page to the path of one: the last of each, in the order of a view. Pure."""
    kinds: dict[str, str] = {}
    for path in paths:
        if not path.endswith(".html"):
            continue
        first, _, rest = path.partition("/")
        if not rest:
            kinds["funnel"] = path
            continue
        name = rest.rpartition("/")[2].removesuffix(".html")
        name = "graph" if name.startswith("graph-") else "row" if name.startswith("row-") else name
        if first in ("compare", "chains", "trajectories") and name[:1].isdigit():
            name = "two"
        kinds[f"{first}-{name}" if rest.count("/") != 1 else f"{first}-one-{name}"] = path
    return kinds


def too_wide(page: Any, width: int) -> bool:
    """Whether a page has to be scrolled sideways in a window of this width."""
    page.set_viewport_size({"width": width, "height": 900})
    # What the size changes is done in the frames behind it (ResizeObserver).
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def violations(page: Any, *, colours: bool = True) -> list[str]:
    """What axe finds of serious and critical faults of accessibility, in the page as it is shown now; without `colours`
    it does not look at their contrast, which takes it longest."""
    from axe_playwright_python.base import AXE_FILE_PATH

    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(Path(AXE_FILE_PATH).read_text(encoding="utf-8"))
    found = page.evaluate(_AXE, colours)["violations"]
    return [
        f"{it['id']}: {it['help']}: {it['nodes'][0]['html'][:200]} ({len(it['nodes'])})"
        for it in found
        if it["impact"] in ("serious", "critical")
    ]
