"""`python -m research.view_pages FOLDER`: open pages of `prchain view --out FOLDER` in Chromium, and time some of them.

Needs Debian's chromium. It fails where a page logs an error, asks for anything outside the folder, or is wider than the
window; `--pictures DIR` keeps what it saw. `--bench` makes databases, and tells how long the first page, a trajectory
of 116 calls, one of 500 steps and a search in it take, and an export.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from research.view_pages.database import fill
from tests.prchain.view.browsing import Complaints, browser, one_of_each_kind, open_page, program, too_wide

LOOKS = (("light", 1400), ("dark", 1400), ("light", 360), ("light", 3840))

_CLOCK = """new MutationObserver(() => {
  if (document.documentElement?.dataset.ready) window.readyAt ??= performance.now();
}).observe(document, { attributes: true, attributeFilter: ['data-ready'], subtree: true });"""
"""Keeps when the script of a page was through, by the clock that starts with its navigation."""

_SEARCH = """(words) => {
  const box = document.querySelector('.tools input[type=search]');
  const started = performance.now();
  box.value = words;
  box.dispatchEvent(new Event('input'));
  return performance.now() - started;
}"""
"""Milliseconds of a search for some words."""


_PARTS = """() => {
  const [it] = performance.getEntriesByType('navigation');
  return [it.responseEnd, it.domInteractive];
}"""
"""Milliseconds until the last byte of a page, and until it was parsed, by the same clock."""


def look(folder: Path, running: Any, pictures: Path | None) -> list[str]:
    """Open a page of each kind in light, dark, on a narrow window and a wide one; returns what is wrong."""
    complaints = Complaints(folder.absolute().as_uri())
    paths = [line for line in (folder / "files.txt").read_text(encoding="utf-8").splitlines() if line]
    for scheme, width in LOOKS:
        context = running.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        page = complaints.of(context.new_page())
        for kind, path in one_of_each_kind(paths).items():
            open_page(page, f"{complaints.base}/{path}")
            if too_wide(page, width):
                complaints.found.append(f"{path} is wider than {width} pixels")
            if pictures:
                page.screenshot(path=str(pictures / f"{kind}-{scheme}-{width}.png"))
        context.close()
    return complaints.found


def opened(running: Any, address: str) -> tuple[Any, float]:
    """A page, and the milliseconds from where the browser turned to its address to where it could be read."""
    page = running.new_page(viewport={"width": 1400, "height": 900})
    page.add_init_script(_CLOCK)
    open_page(page, address)
    return page, float(page.evaluate("window.readyAt"))


def written(database: Path, out: Path) -> tuple[float, int]:
    """Seconds and bytes of an export."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "prchain", "view", "--db", str(database), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started, sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def bench(running: Any, folder: Path, trajectories: int) -> None:
    """Print the times."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    fill(folder / "few.db", [(116, 100_000), (500, 100_000)])
    written(folder / "few.db", folder / "few")
    for number, size in enumerate(("116 calls, 100,000 tokens", "500 steps")):
        page, took = opened(running, (folder / "few" / "trajectories" / f"{number:016x}" / "index.html").as_uri())
        searched, again = (page.evaluate(_SEARCH, words) for words in ("parse amount", "unit reader"))
        print(f"trajectory of {size}: readable in {took:.0f} ms; search {searched:.0f} ms, then {again:.0f} ms")
        page.close()
    fill(folder / "many.db", [(30, 30_000)] * trajectories)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, room = written(folder / "many.db", folder / "many")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"export of {trajectories:,} trajectories: {seconds:.1f} s ({processor:.1f} s of processor time), "
        f"{room / 1e6:.0f} MB, peak of memory {used.ru_maxrss / 1024:.0f} MB"
    )


def bench_first(running: Any, folder: Path, trajectories: int) -> None:
    """Print how long the first pages of a large database take, served: a cold cache each, in a browser that runs."""
    fill(folder / "large.db", [(2, 200)] * trajectories)
    started = time.perf_counter()
    command = [sys.executable, "-m", "prchain", "view", "--db", str(folder / "large.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            base = server.stdout.readline().partition("index.html")[0]
            took = 1000 * (time.perf_counter() - started)
            print(f"{trajectories:,} trajectories: prchain view tells its address after {took:.0f} ms")
            for path in (
                "index.html",
                "index.html",
                "trajectories/index.html",
                "chains/index.html",
                "money/index.html",
            ):
                page, took = opened(running, base + path)
                answered, parsed = page.evaluate(_PARTS)
                page.close()
                print(
                    f"{path} at {trajectories:,} trajectories, served: {took:.0f} ms; its last byte was there after "
                    f"{answered:.0f}, it was parsed after {parsed:.0f}"
                )
        finally:
            server.terminate()


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m research.view_pages", description="Pages in a real browser.")
    parser.add_argument("folder", nargs="?", type=Path, help="what `prchain view --out` wrote")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="keep pictures here")
    parser.add_argument("--bench", action="store_true", help="make databases and time their pages")
    parser.add_argument("--first", action="store_true", help="of the bench the first pages of a large database alone")
    parser.add_argument("--trajectories", type=int, default=1_000, metavar="N", help="of the bench's export")
    parser.add_argument("--large", type=int, default=10_000, metavar="N", help="trajectories of the bench's first page")
    options = parser.parse_args()
    if program() is None:
        parser.error("there is no Chromium; on Debian install the package chromium")
    with browser() as running:
        if options.pictures:
            options.pictures.mkdir(parents=True, exist_ok=True)
        wrong = look(options.folder, running, options.pictures) if options.folder else []
        if options.bench or options.first:
            with tempfile.TemporaryDirectory(prefix="prchain-view-") as folder:
                if options.bench:
                    bench(running, Path(folder), options.trajectories)
                running.new_page().close()  # no page waits for the browser's own start
                bench_first(running, Path(folder), options.large)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
