"""All pages of the demo: linked, the same in both ways, the same each time, and without what was left out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import chdir, closing
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prchain.core.errors import UsageError
from prchain.view import processes
from prchain.view.conversation import texts_of
from prchain.view.folder import LIST, write_site
from prchain.view.options import ViewOptions
from prchain.view.processes import SiteSource
from prchain.view.site import Site
from prchain.view.trees import ChainTrees
from sql.store import Store
from sql.tables import Chain, Trajectory
from tests.databases import open_new
from tests.prchain.view.pagereader import data_of, read_page, target
from tests.trajectories.demoworld import Ran
from tests.trajectories.sampleworld import SampleWorld
from trajectories.rollouts.report import trajectory_report
from trajectories.rollouts.step_diff import step_diff


def site_of(ran: Ran, store: Store, options: ViewOptions | None = None, once: bool = False) -> Site:
    return Site(
        store,
        options or ViewOptions(export=ran.folder / "samples.jsonl"),
        ran.folder / "mirrors",
        ran.folder,
        once=once,
    )


@pytest.fixture(scope="module")
def store(finished_demo: Ran) -> Iterator[Store]:
    # The demo mined a path beside its database.
    with (
        closing(Store.open_for_reading(str(finished_demo.folder / "prchain.db"))) as opened,
        chdir(finished_demo.folder),
    ):
        yield opened


@pytest.fixture(scope="module")
def folder(finished_demo: Ran, store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("view") / "pages"
    write_site(site_of(finished_demo, store, once=True), place)
    return place


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, bytes]:
    found = files_of(folder)
    del found[LIST]
    return found


def sent_back(ran: Ran) -> str:
    """The trajectory whose first stage is sent back until no attempt is left."""
    rows = ran.rows(Trajectory, "id", "chain_id", outcome="rejected")
    return next(str(name) for name, chain in rows if chain.startswith("3976"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_every_kind_of_page_is_there_and_none_is_empty(pages: dict[str, bytes]) -> None:
    kinds = {path.rpartition("/")[2] for path in pages}
    assert {"index.html", "task.html", "proof.html", "patch.html", "data.js", "conversation.txt"} <= kinds
    assert {"guidance.html", "row-1.html"} <= kinds
    assert any(kind.startswith("graph-") for kind in kinds)
    assert all(pages.values())


def test_every_link_leads_to_a_page_and_every_page_is_linked(pages: dict[str, bytes]) -> None:
    reached = {"index.html"}
    for path, body in pages.items():
        if not path.endswith(".html"):
            continue
        page = read_page(body)
        for link in [*page.links, *page.loads]:
            if urlsplit(link).scheme:
                assert link.startswith("https://"), (path, link)
                continue
            if link.startswith("#"):
                assert link[1:] in page.ids or link.startswith(("#stage-", "#verdict-", "#step-")), (path, link)
                continue
            assert target(path, link) in pages, (path, link)
            reached.add(target(path, link))
    assert {path for path in pages if path.endswith(".html")} <= reached


def test_pages_hold_no_script_and_no_style_of_their_own(pages: dict[str, bytes]) -> None:
    for path, body in pages.items():
        if path.endswith(".html"):
            page = read_page(body)
            assert not {name for name in page.attributes if name == "style" or name.startswith("on")}, path
            assert "style" not in page.tags, path
            assert {load.rpartition("/")[2] for load in page.loads} == {"view.css", "view.js"}, path
            assert "default-src 'none'" in unescape(body.decode()), path


def test_what_is_served_is_what_is_written(finished_demo: Ran, store: Store, pages: dict[str, bytes]) -> None:
    site = site_of(finished_demo, store)
    assert pages == {path: site.render(path) for path in site.pages()}


def test_two_views_of_one_database_are_the_same_bytes(
    finished_demo: Ran, store: Store, folder: Path, tmp_path: Path
) -> None:
    write_site(site_of(finished_demo, store, once=True), tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(folder)


def test_several_processes_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_FEWEST", 2)
    monkeypatch.setattr(processes, "_AT_ONCE", 2)
    with closing(open_new(tmp_path / "prchain.db")) as store:
        world = SampleWorld(store)
        for number in range(6):
            world.trajectory(f"{number:016x}", world.chain(f"{number:016x}"), sample=number)
    with closing(Store.open_for_reading(str(tmp_path / "prchain.db"))) as store:
        source = SiteSource(str(tmp_path / "prchain.db"), ViewOptions(), tmp_path, tmp_path, ())
        ticks: list[int] = []
        one = write_site(source.site(store), tmp_path / "one")
        two = write_site(source.site(store), tmp_path / "two", lambda: ticks.append(1), source=source, processes=2)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert (one.files, one.bytes) == (two.files, two.bytes) and len(ticks) == two.files > 40


def test_a_later_view_takes_away_what_it_does_not_write(
    finished_demo: Ran, store: Store, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "pages"
    shutil.copytree(folder, place)
    beside = tmp_path / "beside"
    beside.write_text("stays")
    with (place / LIST).open("a") as names:
        names.write("../beside\n")
    write_site(site_of(finished_demo, store, ViewOptions(outcome="accepted"), once=True), place)
    left = {path.name for path in (place / "trajectories").iterdir() if (path / "index.html").exists()}
    accepted = {row[0] for row in finished_demo.rows(Trajectory, "id", outcome="accepted")}
    assert left == accepted
    assert beside.read_text() == "stays"


def test_without_references_no_file_holds_a_line_of_one_that_is_not_in_the_agents_texts(
    finished_demo: Ran, store: Store
) -> None:
    options = ViewOptions(reference=False, export=finished_demo.folder / "samples.jsonl")
    site = site_of(finished_demo, store, options, once=True)
    shown = {path: site.render(path) or b"" for path in site.pages()}
    texts = {
        path: str(data_of(body)) if path.endswith("data.js") else read_page(body).text + body.decode()
        for path, body in shown.items()
        if not path.startswith("assets/")
    }
    said = ""
    for (trajectory,) in finished_demo.rows(Trajectory, "id"):
        for entry in trajectory_report(store, trajectory, messages=True).messages or ():
            said += "\n".join(texts_of(entry))
    lines: set[str] = set()
    for (chain,) in finished_demo.rows(Chain, "id"):
        trees = ChainTrees(store, chain, finished_demo.folder / "mirrors", finished_demo.folder)
        lines |= {line for line in trees.reference_lines() or () if line not in said and len(line) > 15}
    assert len(lines) > 20
    found = [(path, line) for path, text in texts.items() for line in lines if line in text]
    assert found == []


def test_a_chain_lights_up_the_lines_that_the_later_stage_changes(pages: dict[str, bytes], finished_demo: Ran) -> None:
    [chain] = [row[0] for row in finished_demo.rows(Chain, "id") if row[0].startswith("2cff")]
    body = pages[f"chains/{chain}/index.html"].decode()
    lines = {2: "4 lines of code", 3: "7 lines of code (8 in all)"}
    for stage, told in lines.items():
        assert f"Changes {told} of the stage before" in body
        assert f"Stage {stage} changes {told} of stage {stage - 1}, which are lit." in body
    assert body.count('class="l r lit"') == body.count('class="l a lit"') == 4 + 8


def test_the_data_of_a_trajectory_has_the_diff_of_each_step_as_rollouts_show_has_it(
    finished_demo: Ran, store: Store, pages: dict[str, bytes]
) -> None:
    trajectory = sent_back(finished_demo)
    data = data_of(pages[f"trajectories/{trajectory}/data.js"])
    turns = [message for message in data["messages"] if message["kind"] == "turn"]
    changed = 0
    for turn in turns:
        folders = {"mirrors": finished_demo.folder / "mirrors", "data_dir": finished_demo.folder}
        patch = step_diff(store, trajectory, turn["step"], **folders).patch.decode()
        added = [line for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
        shown = (
            [
                line
                for file in data["diffs"][turn["diff"]]
                for hunk in file["hunks"]
                for line in hunk[1:]
                if line[0] == "+"
            ]
            if "diff" in turn
            else []
        )
        assert shown == added
        changed += bool(shown)
    assert changed


def test_a_rejected_round_is_out_of_the_loss_and_its_verdict_stands_after_it(
    finished_demo: Ran, pages: dict[str, bytes]
) -> None:
    trajectory = sent_back(finished_demo)
    messages = data_of(pages[f"trajectories/{trajectory}/data.js"])["messages"]
    places = [place for place, message in enumerate(messages) if message["kind"] == "verdict"]
    assert all(messages[place - 1]["attempt"] == messages[place]["attempt"] for place in places)
    assert all(not messages[place]["accepted"] and messages[place]["comment"] for place in places)
    assert {message["reason"] for message in messages if message["kind"] == "turn"} == {"refinement"}


def test_a_missing_mirror_leaves_pages_without_diffs_that_say_so(
    finished_demo: Ran, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prchain.core.errors import NotARepository
    from prchain.view import trees

    def gone(*_: object) -> None:
        raise NotARepository("demo/measures was mined from /gone, which is gone; mine it again")

    monkeypatch.setattr(trees, "open_git", gone)
    site = site_of(finished_demo, store, once=True)
    for path in site.pages():
        if not path.startswith(("chains/", "trajectories/")):
            continue
        body = site.render(path)
        assert body is not None, path
        if path.startswith("chains/") and path.count("/") == 2 and path.endswith("/index.html"):
            assert "No diffs: demo/measures was mined from /gone" in body.decode()
            assert 'class="diff"' not in body.decode()
        if path.endswith("data.js"):
            assert data_of(body)["diffs"] == []


def test_without_reasoning_no_thought_is_in_any_file(finished_demo: Ran, store: Store) -> None:
    site = site_of(finished_demo, store, ViewOptions(reasoning=False))
    for path in site.pages():
        if path.endswith("data.js"):
            assert not any(message.get("thoughts") for message in data_of(site.render(path) or b"")["messages"])


@pytest.mark.parametrize(
    "path",
    [
        "",
        "nothing.html",
        "assets/../cli.py",
        "assets/site.py",
        "chains/0/index.html",
        "chains/after-0.html",
        "../index.html",
        "trajectories/0/data.js",
        "trajectories/after-0.html",
        "counted/1/chains/x/index.html",
        "counted/1/tasks/index.html",
    ],
)
def test_a_path_that_is_no_page_has_none(finished_demo: Ran, store: Store, path: str) -> None:
    assert site_of(finished_demo, store).render(path) is None


def test_an_outcome_that_no_trajectory_has_is_told_and_not_shown_as_nothing(finished_demo: Ran, store: Store) -> None:
    with pytest.raises(UsageError, match=r"no trajectory ended as 'blah'; the outcomes are accepted.*, rejected"):
        site_of(finished_demo, store, ViewOptions(outcome="blah")).warm()


def test_a_count_of_candidates_says_what_its_outcome_means(finished_demo: Ran, store: Store) -> None:
    site = site_of(finished_demo, store)
    found = re.compile(r"counted/\d+/candidates/\w+/unlinked/index\.html")
    page = next(filter(found.fullmatch, site.pages()))
    text = (site.render(page) or b"").decode()
    assert "nothing that may be a stage builds on it" in text


def test_why_a_run_is_not_believed_stands_at_the_head_of_the_page(finished_demo: Ran, pages: dict[str, bytes]) -> None:
    rows = finished_demo.rows(Trajectory, "id", "reason")
    [tampered] = [str(name) for name, reason in rows if "tampered" in str(reason)]
    head = pages[f"trajectories/{tampered}/index.html"].decode().partition('<div class="stages">')[0]
    text = read_page(head.encode()).text
    assert "Tampered: why the test run of stage 1, attempt 1 is not believed" in text
    assert "replaced in the runner: unittest.TestCase._callTestMethod" in text
    assert "the runner's own code is replaced" in text and 'href="#step-2"' in head
    others = [pages[f"trajectories/{name}/index.html"] for name, _ in rows if name != tampered]
    assert not [page for page in others if b"is not believed" in page]
