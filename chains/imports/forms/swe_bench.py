"""SWE-bench: the whole set, Lite, Verified, Multilingual, and the rows of its harness 5.

Columns and the rule for images are those of the package ``swebench`` 5.0.2 (`swebench.types.SWEbenchInstance`,
`swebench.harness.utils.make_test_spec`, `swebench.task.checks.expected_image`). Ours are read, too: rows that
``prchain tasks export --format swebench`` wrote have the same columns and those of their chain.
"""

from __future__ import annotations

from collections.abc import Collection

from chains.imports import reader
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row

_OWN = frozenset({"environment_setup_commit", "eval_script", "image", "log_parser", "difficulty"})
_CORE = frozenset({"instance_id", "repo", "base_commit", "patch", "test_patch"})
_OTHERS = frozenset({"install_config", "docker_image", "image_name", "container_formatter", "fix_patch"})
_OURS = "chain_benchmark"
"""Of our rows alone: whether they were imported from a benchmark."""


class SweBench:
    """See the module."""

    help = "SWE-bench, Lite, Verified, rows of its harness 5"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        return {*columns} >= _CORE and bool(_OWN & {*columns}) and not _OTHERS & {*columns}

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        name = reader.instance_name(row)
        image = reader.image_column(row, "image")
        script = reader.text_or_none(row, "eval_script")
        return Instance(
            where.source,
            "swe-bench",
            name,
            reader.repository_name(row),
            reader.commit_name(row),
            reader.query_text(row),
            reader.patch_text(row, "patch"),
            reader.patch_text(row, "test_patch", needed=False),
            *reader.lists(row),
            image=image or reader.image_name("instance_id", expected_image(name)),
            image_by="column" if image else "rule",
            workdir="/testbed",
            test_command=reader.marked_commands(script) if script else (),
            log_parser=reader.word_or_none(row, "log_parser"),
            licence=reader.word_or_none(row, "license_name"),
            revision=where.revision,
            split=where.split or reader.word_or_none(row, "split"),
            difficulty=reader.word_or_none(row, "difficulty"),
            created_at=reader.time_or_none(row),
            benchmark=row.get(_OURS) not in (None, False),
            own=reader.word_or_none(row, "chain_id") if row.get(_OURS) is False else None,
        )


def expected_image(instance_id: str) -> str:
    """The image that SWE-bench publishes for an instance: Docker's hub takes no ``__``, so it writes ``_1776_``."""
    return f"swebench/sweb.eval.x86_64.{instance_id}:latest".lower().replace("__", "_1776_")


READER = SweBench()
