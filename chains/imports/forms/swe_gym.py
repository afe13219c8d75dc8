"""SWE-Gym and its Lite set: SWE-bench's columns without one that says in what environment tests are run.

Its images are named in its README and by the harness that made its trajectories (OpenHands): ``_s_`` for ``__``. Rows
of SWE-bench Multilingual have the same columns: the data set's name tells these, and their images are SWE-bench's.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from chains.imports import reader
from chains.imports.forms.swe_bench import expected_image as swe_bench_image
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row

_NEEDED = frozenset({"instance_id", "repo", "base_commit", "problem_statement", "patch", "FAIL_TO_PASS"})
_COLUMNS = _NEEDED | {"hints_text", "test_patch", "created_at", "version", "PASS_TO_PASS"}


class SweGym:
    """See the module."""

    help = "SWE-Gym, its Lite set"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        return "test_patch" in columns and _NEEDED <= {*columns} <= _COLUMNS

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        name = reader.instance_name(row)
        return Instance(
            where.source,
            "swe-gym",
            name,
            reader.repository_name(row),
            reader.commit_name(row),
            reader.query_text(row),
            reader.patch_text(row, "patch"),
            reader.patch_text(row, "test_patch", needed=False),
            *reader.lists(row),
            image=reader.image_name(
                "instance_id", swe_bench_image(name) if _is_swe_bench(where) else expected_image(name)
            ),
            image_by="rule",
            workdir="/testbed",
            revision=where.revision,
            split=where.split,
            created_at=reader.time_or_none(row),
        )


def _is_swe_bench(where: DataSet) -> bool:
    return any(re.search(r"swe[-_]?bench", name, re.I) for name in (where.source, *where.names))


def expected_image(instance_id: str) -> str:
    """The image of an instance."""
    return f"xingyaoww/sweb.eval.x86_64.{instance_id.replace('__', '_s_')}:latest".lower()


READER = SweGym()
