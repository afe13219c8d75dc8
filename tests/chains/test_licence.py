"""Licences read from the trees of repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from identify.vendor.licenses import LICENSES

from chains.stages.licence import licence_of, licence_of_text
from prchain.core.git import GitRepository
from tests.growth import assert_linear
from tests.miner.gitworld import Content, World

TEXTS = dict(LICENSES)
APACHE_WITHOUT_APPENDIX = TEXTS["Apache-2.0"].split("APPENDIX")[0]
NOTICE = TEXTS["Apache-2.0"][TEXTS["Apache-2.0"].index("   Licensed under the Apache") :]
BSD = TEXTS["BSD-3-Clause"].replace("the copyright holder nor", "the Example Developers nor")


def licence(folder: Path, files: dict[str, str]) -> str | None:
    world = World(folder / "r.git")
    content: dict[str | bytes, Content] = {path: text for path, text in files.items()}  # noqa: C416  other types
    world.commit("main", content, "start")
    repository = GitRepository.open(world.save())
    return licence_of(repository, repository.refs("refs/heads")["refs/heads/main"])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"LICENSE.txt": "See src/shop/LICENSE.txt for the terms.\n", "src/shop/LICENSE.txt": TEXTS["MIT"]}, "MIT"),
        ({"LICENSE": "shop/LICENSE", "shop/LICENSE": BSD}, "BSD-3-Clause"),
        ({"LICENSE.txt": "See src/LICENSE.\n", "src/LICENSE": "Ask us."}, None),
        ({"LICENSE.txt": "See src/LICENSE.\n", "LICENSE.rst": "Nobody may.", "lib.py": "x = 1\n"}, None),
        ({"LICENSE.txt": "Parts: vendor/LICENSE.\n", "vendor/LICENSE": TEXTS["MIT"]}, None),
        (
            {"LICENSE": "See a/LICENSE and b/LICENSE.", "a/LICENSE": TEXTS["MIT"], "b/LICENSE": TEXTS["GPL-2.0"]},
            None,
        ),
        ({"LICENSE": "See ../other/LICENSE.", "other/LICENSE": TEXTS["MIT"]}, None),
        ({"LICENSE": "See doc/LICENSE for the licence.", "doc/LICENSE": TEXTS["MIT"]}, "MIT"),
        ({"LICENSE": "sdk/LICENSE alone is MIT; all else is proprietary.", "sdk/LICENSE": TEXTS["MIT"]}, None),
        ({"LICENSE": "All rights reserved. Parts: ext/foo/LICENSE.", "ext/foo/LICENSE": TEXTS["MIT"]}, None),
        ({"LICENSE": "Free for non-commercial use, else as legal/LICENSE.", "legal/LICENSE": TEXTS["MIT"]}, None),
        ({"LICENSE": "This is of Acme. foo/LICENSE covers foo only.", "foo/LICENSE": TEXTS["MIT"]}, None),
        ({"LICENSE": "deps/foo/LICENSE", "deps/foo/LICENSE": TEXTS["MIT"]}, None),
        ({"LICENSE": "See https://example.org/a/LICENSE.", "a/LICENSE": TEXTS["MIT"]}, None),
    ],
)
def test_a_short_text_that_names_the_file_of_a_folder_counts_as_that_file(
    files: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    assert licence(tmp_path, files) == expected


@pytest.mark.parametrize("name", TEXTS)
def test_every_known_text_is_told_from_its_neighbours(name: str) -> None:
    assert licence_of_text(TEXTS[name]) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (APACHE_WITHOUT_APPENDIX, "Apache-2.0"),
        ("Copyright 2020 Example Inc.\n\n" + NOTICE, "Apache-2.0"),
        ("Copyright (c) 2010 A\n\n" + TEXTS["MIT"].split("\n\n", 2)[2], "MIT"),
        ("# The Licence of Example\n\n" + TEXTS["MIT"], "MIT"),
        (TEXTS["MIT"].replace("\n", "\r\n"), "MIT"),
        (TEXTS["MIT"].replace("  ", " ").upper(), "MIT"),
        (BSD, "BSD-3-Clause"),
        (BSD + "\n\nParts were taken from Other:\n\n" + TEXTS["GPL-2.0"], "BSD-3-Clause"),
        ("Everything is licensed to you.\n\n" + TEXTS["ISC"], "ISC"),
    ],
)
def test_what_projects_do_to_a_text_does_not_matter(text: str, name: str) -> None:
    assert licence_of_text(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "All rights reserved.",
        "This software may be used by friends of the author.",
        "Licensed under a modified version of the Apache License 2.0, with additional conditions.",
        '"Commons Clause" License Condition v1.0\n\n' + TEXTS["MIT"],
        TEXTS["MIT"] + "\nAdditional terms: use in weather machines is not permitted.\n",
        "You may use this under the MIT license for non-commercial ends.\n\n" + TEXTS["MIT"],
        TEXTS["MIT"][:300],
    ],
)
def test_what_is_no_licence_or_takes_one_back_is_unknown(text: str) -> None:
    assert licence_of_text(text) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"LICENSE": TEXTS["MIT"]}, "MIT"),
        ({"licence.md": TEXTS["MIT"]}, "MIT"),
        ({"COPYING": TEXTS["GPL-3.0"]}, "GPL-3.0"),
        ({"LICENSE-MIT": TEXTS["MIT"], "LICENSE-APACHE": TEXTS["Apache-2.0"]}, "Apache-2.0 OR MIT"),
        ({"LICENSE": TEXTS["Apache-2.0"], "LICENSE-MIT.txt": TEXTS["MIT"]}, "Apache-2.0 OR MIT"),
        (
            {"COPYING": "MIT or the Unlicense.", "LICENSE-MIT": TEXTS["MIT"], "UNLICENSE": TEXTS["Unlicense"]},
            "MIT OR Unlicense",
        ),
        ({"COPYING": TEXTS["GPL-3.0"], "COPYING.LESSER": TEXTS["LGPL-3.0"]}, "LGPL-3.0"),
        ({"LICENSE": TEXTS["MIT"], "LICENSE-3rdparty": TEXTS["GPL-3.0"], "LICENSE-docs": TEXTS["CC-BY-4.0"]}, "MIT"),
        ({"LICENSE-Artistic": TEXTS["Artistic-2.0"]}, "Artistic-2.0"),
        ({"LICENSE": "Terms of use. " * 300, "LICENSE-MIT": TEXTS["MIT"]}, None),
        ({"LICENSES/MIT.txt": "any", "LICENSES/CC0-1.0.txt": "any"}, "CC0-1.0 AND MIT"),
        ({"sub/LICENSE": TEXTS["MIT"], "licenses.py": "x", "LICENSE_CHECK/a": "x"}, None),
    ],
)
def test_the_licence_files_at_the_root_decide(files: dict[str, str], expected: str | None, tmp_path: Path) -> None:
    assert licence(tmp_path, {"a.py": "x", **files}) == expected


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", ["permission is hereby granted free of charge ", "a ", "\n\n", "\0", "Copyright "])
def test_the_time_to_read_hostile_files_grows_as_they_do(unit: str) -> None:
    assert_linear(lambda size: unit * (size // len(unit)), licence_of_text, 50_000)
