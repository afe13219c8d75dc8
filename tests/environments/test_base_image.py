"""The base image: which mirror apt knows, in both formats of its files, and what is said where none is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.images import base_image
from environments.images.base_image import AptSource, apt_sources, choose_sources, make_base_image, read_apt_sources
from prchain.core.errors import BuildFailed, UsageError

DEB822 = """# where from
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/off
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://mirror.example/source
Suites: bookworm
Components: main
"""

ONE_LINE = """
# deb http://old.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main  # the mirror
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/other stable extra
"""


def test_sources_are_read_in_debs_own_format() -> None:
    signed = "/usr/share/keyrings/debian.gpg"
    assert apt_sources(DEB822) == [
        AptSource("http://mirror.example/debian", suite, ("main", "contrib"), signed)
        for suite in ("bookworm", "bookworm-updates")
    ]


def test_sources_are_read_in_the_one_line_format() -> None:
    assert apt_sources(ONE_LINE) == [
        AptSource("http://mirror.example/debian", "bookworm", ("main",), "/k.gpg"),
        AptSource("http://mirror.example/other", "stable", ("extra",)),
    ]


def test_the_suite_itself_comes_first_and_its_fixes_follow() -> None:
    sources = [AptSource("s", "bookworm-security", ("main",)), AptSource("d", "bookworm", ("main",))]
    assert [source.uri for source in choose_sources(sources, "bookworm")] == ["d", "s"]
    assert [(it.uri, it.suite) for it in choose_sources(sources, "trixie")] == [("d", "trixie")]
    assert choose_sources([], "trixie") == []


@pytest.mark.parametrize("suite", ["", "--arch=x", "a b", "x; y"])
def test_a_release_is_a_word(suite: str) -> None:
    with pytest.raises(UsageError, match="no release"):
        make_base_image(None, suite=suite)


def test_files_of_apt_are_read_in_its_order_and_missing_ones_left_out(tmp_path: Path) -> None:
    assert read_apt_sources(tmp_path) == []
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "b.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "a.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d" / "c.list.bak").write_text(ONE_LINE)
    assert len(read_apt_sources(tmp_path)) == 4


@pytest.fixture
def _as_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "debootstrap"
    program.write_text("#!/bin/sh\necho 'I: Retrieving'\necho 'E: Failed getting release file'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)


def test_without_root_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="root"):
        make_base_image(None)


@pytest.mark.usefixtures("_as_root")
def test_a_machine_whose_apt_knows_no_mirror_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_image, "read_apt_sources", list)
    with pytest.raises(UsageError, match="--mirror"):
        make_base_image(None)


@pytest.mark.usefixtures("_as_root")
def test_debootstraps_failure_is_told_with_its_own_words() -> None:
    with pytest.raises(BuildFailed, match="Failed getting release file") as caught:
        make_base_image(None, mirror="http://mirror.example/debian")
    assert caught.value.step == "debootstrap"
