"""SWE-rebench V2: many languages, one image a row, the repository in a folder of its own name.

Columns are those of its repository's ``sample.json`` and ``scripts/eval.py``, which has no rule for an image that is
not named. What it calls ``interface`` and ``pr_description`` is not part of the query.
"""

from __future__ import annotations

from collections.abc import Collection

from chains.imports import reader
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row


class SweRebenchV2:
    """See the module."""

    help = "SWE-rebench V2"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        own = {"pr_description", "interface"}
        others = {"container_formatter", "docker_image"}
        return "install_config" in columns and bool(own & {*columns}) and not others & {*columns}

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        repository = reader.repository_name(row)
        image = reader.image_column(row, "image_name")
        config = reader.mapping(row, "install_config")
        return Instance(
            where.source,
            "swe-rebench-v2",
            reader.instance_name(row),
            repository,
            reader.commit_name(row),
            reader.query_text(row),
            reader.patch_text(row, "patch"),
            reader.patch_text(row, "test_patch", needed=False),
            *reader.lists(row),
            image=image,
            image_by="column" if image else None,
            workdir=f"/{repository.partition('/')[2]}",
            test_command=reader.commands(config.get("test_cmd"), "install_config.test_cmd"),
            log_parser=reader.word_or_none(config, "log_parser"),
            licence=reader.word_or_none(row, "license"),
            revision=where.revision,
            split=where.split,
            difficulty=_difficulty(reader.mapping(row, "meta")),
            language=reader.word_or_none(row, "language"),
            created_at=reader.time_or_none(row),
        )


def _difficulty(meta: Row) -> str | None:
    """A model's word for it; the column holds an object, or a list of them."""
    said = meta.get("llm_metadata")
    first = said[0] if isinstance(said, list) and said else said
    return reader.word_or_none(first, "difficulty") if isinstance(first, dict) else None


READER = SweRebenchV2()
