"""SWE-rebench, the first: its whole set, the filtered one, the leaderboard's.

Images are in a column (``docker_image``, later ``image_name``), or are named by its fork of SWE-bench's harness with
the namespace ``swerebench`` (`TestSpec.instance_image_key`). Commands and log parser are in ``install_config``.
"""

from __future__ import annotations

from collections.abc import Collection

from chains.imports import reader
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row

_OWN = frozenset({"install_config", "docker_image"})
_HIGHEST = 1_000
"""Beyond it a score is none: they go from 0 to 3."""

_SECOND = frozenset({"pr_description"})


class SweRebench:
    """See the module."""

    help = "SWE-rebench 1, its leaderboard"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        others = {"container_formatter", "fix_patch", *_SECOND}
        if "interface" in columns and "docker_image" not in columns:
            return False  # the second has it; of the first only the leaderboard's rows, which name their image
        return "test_patch" in columns and bool(_OWN & {*columns}) and not others & {*columns}

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        name = reader.instance_name(row)
        image = reader.image_column(row, "docker_image", "image_name")
        config = reader.mapping(row, "install_config")
        score = reader.mapping(reader.mapping(row, "meta"), "llm_score").get("difficulty_score")
        return Instance(
            where.source,
            "swe-rebench",
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
            test_command=reader.commands(config.get("test_cmd"), "install_config.test_cmd"),
            log_parser=reader.word_or_none(config, "log_parser"),
            licence=reader.word_or_none(row, "license_name"),
            revision=where.revision,
            split=where.split,
            difficulty=str(score) if type(score) is int and abs(score) <= _HIGHEST else None,
            created_at=reader.time_or_none(row),
        )


def expected_image(instance_id: str) -> str:
    """The image of an instance where no column names one."""
    return f"swerebench/sweb.eval.x86_64.{instance_id.lower()}:latest".replace("__", "_1776_")


READER = SweRebench()
