"""The demo's pages in Chromium: none complains, asks for anything outside, or keeps people out.

`make test ARGS="-k test_browser" PRCHAIN_TEST_PICTURES=DIR` keeps pictures; `docs/view.png` is its `view.png`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import pytest

from prchain.view.folder import write_site
from prchain.view.options import ViewOptions
from prchain.view.server import ViewServer
from prchain.view.site import Site
from sql.store import Store
from sql.tables import ChainLabel
from tests.databases import open_new
from tests.prchain.view.browsing import Complaints, browser, one_of_each_kind, open_page, program, too_wide, violations
from tests.prchain.view.curatedrows import add_windows
from tests.samples import drawn
from tests.trajectories.demoworld import Ran
from tests.trajectories.sampleworld import SampleWorld, Talk

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(program() is None, reason="there is no Chromium: Debian's package chromium"),
    # playwright runs its own loop beside the tests'.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

PICTURES = "PRCHAIN_TEST_PICTURES"
"""A folder that keeps what the pages look like."""

ONE_IN = 4
"""Of so many pages that are not the one of their kind one is opened."""

NARROW = 360
LOOKS = (("light", 1400), ("dark", 1400), ("light", NARROW), ("light", 3840))


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def folder(finished_demo: Ran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("browser")
    own = finished_demo.copied(made / "here")
    with closing(Store.open(str(own / "prchain.db"), create=False)) as store, chdir(own):
        add_windows(store)
        options = ViewOptions(export=own / "samples.jsonl")
        write_site(Site(store, options, own / "mirrors", own, once=True), made / "pages")
    return made / "pages"


def paths_of(folder: Path) -> list[str]:
    return [line for line in (folder / "files.txt").read_text().splitlines() if line.endswith(".html")]


def kept(page: Any, name: str) -> None:
    """Keep a picture, where one is wanted."""
    if place := os.environ.get(PICTURES):
        Path(place).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(place) / f"{name}.png"))


def test_no_page_complains_asks_elsewhere_is_too_wide_or_keeps_people_out(running: Any, folder: Path) -> None:
    complaints = Complaints(folder.as_uri())
    kinds = {path: kind for kind, path in one_of_each_kind(paths_of(folder)).items()}
    others = [path for path in paths_of(folder) if path not in kinds]
    wide, kept_out = [], []
    with running.new_context() as context:
        page = complaints.of(context.new_page())
        for place, path in enumerate([*kinds, *drawn(others, len(others) // ONE_IN, "pages in a browser")]):
            open_page(page, f"{folder.as_uri()}/{path}")
            looks = [*enumerate(LOOKS)]
            for number, (scheme, width) in drawn(looks, 2, f"looks at {path}") if path in kinds else looks:
                # Pages of one kind are alike but for their texts: one is looked at in two looks of a draw, the others
                # in one, and on a phone, where long words are too wide first.
                in_turn = place % 3 == number
                if not (path in kinds or in_turn or width == NARROW):
                    continue
                page.emulate_media(color_scheme=scheme)
                if too_wide(page, width):
                    wide.append((path, width))
                if path in kinds:
                    kept(page, f"{kinds[path]}-{scheme}-{width}")
                if width < 3840 and (path in kinds or in_turn):
                    # No colour changes with the width.
                    colours = not (path in kinds and width == NARROW)
                    kept_out += [(path, scheme, width, words) for words in violations(page, colours=colours)]
    assert complaints.found == []
    assert wide == []
    assert kept_out == []


def test_the_picture_of_the_readme_is_small_and_shows_lines_that_are_lit(running: Any, folder: Path) -> None:
    """`docs/view.png`, which the README shows, is made here."""
    with running.new_context(color_scheme="light", viewport={"width": 1000, "height": 560}) as context:
        page = context.new_page()
        chain = next(path for path in sorted((folder / "chains").iterdir()) if path.name.startswith("2cff"))
        open_page(page, f"{chain.as_uri()}/index.html")
        page.locator(".l.lit").first.evaluate("it => it.scrollIntoView({ block: 'center' })")
        assert len(page.screenshot()) < 200_000
        kept(page, "view")


def test_served_pages_are_quiet_under_their_policy_and_a_form_stores_what_is_chosen(
    running: Any, finished_demo: Ran, tmp_path: Path
) -> None:
    own = finished_demo.copied(tmp_path / "here")
    with closing(Store.open(str(own / "prchain.db"), create=False)) as store, chdir(finished_demo.folder):
        options = ViewOptions(export=own / "samples.jsonl")
        site = Site(store, options, own / "mirrors", own, labeller="ann")
        with ViewServer(site, "t0ken") as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            base = server.url.removesuffix("index.html")
            complaints = Complaints(base)
            kinds = one_of_each_kind(list(site.pages()))
            with running.new_context(viewport={"width": 1400, "height": 900}) as context:
                page = complaints.of(context.new_page())
                for path in kinds.values():
                    open_page(page, base + path)
                open_page(page, base + kinds["chains-one-index"])
                page.check("input[name=label][value=drop]")
                page.fill("#note", "<b>two</b> unrelated fixes")
                page.click("form.label button")
                page.wait_for_selector("html[data-ready]")
                shown = page.inner_text("#labels table")
            server.shutdown()
        with store.reading() as tx:
            stored = list(tx.rows(ChainLabel, "labeller", "label", "note"))
    assert "ann" in shown and "<b>two</b> unrelated fixes" in shown
    assert [tuple(row) for row in stored] == [("ann", "drop", "<b>two</b> unrelated fixes")]
    assert complaints.found == []


def test_keys_search_and_the_address_lead_through_a_trajectory(running: Any, folder: Path) -> None:
    path = max((folder / "trajectories").glob("*/conversation.txt"), key=lambda file: file.stat().st_size).parent
    complaints = Complaints(folder.as_uri())
    with running.new_context(viewport={"width": 1400, "height": 900}) as context:
        page = complaints.of(context.new_page())
        open_page(page, f"{path.as_uri()}/index.html#step-3")
        assert page.get_attribute(".msg.here", "id") == "step-3"
        page.keyboard.press("j")
        assert page.get_attribute(".msg.here", "id") == "step-4" and page.url.endswith("#step-4")
        page.keyboard.press("k")
        page.keyboard.press("d")
        assert page.locator(".msg.here .diff").count() >= 1
        assert page.locator(".tools button[aria-keyshortcuts=d]").inner_text().split() == ["next", "edit", "d"]
        page.keyboard.press("/")
        page.keyboard.type("measures")
        page.wait_for_function("document.querySelector('.tools [role=status]').textContent.includes('message')")
        page.keyboard.press("Enter")
        assert page.locator(".msg.here mark.hit").count() >= 1
        page.uncheck("text=observations")
        assert page.locator(".msg.observation:visible").count() == 0
        page.click(".theme")
        assert page.get_attribute("html", "data-theme") == "dark"
        with_errors = 0
        for place in paths_of(folder):
            if not place.startswith("trajectories/") or not place.endswith("/index.html"):
                continue
            open_page(page, f"{folder.as_uri()}/{place}")
            if page.locator(".tools button[aria-keyshortcuts=e]").count():
                page.keyboard.press("e")
                with_errors += page.locator(".msg.here > header .badge.bad, .msg.here > header .badge.odd").count()
        assert with_errors >= 1
    assert complaints.found == []


def test_a_search_lights_up_every_place_and_what_is_hidden_stays_so_further_down(running: Any, tmp_path: Path) -> None:
    talk = Talk().system().query(1)
    for step in range(40):
        talk.bash(f"cat {step}.py", "a.b İ A.B, axb\n" * 8, text="Look.", reasoning="a.b once more")
    with closing(open_new(tmp_path / "prchain.db")) as store:
        world = SampleWorld(store)
        world.trajectory("b" * 16, world.chain("c" * 16), talk)
        write_site(Site(store, ViewOptions(), tmp_path, tmp_path, once=True), tmp_path / "pages")
    complaints = Complaints(tmp_path.as_uri())
    with running.new_context(viewport={"width": 1400, "height": 900}) as context:
        page = complaints.of(context.new_page())
        open_page(page, f"{(tmp_path / 'pages' / 'trajectories' / ('b' * 16)).as_uri()}/index.html")
        page.uncheck("text=reasoning")
        page.fill(".tools input[type=search]", "A.b")
        page.keyboard.press("Shift+Enter")
        assert page.locator(".msg.here mark.hit").count() == 16
        page.keyboard.press("Shift+Enter")
        assert page.locator(".msg.here mark.hit").count() == 1 and page.locator(".thoughts:visible").count() == 0
        page.fill(".tools input[type=search]", "İ")
        assert page.locator(".tools .legend").inner_text().split("\n")[0].strip().startswith("step")
    assert complaints.found == []
