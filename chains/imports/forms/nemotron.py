"""Rows of NVIDIA's training blends and of NeMo Skills: a row of another form, in a wrapping.

NeMo Gym's rows have it in ``responses_create_params.metadata`` with the row itself as JSON text (``instance_dict``);
NeMo Skills has ``dataset_name``, ``split`` and ``container_formatter`` beside the columns, and for Multi-SWE-bench the
row as JSON text (``original_row``). The row inside is read as what it is.

Rows of ``nv-internal-1`` have small letters, and of their tests a selection that is graded; the lines that run them are
a script in the row, which no image holds. See `NVInternalDatasetProcessor` of NeMo Gym's `swe_agents`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from chains.imports import reader
from chains.imports.forms import FORMS
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row
from prchain.core.errors import BadInstance

_MARKS = frozenset({"responses_create_params", "container_formatter"})
_SUBSETS = frozenset({"full", "lite", "verified", "multilingual", "multimodal"})
"""Of SWE-bench; a set for training is ``gym``."""

_SMALL = frozenset({"fail_to_pass", "fail_to_pass_select"})
_WORKDIR = "/app"
_WRAPPING = _MARKS | {"container_id", "dataset_name", "agent_ref", "subset", "split", "golden_patch"}


class Nemotron:
    """See the module."""

    help = "rows of NeMo Gym and NeMo Skills (Nemotron's blends)"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        return bool(_MARKS & {*columns})

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        outer = dict(row)
        outer |= reader.mapping(reader.mapping(row, "responses_create_params"), "metadata")
        inside = reader.mapping(outer, "instance_dict") or reader.mapping(outer, "original_row")
        inside = {name: value for name, value in (inside or outer).items() if name not in _WRAPPING}
        if small := "FAIL_TO_PASS" not in inside and not _SMALL.isdisjoint(inside):
            inside = _in_capitals(inside, outer)
        form = next((form for form in FORMS.values() if form is not self and form.fits(inside.keys())), None)
        if form is None:
            raise BadInstance("the row that is wrapped in it is of no form that is read")
        inner = DataSet(
            reader.word_or_none(outer, "dataset_name") or where.source,
            where.revision,
            reader.word_or_none(outer, "split") or where.split,
            where.names,
        )
        found = form.read(inside, inner)
        query = reader.text_or_none(outer, "problem_statement") or found.query
        if small:
            found = replace(found, image=None, image_by=None, workdir=_WORKDIR)
        if reader.word_or_none(outer, "subset") in _SUBSETS:
            found = replace(found, benchmark=True)
        image, by = _image(outer, found)
        return replace(found, form="nemotron", query=query, image=image, image_by=by, own=None)


def _in_capitals(inside: Row, outer: Row) -> Row:
    """A row of ``nv-internal-1`` with the columns of SWE-Gym. What is selected of its tests is what is graded."""
    row = {name: inside.get(name) for name in ("instance_id", "repo", "base_commit", "problem_statement", "test_patch")}
    row["patch"] = inside.get("patch") or outer.get("golden_patch")
    for name in ("fail_to_pass", "pass_to_pass"):
        selected = inside.get(f"{name}_select")
        row[name.upper()] = inside.get(name) if selected is None else selected
    return row


def _image(outer: Row, found: Instance) -> tuple[str | None, str | None]:
    """The image that ``container_formatter`` makes, where that is one of Docker's and no file of Apptainer's; else that
    of the row inside."""
    formatter = outer.get("container_formatter")
    if isinstance(formatter, list) and formatter:
        formatter = formatter[0]
    if not isinstance(formatter, str) or not formatter.startswith("docker://"):
        return found.image, found.image_by
    name = formatter.removeprefix("docker://")
    name = name.replace("{instance_id}", found.instance_id.replace("__", "_1776_").lower())
    return reader.image_name("container_formatter", name), "column"


READER = Nemotron()
