"""SWE-smith: faults that were brought into repositories which are at rest.

Its ``patch`` brings the fault in, and the reference takes it back (its guide to harnesses, `swesmith.harness.utils`).
``base_commit`` is a commit of the publisher's copy, which holds the fault already; the commit that was copied stands in
the name of the copy, ``swesmith/owner__name.1a2b3c4d``, and is what this reader gives. There is no test patch.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from chains.imports import reader
from chains.imports.instance import DataSet, Instance
from chains.imports.reader import Row
from prchain.core.errors import BadInstance

_COPY = re.compile(r"(?:[\w.-]+/)?(?P<owner>[A-Za-z0-9_.-]+?)__(?P<name>[A-Za-z0-9_.-]+)\.(?P<commit>[0-9a-f]{8,40})")

_LONGEST = 400
"""Beyond that a name is none, and takes the pattern minutes to see."""

_NEEDED = frozenset({"instance_id", "repo", "patch", "FAIL_TO_PASS"})


class SweSmith:
    """See the module."""

    help = "SWE-smith"

    def fits(self, columns: Collection[str]) -> bool:
        """See `Reader`."""
        return {*columns} >= _NEEDED and not {"test_patch", "container_formatter"} & {*columns}

    def read(self, row: Row, where: DataSet) -> Instance:
        """See `Reader`."""
        named = reader.text(row, "repo").strip()
        copy = _COPY.fullmatch(named) if len(named) <= _LONGEST else None
        if copy is None:
            raise BadInstance(f"repo is {named[:60]!r}, which is no copy of SWE-smith: OWNER__NAME.COMMIT")
        repository = reader.repository_name({"repo": f"{copy['owner']}/{copy['name']}"})
        (owner, name), commit = repository.split("/"), copy["commit"]
        instance_id = reader.instance_name(row)
        if not instance_id.lower().startswith(f"{owner}__{name}.{commit}.".lower()):
            raise BadInstance(f"instance_id is {instance_id[:60]!r}, and repo is another copy: {named[:60]!r}")
        image = reader.image_column(row, "image_name")
        return Instance(
            where.source,
            "swe-smith",
            instance_id,
            repository,
            commit,
            reader.query_text(row),
            reader.patch_text(row, "patch"),
            "",
            *reader.lists(row),
            breaks=True,
            image=image or reader.image_name("repo", expected_image(owner, name, commit)),
            image_by="column" if image else "rule",
            workdir="/testbed",
            revision=where.revision,
            split=where.split,
            created_at=reader.time_or_none(row),
        )


def expected_image(owner: str, name: str, commit: str) -> str:
    """The image of a copy where no column names one: that of its Python profiles (`RepoProfile.image_name`)."""
    return f"swebench/swesmith.x86_64.{owner}_1776_{name}.{commit[:8]}".lower()


READER = SweSmith()
