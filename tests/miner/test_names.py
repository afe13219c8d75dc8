"""Names of repositories that change, without a forge."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from miner.names import full_name, rename
from sql.tables import Repository, RepositoryAlias
from tests.databases import open_new


@pytest.mark.parametrize(
    ("new", "names"),
    [
        ("acme/other", ["acme/other", "acme/other~2"]),
        ("Acme/Other", ["Acme/Other", "Acme/Other~2"]),
        ("ACME/Widgets", ["ACME/Widgets", "acme/other"]),
        ("acme/third", ["acme/third", "acme/other"]),
        ("acme/widgets", ["acme/widgets", "acme/other"]),
    ],
)
def test_who_has_a_name_gives_way_to_who_gets_it_but_not_to_itself(new: str, names: list[str], tmp_path: Path) -> None:
    rows = [
        {"id": number, "host": "example.org", "owner": "acme", "name": name, "location": ""}
        for number, name in ((1, "widgets"), (2, "other"))
    ]
    with closing(open_new(tmp_path / "names.db")) as store, store.transaction() as tx:
        tx.upsert(Repository, rows)
        rename(tx, 1, new)
        assert [full_name(tx, number) for number in (1, 2)] == names
        aliases = {alias for alias, _ in tx.rows(RepositoryAlias, "alias", "repository_id")}
        assert ("acme/widgets" in aliases) == (new.lower() != "acme/widgets")
