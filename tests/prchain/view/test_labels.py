"""Labels of people: a form that only our own pages can send, and what is told of labels."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from prchain.cli import run
from prchain.view import labels as label_pages
from prchain.view.labels import neighbours, next_unlabelled, pairs_of
from prchain.view.options import ViewOptions
from prchain.view.server import ViewServer
from prchain.view.site import Site
from sql.label_filter import DROP, KEEP
from sql.labels import GivenLabel, read_labels, write_label
from tests.databases import new_database, open_new
from tests.prchain.view.pagereader import read_page
from tests.trajectories.sampleworld import SampleWorld

CHAIN = "c" * 16


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        found = SampleWorld(store)
        found.chain(CHAIN)
        found.select(CHAIN, "evidence")
        yield found


@pytest.fixture
def server(world: SampleWorld, tmp_path: Path) -> Iterator[ViewServer]:
    site = Site(world.store, ViewOptions(), tmp_path, tmp_path, labeller="ann")
    with ViewServer(site, "t0ken") as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


def post(
    server: ViewServer,
    fields: dict[str, str] | str,
    path: str = f"/t0ken/chains/{CHAIN}/label",
    kind: str = "application/x-www-form-urlencoded",
    headers: dict[str, str | None] | None = None,
) -> tuple[int, str]:
    """Status, and where it leads or what it says."""
    own = f"127.0.0.1:{server.server_address[1]}"
    sent = {"Host": own, "Origin": f"http://{own}", "Content-Type": kind, **(headers or {})}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    body = fields if isinstance(fields, str) else urlencode(fields)
    connection.request("POST", path, body, {name: value for name, value in sent.items() if value is not None})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers.get("Location") or text


def stored(world: SampleWorld) -> list[tuple[str, str, str, str | None]]:
    with world.store.reading() as tx:
        return [(it.chain_id, it.labeller, it.label, it.note) for it in read_labels(tx)]


def test_a_form_stores_a_label_and_leads_back_to_the_page(world: SampleWorld, server: ViewServer) -> None:
    assert post(server, {"label": "drop", "note": "stage 2 <b>is</b> a clean-up"}) == (303, "index.html#labels")
    assert stored(world) == [(CHAIN, "ann", DROP, "stage 2 <b>is</b> a clean-up")]
    page = read_page(server.site.render(f"chains/{CHAIN}/index.html") or b"")
    listed = read_page(server.site.render("labels/index.html") or b"").text
    assert "#1" in listed and "#2" in listed, "a chain is known by its pull requests"
    assert "Next chain that you have not labelled" in page.text or "You have labelled all other chains" in page.text
    assert "labels" in page.ids and "stage 2 <b>is</b> a clean-up" in page.text and "b" not in page.tags
    assert post(server, {"label": "keep", "note": ""})[0] == 303
    assert stored(world) == [(CHAIN, "ann", KEEP, None)]
    assert post(server, {"label": "", "note": "forget it"})[0] == 303
    assert stored(world) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1"},
    ],
)
def test_a_form_of_elsewhere_is_refused(world: SampleWorld, server: ViewServer, headers: dict[str, str | None]) -> None:
    assert post(server, {"label": "drop", "note": ""}, headers=headers)[0] == 403
    assert stored(world) == []


@pytest.mark.parametrize(
    "path",
    [
        f"/chains/{CHAIN}/label",
        f"/t0ke/chains/{CHAIN}/label",
        "/t0ken/chains/0/label",
        f"/t0ken/chains/{CHAIN}/index.html",
        "/t0ken/",
        f"/t0ken/trajectories/{CHAIN}/label",
        "/t0ken/chains/../chains/label",
    ],
)
def test_there_is_a_form_of_chains_that_are_there_behind_the_token(
    world: SampleWorld, server: ViewServer, path: str
) -> None:
    assert post(server, {"label": "drop", "note": ""}, path)[0] == 404
    assert stored(world) == []


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ("", "application/x-www-form-urlencoded"),
        ("label=drop", "application/x-www-form-urlencoded"),
        ("label=drop&note=x&labeller=bob", "application/x-www-form-urlencoded"),
        ("label=maybe&note=", "application/x-www-form-urlencoded"),
        ("label=drop&note=" + "n" * 2_001, "application/x-www-form-urlencoded"),
        ("label=drop&note=" + "n" * 40_000, "application/x-www-form-urlencoded"),
        ("&".join(["label=drop&note="] * 9), "application/x-www-form-urlencoded"),
        ("label=drop&note=", "text/plain"),
        ('{"label": "drop", "note": ""}', "application/json"),
    ],
)
def test_what_is_no_form_of_ours_is_refused(world: SampleWorld, server: ViewServer, fields: str, kind: str) -> None:
    assert post(server, fields, kind=kind)[0] == 400
    assert stored(world) == []


def test_a_note_of_any_characters_is_stored_as_text(world: SampleWorld, server: ViewServer) -> None:
    assert post(server, "label=keep&note=%00%ff%F0%9F%99%82%ED%A0%80")[0] == 303
    [(_, _, _, note)] = stored(world)
    assert note is not None and "🙂" in note and "\x00" not in note
    assert server.site.render(f"chains/{CHAIN}/index.html")


def test_the_longest_note_has_room_in_a_form(world: SampleWorld, server: ViewServer) -> None:
    assert post(server, {"label": "keep", "note": "🙂" * 2_000})[0] == 303
    assert len(stored(world)[0][3] or "") == 2_000


def test_a_page_with_a_form_may_send_it_home_alone_and_says_where_it_is_from(server: ViewServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request("GET", f"/t0ken/chains/{CHAIN}/index.html")
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    policy = str(answer.headers["Content-Security-Policy"])
    assert "form-action 'self'" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["Referrer-Policy"] == "same-origin", "else browsers send the form with the origin null"
    assert '<meta name="referrer" content="same-origin">' in body


def test_a_view_without_a_labeller_differs_in_the_form_alone(world: SampleWorld, tmp_path: Path) -> None:
    with world.store.transaction() as tx:
        write_label(tx, CHAIN, "bob", KEEP, "good")
    plain, labelling = (
        Site(world.store, ViewOptions(), tmp_path, tmp_path, labeller=labeller) for labeller in (None, "ann")
    )
    assert list(plain.pages()) == list(labelling.pages())
    for path in plain.pages():
        body = (plain.render(path) or b"").decode()
        other = re.sub(r'<form class="label".*?</form>\n', "", (labelling.render(path) or b"").decode(), flags=re.S)
        other = other.replace("form-action &#39;self&#39;", "form-action &#39;none&#39;")
        assert body == other.replace('content="same-origin"', 'content="no-referrer"'), path
    assert "<form" not in (plain.render(f"chains/{CHAIN}/index.html") or b"").decode()
    assert not plain.label(f"chains/{CHAIN}/label", DROP, "")


def test_how_far_two_people_agree_is_told() -> None:
    said = {"ann": "kkkddk", "bob": "kkdddk", "cat": "k"}
    labels = [
        GivenLabel(f"c{place}", name, KEEP if letter == "k" else DROP, None, "")
        for name, letters in said.items()
        for place, letter in enumerate(letters)
    ]
    first, *others = pairs_of(labels)
    assert (first.one, first.other, first.chains, first.same) == ("ann", "bob", 6, 5)
    assert first.kappa == pytest.approx((5 / 6 - 0.5) / 0.5)
    assert [(it.other, it.chains, it.kappa) for it in others] == [("cat", 1, None), ("cat", 1, None)]


def test_labels_are_listed_paged_and_those_of_chains_that_are_gone_stay(
    world: SampleWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_pages, "_ROWS", 2)
    for number in range(3):
        world.chain(f"{number:016x}", first=number + 2)
    with world.store.transaction() as tx:
        for number in range(3):
            write_label(tx, f"{number:016x}", "ann", KEEP, "secret reference" * (number == 0))
        write_label(tx, "d" * 16, "bob", DROP)
    site = Site(world.store, ViewOptions(), tmp_path, tmp_path, once=True)
    paths = [path for path in site.pages() if path.startswith("labels/")]
    assert paths == ["labels/index.html", f"labels/after-{1:016x}.html"]
    pages = [read_page(site.render(path) or b"") for path in paths]
    assert "secret reference" in pages[0].text and "not chosen any more" in pages[1].text
    assert site.render("labels/after-x.html") is None
    hidden = Site(world.store, ViewOptions(reference=False), tmp_path, tmp_path)
    assert "secret reference" not in "".join((hidden.render(path) or b"").decode() for path in hidden.pages())


def test_without_a_name_nothing_can_be_written(world: SampleWorld, tmp_path: Path) -> None:
    with ViewServer(Site(world.store, ViewOptions(), tmp_path, tmp_path), "t0ken") as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        assert post(running, {"label": "drop", "note": ""})[0] == 501
        running.shutdown()
    assert stored(world) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--label", "ann", "--out", "pages"], "chains are marked on pages that are served"), (["--label", ""], "a name")],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run(["view", "--db", new_database(tmp_path / "prchain.db"), *options]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("prchain: error: ")]
    assert len(lines) == 1 and words in lines[0]


def test_a_list_of_chains_leads_on_to_those_without_a_label() -> None:
    chains = ["a", "b", "c"]
    assert neighbours(chains, "a") == (None, "b") and neighbours(chains, "c") == ("b", None)
    assert neighbours(chains, "gone") == (None, None)
    assert next_unlabelled(chains, "b", {"b"}) == "c"
    assert next_unlabelled(chains, "c", {"a"}) == "b", "from the end on from the beginning"
    assert next_unlabelled(chains, "a", {"b", "c"}) is None
