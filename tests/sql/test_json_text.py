"""Columns of JSON hold the text that they always held, letter by letter, and give values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text, update

from prchain.core.errors import RowUnreadable
from prchain.core.storable import clean_text
from sql.json_text import JsonText, as_stored
from sql.migrate import drift
from sql.store import Store
from sql.tables import Base, BuiltImage


def plain(value: Any) -> str:
    return json.dumps(value)


def in_order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def readable(value: Any) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False))


FORMS: dict[Callable[[Any], str], str] = {
    plain: """
        chain_stages.signs chain_stages.worth_signs cursors.detail curation_candidates.entries
        curation_candidates.faults curation_candidates.leftovers curation_candidates.notes curation_candidates.progress
        curation_candidates.rewrite curation_windows.established curation_windows.frontier curation_windows.waiting
        imported_trajectories.left_out
        dependencies.signs graph_messages.entry graph_nodes.reasons images.notes images.reason lineage.functions
        lineage.names prm_windows.leaks process_graphs.feedback process_graphs.notes reference_runs.baseline
        reference_runs.notes reference_runs.statuses reference_runs.tampered stage_tests.baseline stage_tests.classes
        stage_tests.files stage_tests.removed stage_tests.strength stage_tests.tampered trajectories.tools
    """,
    in_order: """
        graph_nodes.action mine_runs.replaced prm_windows.settings process_graphs.decided_by process_graphs.models
        process_graphs.options tasks.prompts trajectories.decided_by trajectories.options trajectories.prompts
    """,
    readable: """
        graded_trees.grade imported_trajectories.told
        imports.f2p imports.p2p imports.test_command
        task_stages.files task_stages.findings task_stages.interface tasks.findings trajectory_messages.details
        trajectory_messages.tool_calls trajectory_stages.check trajectory_stages.conflicts trajectory_stages.endings
        trajectory_stages.reset_tests verdicts.findings verdicts.grade
    """,
}
"""How the code of 0.1.0 wrote each column that it had; later ones have a form as well."""

COLUMNS = {
    f"{table.name}.{column.name}": column.type
    for table in Base.metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, JsonText)
}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
documents = st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=4)


def image(**columns: Any) -> dict[str, Any]:
    row = {"name": "i", "repository": "o/n", "recipe": "python", "outcome": "built", "notes": []}
    return {**row, "seconds": 0.0, "repairs": 0, "built_at": "", **columns}


def test_every_column_of_json_has_a_form() -> None:
    assert sorted(COLUMNS) == sorted(name for names in FORMS.values() for name in names.split())


@given(documents)
def test_a_column_writes_what_the_code_wrote_before(value: Any) -> None:
    for form, names in FORMS.items():
        assert {COLUMNS[name].text_of(value) for name in names.split()} == {form(value)}


@given(documents)
def test_tuples_and_what_was_read_write_the_same_text(value: Any) -> None:
    for column in (JsonText(), JsonText(sort_keys=True), JsonText(unicode=True)):
        written = column.text_of(value)
        given_value = tuple(value) if isinstance(value, list) else value
        assert column.text_of(given_value) == column.text_of(json.loads(written)) == written


def test_a_text_is_no_value() -> None:
    with pytest.raises(TypeError, match=r"tasks\.prompts takes JSON values"):
        COLUMNS["tasks.prompts"].text_of("{}")


def test_both_databases_store_the_text_and_give_the_value(store: Store) -> None:
    reason = {"message": "kein Platz für ü", "lines": ["\x00", "\ud800"]}
    with store.transaction() as tx:
        tx.upsert(BuiltImage, [image(reason=reason)])
    with store.reading() as tx:
        assert list(tx.rows(BuiltImage, "reason", "notes")) == [(reason, [])]
        assert list(tx.connection.execute(select(*as_stored([BuiltImage.reason, BuiltImage.seconds])))) == [
            (json.dumps(reason), 0.0)
        ]


def test_null_stays_null(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(BuiltImage, [image(reason=None)])
    with store.reading() as tx:
        assert list(tx.rows(BuiltImage, "reason")) == [(None,)]
        assert tx.connection.execute(text("SELECT reason IS NULL FROM images")).scalar_one()


def test_a_text_that_is_no_json_is_named_with_its_column(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(BuiltImage, [image()])
        tx.connection.execute(text("UPDATE images SET notes = '[broken'"))
    with (
        pytest.raises(RowUnreadable, match=r"^the database holds a text in images\.notes that is no JSON$"),
        store.reading() as tx,
    ):
        list(tx.rows(BuiltImage, "notes"))


def test_an_update_writes_the_same_form(store: Store) -> None:
    with store.transaction() as tx:
        tx.upsert(BuiltImage, [image()])
        tx.connection.execute(update(BuiltImage).values(notes=("ü",)))
    with store.reading() as tx:
        assert tx.connection.execute(text("SELECT notes FROM images")).scalar_one() == '["\\u00fc"]'


def test_a_new_column_of_json_is_a_text_in_its_migration(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import Column, MetaData

    grown = MetaData(naming_convention=Base.metadata.naming_convention)
    for table in Base.metadata.sorted_tables:
        table.to_metadata(grown)
    grown.tables["tasks"].append_column(Column("more", JsonText(sort_keys=True)))
    monkeypatch.setattr(Base, "metadata", grown)
    with store.reading() as tx:
        assert "sa.Column('more', sa.Text(), nullable=True)" in drift(tx.connection)
