"""What people say of chains: stored once for each, and what `--labels` asks of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from sql.label_filter import DROP, KEEP, LabelFilter, fits
from sql.labels import labeller_name, labels_by_chain, read_labels, write_label
from tests.trajectories.sampleworld import sample_world


@pytest.mark.parametrize(
    ("said", "undropped", "kept"),
    [
        (set(), True, False),
        ({KEEP}, True, True),
        ({DROP}, False, False),
        ({KEEP, DROP}, False, False),
    ],
)
def test_a_chain_fits_by_what_everybody_says(said: set[str], undropped: bool, kept: bool) -> None:
    found = [fits({"c": said}, "c", wanted) for wanted in LabelFilter]
    assert found == [True, undropped, kept]
    assert fits({}, "c", LabelFilter.UNDROPPED) and not fits({}, "c", LabelFilter.KEPT)


def test_a_label_replaces_what_one_said_before_and_can_be_taken_back(tmp_path: Path) -> None:
    with sample_world(tmp_path) as world:
        with world.store.transaction() as tx:
            write_label(tx, "c1", "ann", KEEP, "  fine\x00\ud800 ")
            write_label(tx, "c1", "bob", KEEP)
            write_label(tx, "c1", "ann", DROP, "not so fine")
            write_label(tx, "c2", "bob", KEEP)
        with world.store.transaction() as tx:
            said = [(it.chain_id, it.labeller, it.label, it.note) for it in read_labels(tx)]
            assert said == [("c1", "ann", DROP, "not so fine"), ("c1", "bob", KEEP, None), ("c2", "bob", KEEP, None)]
            assert labels_by_chain(tx) == {"c1": {KEEP, DROP}, "c2": {KEEP}}
            write_label(tx, "c1", "ann", None)
            assert [it.labeller for it in read_labels(tx, "c1")] == ["bob"]


@pytest.mark.parametrize(("label", "note"), [("maybe", ""), ("", ""), ("x" * 500, ""), (KEEP, "n" * 2_001)])
def test_what_is_no_label_is_refused(tmp_path: Path, label: str, note: str) -> None:
    with sample_world(tmp_path) as world, world.store.transaction() as tx, pytest.raises(UsageError):
        write_label(tx, "c1", "ann", label, note)


@pytest.mark.parametrize("name", ["", "  ", "n" * 65, "a\nb", "\x1b[31m", "a\u202eb"])
def test_a_name_is_one_short_line(name: str) -> None:
    with pytest.raises(UsageError, match="a labeller has a name of 1 to 64 characters"):
        labeller_name(name)
    assert labeller_name(" Ånn Lee ") == "Ånn Lee"
