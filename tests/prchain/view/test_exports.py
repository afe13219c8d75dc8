"""The pages of an exported file: each format's loss marks as its trainer reads them, and what is no such file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from prchain.view.options import ViewOptions
from prchain.view.site import Site
from prchain.view.training_rows import TrainingRow, read_row, slices
from tests.databases import open_new
from tests.prchain.view.pagereader import read_page
from tests.trajectories.sampleworld import SampleWorld, Talk
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions

KEPT, OTHER = "a" * 16, "b" * 16


def talk() -> Talk:
    """A stage whose first round is sent back, and a second stage."""
    found = Talk().system().query(1)
    found.bash("ls", "till.py", reasoning="First I look around.").submit().comment()
    found.bash("python -m pytest", "1 passed").submit()
    return found.query(2).bash("sed -n 1,9p till.py", "def total(): ...").submit()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleWorld]:
    folder = tmp_path_factory.mktemp("export")
    with closing(open_new(folder / "prchain.db")) as store:
        made = SampleWorld(store)
        chain = made.chain("c" * 16, length=2)
        made.trajectory(KEPT, chain, talk())
        made.trajectory(OTHER, chain, talk().turn("And one word more."), sample=1)
        yield made


def written(world: SampleWorld, file: Path, form: str, **options: object) -> Path:
    chosen = ExportOptions(duplicates="keep", **options)  # type: ignore[arg-type]
    export(world.store, chosen_format(form, chosen), chosen, file, force=True)
    return file


def site_of(world: SampleWorld, file: Path, **options: object) -> Site:
    return Site(world.store, ViewOptions(export=file, **options), file.parent, file.parent, once=True)  # type: ignore[arg-type]


def rows_of(file: Path, *, last_only: bool = False) -> list[TrainingRow]:
    lines = file.read_bytes().splitlines(keepends=True)
    return [read_row(number, line, last_only=last_only) for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("slime", {}),
        ("swift", {}),
        ("openai", {}),
        ("trl", {"rows": "turns"}),
        ("sharegpt", {"rows": "turns"}),
        ("trl", {"masks": frozenset(), "refinements": "keep"}),
        ("sharegpt", {"masks": frozenset(), "refinements": "keep"}),
    ],
)
def test_a_row_is_under_loss_where_its_trainer_trains(
    world: SampleWorld, tmp_path: Path, form: str, options: dict[str, object]
) -> None:
    slime = rows_of(written(world, tmp_path / "slime.jsonl", "slime", **{**options, "rows": "conversations"}))
    found = rows_of(written(world, tmp_path / "out.jsonl", form, **options), last_only=options.get("rows") == "turns")
    assert not any(row.problem for row in found)
    if options.get("rows") == "turns":
        assert [row.turns[0] for row in found] == [1] * sum(row.turns[0] for row in slime)
        assert all(row.messages[-1].train for row in found)
    elif form == "swift":  # there a turn of words and a call is two messages
        assert [row.trained for row in found] != [0, 0]
        assert all(row.turns[0] >= other.turns[0] for row, other in zip(found, slime, strict=True))
    else:
        assert [row.turns for row in found] == [row.turns for row in slime]
    for row in found:
        assert round(sum(part.width for part in slices(row))) == 100
        assert any("First I look around." in it.thoughts for it in row.messages) == (form != "openai")
        assert not any("First I look around." in it.text for it in row.messages)


def test_a_page_of_a_row_says_why_a_turn_is_not_under_loss(world: SampleWorld, tmp_path: Path) -> None:
    site = site_of(world, written(world, tmp_path / "sft.jsonl", "slime"))
    page = read_page(site.render("export/row-1.html") or b"").text
    assert "no loss: of a rejected round" in page and "under loss" in page and "First I look around." in page
    hidden = read_page(site_of(world, tmp_path / "sft.jsonl", reasoning=False).render("export/row-1.html") or b"").text
    assert "First I look around." not in hidden


def test_the_first_page_holds_the_card_and_rows_lead_to_their_trajectories(world: SampleWorld, tmp_path: Path) -> None:
    file = written(world, tmp_path / "sft.jsonl", "slime")
    page = read_page(site_of(world, file).render("export/index.html") or b"")
    assert "Under loss are" in page.text and "What was left out" in page.text
    assert "not the one that this card is of" not in page.text
    assert {f"../trajectories/{name}/index.html" for name in (KEPT, OTHER)} <= set(page.links)
    with file.open("a") as stream:
        stream.write("{}\n")
    changed = read_page(site_of(world, file).render("export/index.html") or b"").text
    assert "the file is not the one that this card is of" in changed
    assert "no row of prchain's: it has no messages" in changed
    (tmp_path / "sft.jsonl.card.json").write_text('{"files": 3}')
    assert "it is no card" in read_page(site_of(world, file).render("export/index.html") or b"").text


def test_rows_of_trajectories_that_the_view_leaves_out_have_no_page(world: SampleWorld, tmp_path: Path) -> None:
    site = site_of(world, written(world, tmp_path / "sft.jsonl", "slime"), limit=1)
    rows = [path for path in site.pages() if path.startswith("export/row-")]
    assert len(rows) == 1
    assert "1 row is not shown" in read_page(site.render("export/index.html") or b"").text
    nameless = written(world, tmp_path / "open.jsonl", "openai")
    rows = [path for path in site_of(world, nameless, limit=1).pages() if path.startswith("export/row-")]
    assert len(rows) == 1, "the card says whose each row is"
    (tmp_path / "open.jsonl.card.json").unlink()
    unknown = site_of(world, nameless, limit=1)
    assert not [path for path in unknown.pages() if path.startswith("export/row-")]
    assert unknown.render("export/row-1.html") is None


@pytest.mark.parametrize("options", [{}, {"rows": "turns"}])
def test_rows_that_do_not_name_their_trajectory_lead_to_it_by_the_card_of_this_very_file(
    world: SampleWorld, tmp_path: Path, options: dict[str, object]
) -> None:
    def leads_to(site: Site) -> list[str]:
        rows = sorted((path for path in site.pages() if path.startswith("export/row-")), key=len)
        links = [read_page(site.render(path) or b"").links for path in rows]
        found = [re.fullmatch("../trajectories/([0-9a-f]{16})/index.html", link) for it in links for link in it]
        return [it[1] for it in found if it]

    form, told = ("trl", "trl") if options else ("openai", "slime")
    named = [row.trajectory for row in rows_of(written(world, tmp_path / "sft.jsonl", told, **options))]
    file = written(world, tmp_path / "open.jsonl", form, **options)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    card = json.loads((tmp_path / "open.jsonl.card.json").read_text())
    assert card["files"][0]["trajectories"] == {name: named.count(name) for name in dict.fromkeys(named)}
    assert leads_to(site_of(world, file)) == named
    file.write_text("".join(json.dumps({**line, "metadata": {}}) + "\n" for line in reversed(lines)))
    assert leads_to(site_of(world, file)) == [], "of another file the card says nothing"


def test_the_totals_of_an_export_are_one_sum(world: SampleWorld, tmp_path: Path) -> None:
    for form, agrees in (("slime", True), ("openai", True), ("swift", False)):
        file = written(world, tmp_path / f"{form}.jsonl", form)
        card = json.loads((tmp_path / f"{form}.jsonl.card.json").read_text())
        texts, trained, whole = card["loss"]["tokens"], card["loss"]["tokens_under_loss"], card["tokens"]["total"]
        body = site_of(world, file).render("export/index.html") or b""
        page = " ".join(read_page(body).text.split())
        assert f"{whole:,} tokens in all samples = {texts:,} of the texts above + {whole - texts:,} of what" in page
        rows = rows_of(file)
        told = sum(row.tokens for row in rows), sum(row.trained for row in rows)
        assert (told == (texts, trained)) == agrees
        assert 'All rows</th><td class="n">{:,}</td><td class="n">{:,}</td>'.format(*told) in body.decode()
        assert ("They add up to what the card says of the texts." in page) == agrees
        assert ("the format writes some of them in another way" in page) != agrees


def test_rows_of_one_turn_say_why_they_hold_more_than_the_card_counts(world: SampleWorld, tmp_path: Path) -> None:
    site = site_of(world, written(world, tmp_path / "sft.jsonl", "trl", rows="turns"))
    page = (site.render("export/index.html") or b"").decode()
    assert "each row is one turn, and repeats all that came before it" in page


def test_what_was_left_out_for_another_one_leads_to_both(tmp_path: Path) -> None:
    with closing(open_new(tmp_path / "prchain.db")) as store:
        world = SampleWorld(store)
        chain = world.chain("c" * 16, length=2)
        for sample, name in enumerate((KEPT, OTHER)):
            world.trajectory(name, chain, talk(), sample=sample, trees=("a" * 40, "b" * 40))
        options = ExportOptions()
        export(store, chosen_format("openai", options), options, tmp_path / "sft.jsonl")
        card = json.loads((tmp_path / "sft.jsonl.card.json").read_text())
        assert card["left_out_for"] == [{"trajectory": OTHER, "reason": "duplicate_trees", "exported": KEPT}]
        page = read_page(site_of(world, tmp_path / "sft.jsonl").render("export/index.html") or b"")
        assert {f"../trajectories/{name}/index.html" for name in (KEPT, OTHER)} <= set(page.links)
        assert "Left out since another one is in the file: 1" in page.text


def test_a_file_that_changes_is_read_again(world: SampleWorld, tmp_path: Path) -> None:
    file = written(world, tmp_path / "sft.jsonl", "slime")
    site = Site(world.store, ViewOptions(export=file), tmp_path, tmp_path)
    assert site.render("export/row-2.html")
    file.write_bytes(file.read_bytes().split(b"\n", 1)[0] + b"\n")
    assert site.render("export/row-2.html") is None
    file.unlink()
    assert site.render("export/index.html") is None


def test_long_lists_of_rows_are_paged(world: SampleWorld, tmp_path: Path) -> None:
    line = json.dumps({"messages": [{"role": "assistant", "content": "hi"}]}) + "\n"
    (tmp_path / "many.jsonl").write_text(line * 205)
    site = site_of(world, tmp_path / "many.jsonl")
    pages = [path for path in site.pages() if path.startswith("export/")]
    assert len(pages) == len(set(pages)) == 3 + 205
    assert all(site.render(path) for path in pages)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.jsonl", None, "cannot be read: No such file"),
        ("folder", "", "is a folder; --export takes a file of JSON lines"),
        ("sft.parquet", "PAR1", "is Parquet; --export takes JSON lines"),
        ("notes.txt", "hello\n", "was not written by prchain export for a trainer .line 1: no JSON"),
        ("patches.jsonl", '{"instance_id": "a", "model_patch": ""}\n', "it has no messages"),
    ],
)
def test_what_is_no_export_is_one_line(
    world: SampleWorld, tmp_path: Path, name: str, content: str | None, words: str
) -> None:
    file = tmp_path / name
    if name == "folder":
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=words):
        site_of(world, file)


def test_hostile_lines_are_rows_that_say_what_is_wrong() -> None:
    for line in (b"[" * 100_000, b"\xff\xfe", b"null", b'{"messages": {"role": 1}}', b'{"messages": NaN}'):
        assert read_row(1, line).problem
    odd = {"messages": [3, {"role": ["x"], "content": {"a": 1}, "tool_calls": [7, {"function": "x"}]}], "metadata": 4}
    row = read_row(1, json.dumps(odd).encode())
    assert not row.problem and len(row.messages) == 1 and row.messages[0].calls == (("unknown", (("", ""),)),) * 2


def test_the_arguments_of_a_call_are_shown_one_by_one_as_they_were_meant() -> None:
    call = {"function": {"name": "bash", "arguments": json.dumps({"command": "ls\ncat a", "timeout": 3})}}
    row = read_row(1, json.dumps({"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}).encode())
    assert row.messages[0].calls == (("bash", (("command", "ls\ncat a"), ("timeout", "3"))),)
