"""Hostile data in every column of text: nothing becomes markup, and every page is made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select, update

from prchain.view.folder import write_site
from prchain.view.options import ViewOptions
from prchain.view.site import Site
from sql.json_text import JsonText, as_stored
from sql.store import Store, Transaction
from sql.tables import Base, Chain, ChainLabel, TrajectoryMessage
from tests.databases import open_new
from tests.prchain.view.browsing import KINDS, Complaints, browser, one_of_each_kind, open_page, program, too_wide
from tests.prchain.view.curatedrows import add_windows
from tests.prchain.view.pagereader import data_of, read_page, target
from tests.trajectories.demoworld import Ran
from tests.trajectories.sampleworld import SampleWorld

HOSTILE = (
    "</script></textarea></title><script>boom()</script><img src=x onerror=boom()><svg/onload=boom()>"
    "\"'><style>*{}</style>{{ 7 * 7 }}{% raw %}\x00\x1b[31m\u202etxt\u2066 javascript:boom() <!-- ]]> &lt;b&gt; "
)
LONG = HOSTILE + "w" * 30_000
KEPT_AS_THEY_ARE = re.compile(
    r"^(id|.*_id|.*sha|.*tree|kind|role|outcome|side|strategy|host|owner|name|key|field|branch|.*_at|at|date|state"
    r"|scaffold|gate|judge_sees|counts|style|relation|verdict|how|reply|purpose|subject|default_branch|location|log_parser)$"
)
"""Columns that code reads, or that rows are joined by; `subject` of chains and landings is set by itself."""

KNOWN_TO_CODE = re.compile(r"[a-z0-9_.:/-]{0,24}|[0-9a-f]{40,64}|[0-9]{4}-[0-9]{2}-.*")
"""Texts in JSON that code looks up: names of kinds and outcomes, ids, hashes, dates."""
SEEN = {"chain_labels.note", "graph_nodes.statement", "graph_nodes.action", "curation_candidates.rewrite"} | {
    "prm_windows.guidance",
    "prm_findings.evidence",
    "trajectory_messages.tool_calls",
    "verdicts.grade",
}


def spoil(tx: Transaction) -> set[str]:
    """Put hostile text into every column of text that people, agents or repositories fill; returns which."""
    spoiled = set()
    for table in Base.metadata.sorted_tables:
        values: dict[str, Any] = {}
        for column in table.columns:
            is_subject = column.name == "subject" and table.name != "llm_calls"
            if column.primary_key or column.foreign_keys or isinstance(column.type, JsonText):
                continue
            if KEPT_AS_THEY_ARE.match(column.name) and not is_subject:
                continue
            if column.type.python_type is str:
                length = getattr(column.type, "length", None)
                values[column.name] = LONG[:length] if length else HOSTILE
                spoiled.add(f"{table.name}.{column.name}")
        if values:
            tx.connection.execute(update(table).values(values))
    # Texts that pages cut, and files of their own for the whole: each costs as much as a page.
    long = update(TrajectoryMessage).where(TrajectoryMessage.ordinal % 16 == 1).values(content=LONG)
    tx.connection.execute(long)
    word = update(TrajectoryMessage).where(TrajectoryMessage.ordinal == 17).values(content=HOSTILE + "w" * 1_000_000)
    tx.connection.execute(word)
    _spoil_json(tx, spoiled)
    return spoiled


def _spoil_json(tx: Transaction, spoiled: set[str]) -> None:
    """Texts inside JSON, whatever column it is in."""
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if not isinstance(column.type, JsonText):
                continue
            keys = list(table.primary_key.columns)
            [stored] = as_stored([column])
            for row in tx.connection.execute(select(*keys, stored.label("text_of_it"))).all():
                value = json.loads(row[-1] or "null")
                if (hostile := made_hostile(value)) != value:
                    where = [key == value for key, value in zip(keys, row[:-1], strict=True)]
                    tx.connection.execute(table.update().where(*where).values({column: hostile}))
                    spoiled.add(f"{table.name}.{column.name}")


def made_hostile(value: Any, key: str = "") -> Any:
    """JSON with hostile words before every text but those that code knows: short words, ids and hashes. Pure."""
    if isinstance(value, dict):
        return {_spoilt(name): made_hostile(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [made_hostile(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if key == "arguments":
        with suppress(ValueError):
            return json.dumps(made_hostile(json.loads(value)))
    return _spoilt(value)


def _spoilt(text: str) -> str:
    return text if KNOWN_TO_CODE.fullmatch(text) else HOSTILE + text


def spoil_export(file: Path, trajectory: str) -> Path:
    """A copy of an exported file and its card, every text of which is hostile, with a row that names its trajectory."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    facts = {"sample_id": HOSTILE, "trajectory_id": trajectory, "chain_id": HOSTILE, "tokens": 3}
    said = [{"from": "human", "value": "Mend it."}, {"from": "gpt", "value": f"<think>{LONG}</think>{'w' * 1_000_000}"}]
    rows += [{"conversations": said, "system": "", "tools": "[", "metadata": facts}, {"messages": "<script>"}]
    own = file.with_name("<img src=x onerror=boom()>.jsonl")
    own.write_text("".join(json.dumps(made_hostile(row)) + "\n" for row in rows), encoding="utf-8")
    for_people, for_programs = (file.with_name(f"{file.name}.card.{kind}") for kind in ("md", "json"))
    card = made_hostile(json.loads(for_programs.read_text(encoding="utf-8")))
    card["files"][0]["name"] = own.name
    own.with_name(f"{own.name}.card.json").write_text(json.dumps(card), encoding="utf-8")
    text = HOSTILE + for_people.read_text(encoding="utf-8")
    own.with_name(f"{own.name}.card.md").write_text(text, encoding="utf-8")
    return own


@pytest.fixture(scope="module")
def spoiled(finished_demo: Ran, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[str, bytes]]]:
    folder = finished_demo.copied(tmp_path_factory.mktemp("hostile") / "here")
    with closing(Store.open(str(folder / "prchain.db"), create=False)) as store:
        curated = add_windows(store)
        with store.transaction() as tx:
            label = {"label": "keep", "note": "", "labelled_at": "2026-01-01T00:00:00Z"}
            chains = [chain for (chain,) in tx.rows(Chain, "id")]
            names = [HOSTILE[place : place + 64] for place in (0, 40)]
            tx.upsert(ChainLabel, [{"chain_id": it, "labeller": name, **label} for it in chains for name in names])
            assert (spoiled := spoil(tx)) >= SEEN and len(spoiled) > 80
        options = ViewOptions(export=spoil_export(folder / "samples.jsonl", curated))
        site = Site(store, options, folder / "mirrors", folder, once=True)
        yield store, {path: site.render(path) or b"" for path in site.pages()}


def test_every_kind_of_page_but_figures_alone_shows_some_of_it(spoiled: tuple[Store, dict[str, bytes]]) -> None:
    kinds: dict[str, bool] = {}
    for path, body in spoiled[1].items():
        if path.endswith(".html"):
            [kind] = one_of_each_kind([path])
            kinds[kind] = kinds.get(kind, False) or "boom()" in read_page(body).text
    assert {kind for kind, shows in kinds.items() if not shows} == set()
    assert kinds.keys() >= KINDS


def test_nothing_of_it_becomes_markup(spoiled: tuple[Store, dict[str, bytes]]) -> None:
    seen = 0
    for path, body in spoiled[1].items():
        if not path.endswith(".html"):
            continue
        page = read_page(body)
        seen += "boom()" in page.text
        assert not {"img", "style", "iframe", "object", "form", "base"} & page.tags, path
        assert not {name for name in page.attributes if name.startswith("on")}, path
        assert len(page.loads) == 2, path
        for link in page.links:
            parts = urlsplit(link)
            assert parts.scheme in {"", "https"}, (path, link)
            if parts.scheme:
                assert parts.netloc == "github.com"
            elif not link.startswith("#"):
                assert target(path, link) in spoiled[1], (path, link)
    assert seen > 30


def test_no_page_holds_a_character_that_is_not_seen(spoiled: tuple[Store, dict[str, bytes]]) -> None:
    for path, body in spoiled[1].items():
        text = str(data_of(body)) if path.endswith("data.js") else body.decode()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), path


def test_the_data_of_a_trajectory_is_a_script_that_only_hands_over_data(
    spoiled: tuple[Store, dict[str, bytes]],
) -> None:
    scripts = [body for path, body in spoiled[1].items() if path.endswith("data.js")]
    assert scripts
    for body in scripts:
        assert re.fullmatch(rb'prchainData\("[A-Za-z0-9+/=]+"\);\n', body)
        assert any("boom()" in message.get("text", "") for message in data_of(body)["messages"])


def test_a_long_text_is_cut_and_the_whole_is_a_page_of_its_own(spoiled: tuple[Store, dict[str, bytes]]) -> None:
    path, body = next((path, body) for path, body in spoiled[1].items() if path.endswith("data.js"))
    message = next(message for message in data_of(body)["messages"] if message.get("whole"))
    assert "characters are left out here" in message["text"] and len(message["text"]) < 30_000
    assert b"w" * 30_000 in spoiled[1][target(path, message["whole"])]


def test_names_that_climb_out_of_the_folder_stay_in_it(tmp_path: Path) -> None:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        world = SampleWorld(store)
        chain = world.chain("../../etc")
        world.trajectory("../x/<b>", chain)
        world.select(chain, "evidence")
        site = Site(store, ViewOptions(), tmp_path, tmp_path, once=True)
        write_site(site, tmp_path / "deep" / "out")
        written = {file for file in tmp_path.rglob("*") if file.is_file() and file.suffix in {".html", ".js", ".txt"}}
        assert all(file.is_relative_to(tmp_path / "deep" / "out") for file in written)
        trajectories = [path for path in site.pages() if path.startswith("trajectories/x-")]
        assert trajectories and all(site.render(path) for path in trajectories)


def test_a_form_holds_its_note_and_its_labeller_as_text(spoiled: tuple[Store, dict[str, bytes]]) -> None:
    labeller = HOSTILE[:64]
    site = Site(spoiled[0], ViewOptions(), Path(), Path(), once=True, labeller=labeller)
    kinds = one_of_each_kind(list(spoiled[1]))
    page = read_page(site.render(kinds["chains-one-index"]) or b"")
    assert "form" in page.tags and not {"img", "style", "svg/onload=boom()"} & page.tags
    assert not {name for name in page.attributes if name.startswith("on")} and len(page.loads) == 2
    assert page.text.count("</textarea></title>") > 2


@pytest.mark.browser
@pytest.mark.skipif(program() is None, reason="there is no Chromium: Debian's package chromium")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_in_a_browser_none_of_it_runs_or_is_asked_for(spoiled: tuple[Store, dict[str, bytes]], tmp_path: Path) -> None:
    for path, body in spoiled[1].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(body)
    complaints = Complaints(tmp_path.as_uri())
    with browser() as running, running.new_context(viewport={"width": 1400, "height": 900}) as context:
        context.add_init_script("window.boom = () => { window.boomed = true; }")
        page = complaints.of(context.new_page())
        wide: list[tuple[str, int]] = []
        for path in one_of_each_kind(list(spoiled[1])).values():
            open_page(page, f"{complaints.base}/{path}")
            for fold in page.query_selector_all("details:not([open]) > summary")[:20]:
                fold.evaluate("it => { it.parentElement.open = true; }")
            assert not page.evaluate("Boolean(window.boomed)"), path
            assert (
                page.evaluate("document.querySelectorAll('main script, main img, main iframe, main style').length") == 0
            )
            wide += [(path, width) for width in (1400, 360) if too_wide(page, width)]
    assert complaints.found == []
    assert wide == []


def test_empty_tables_are_pages_that_say_what_to_run(tmp_path: Path) -> None:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        site = Site(store, ViewOptions(), tmp_path, tmp_path)
        shown = {path: (site.render(path) or b"").decode() for path in site.pages()}
    assert set(shown) == {
        "index.html",
        "assets/view.css",
        "assets/view.js",
        "chains/index.html",
        "trajectories/index.html",
        "compare/index.html",
        "money/index.html",
        "money/samples.html",
        "labels/index.html",
    }
    assert "prchain mine" in shown["index.html"]
    assert "prchain chains build" in shown["chains/index.html"]
    assert "prchain rollouts run" in shown["trajectories/index.html"]
    assert "prchain rollouts run" in shown["compare/index.html"]


def test_lists_are_paged_by_key(tmp_path: Path) -> None:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        world = SampleWorld(store)
        for number in range(205):
            world.trajectory(f"{number:016x}", world.chain(f"{number % 150:016x}"), sample=number)
        site = Site(store, ViewOptions(), tmp_path, tmp_path, once=True)
        lists = [path for path in site.pages() if re.fullmatch(r"trajectories/[^/]+", path)]
        assert len(lists) == 3
        found = [link for path in lists for link in read_page(site.render(path) or b"").links]
        shown = [link for link in found if re.search(r"trajectories/[0-9a-f]{16}/index\.html", link)]
        assert len(shown) == len(set(shown)) == 205
        limited = Site(store, ViewOptions(limit=7), tmp_path, tmp_path, once=True)
        assert sum(path.endswith("data.js") for path in limited.pages()) == 7
