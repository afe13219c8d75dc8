"""`python -m research.view_pages FOLDER`: open pages of `prchain view --out FOLDER` in Chromium, and time some of them.

Needs playwright (PyPI) and Debian's chromium. It fails where a page logs an error, asks for anything outside the
folder, or is wider than the window; `--pictures DIR` keeps what it saw. `--bench` makes databases, and tells how
long the first page, a trajectory of 116 calls, one of 500 steps and a search in it take, and an export.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from research.view_pages.database import fill

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LOOKS = (("light", 1400), ("dark", 1400), ("light", 360))
PARTS = {"chains": ("index.html", "task.html", "proof.html"), "trajectories": ("index.html", "patch.html")}

_SEARCH = """(words) => {
  const box = document.querySelector('.tools input[type=search]');
  const started = performance.now();
  box.value = words;
  box.dispatchEvent(new Event('input'));
  return performance.now() - started;
}"""
"""Milliseconds of a search for some words."""


@contextmanager
def browser(program: str) -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS, "--disable-sync"])
        yield running
        running.close()


def pages_of(folder: Path, most: int) -> list[str]:
    """Lists, and the pages of some chains and trajectories."""
    found = ["index.html", "chains/index.html", "trajectories/index.html"]
    for kind, names in PARTS.items():
        own = sorted(path for path in (folder / kind).iterdir() if path.is_dir())[:most]
        found += [f"{kind}/{path.name}/{name}" for path in own for name in names if (path / name).exists()]
    return found + [str(path.relative_to(folder)) for path in sorted(folder.glob("counted/**/index.html"))[:most]]


def look(folder: Path, running: Any, pictures: Path | None, most: int) -> list[str]:
    """Open pages in light, dark and on a narrow window; returns what is wrong."""
    wrong: list[str] = []
    base = folder.absolute().as_uri()
    for scheme, width in LOOKS:
        context = running.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        page = context.new_page()
        page.on("console", lambda message: wrong.append(f"console: {message.text[:200]}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {str(error)[:200]}"))
        page.on("request", lambda request: None if request.url.startswith(base) else wrong.append(request.url[:200]))
        for number, path in enumerate(pages_of(folder, most)):
            page.goto(f"{base}/{path}")
            page.wait_for_selector("html[data-ready]", timeout=20_000)
            if page.evaluate("document.documentElement.scrollWidth") > width:
                wrong.append(f"{path} is wider than {width} pixels")
            if pictures:
                page.screenshot(path=str(pictures / f"{scheme}-{width}-{number:02}.png"))
        context.close()
    return wrong


def opened(running: Any, address: str) -> tuple[Any, float]:
    """A page, and the milliseconds from its address to where it can be read."""
    page = running.new_page(viewport={"width": 1400, "height": 900})
    started = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    return page, 1000 * (time.perf_counter() - started)


def written(database: Path, out: Path) -> tuple[float, int]:
    """Seconds and bytes of an export."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "prchain", "view", "--db", str(database), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started, sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def bench(running: Any, folder: Path, trajectories: int) -> None:
    """Print the times."""
    fill(folder / "few.db", [(116, 100_000), (500, 100_000)])
    written(folder / "few.db", folder / "few")
    for number, size in enumerate(("116 calls, 100,000 tokens", "500 steps")):
        page, took = opened(running, (folder / "few" / "trajectories" / f"{number:016x}" / "index.html").as_uri())
        searched, again = (page.evaluate(_SEARCH, words) for words in ("parse amount", "unit reader"))
        print(f"trajectory of {size}: readable in {took:.0f} ms; search {searched:.0f} ms, then {again:.0f} ms")
        page.close()
    fill(folder / "many.db", [(30, 30_000)] * trajectories)
    seconds, room = written(folder / "many.db", folder / "many")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"export of {trajectories:,} trajectories: {seconds:.1f} s, {room / 1e6:.0f} MB, peak of memory {peak:.0f} MB"
    )
    _, took = opened(running, (folder / "many" / "index.html").as_uri())
    print(f"first page at {trajectories:,} trajectories, as a file: {took:.0f} ms")


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m research.view_pages", description="Pages in a real browser.")
    parser.add_argument("folder", nargs="?", type=Path, help="what `prchain view --out` wrote")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="keep pictures here")
    parser.add_argument("--most", type=int, default=4, metavar="N", help="chains, trajectories and lists of each kind")
    parser.add_argument("--bench", action="store_true", help="make databases and time their pages")
    parser.add_argument("--trajectories", type=int, default=1_000, metavar="N", help="of the bench's export")
    parser.add_argument("--chromium", default="/usr/bin/chromium", metavar="FILE", help="the browser")
    options = parser.parse_args()
    with browser(options.chromium) as running:
        if options.pictures:
            options.pictures.mkdir(parents=True, exist_ok=True)
        wrong = look(options.folder, running, options.pictures, options.most) if options.folder else []
        if options.bench:
            with tempfile.TemporaryDirectory(prefix="prchain-view-") as folder:
                bench(running, Path(folder), options.trajectories)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
