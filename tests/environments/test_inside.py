"""What runs inside a build's container: which packages come from the tree."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from environments.images.inside import forget_tree, wanted


def test_packages_of_the_tree_are_told_from_those_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    for name, origin in (
        ("ours", "file:///testbed"),
        ("below", "file:///testbed/packages/b"),
        ("other", "file:///testbed2"),
        ("remote", "https://h.example/x.whl"),
        ("plain", None),
    ):
        folder = site / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        if origin:
            (folder / "direct_url.json").write_text(json.dumps({"url": origin}))
    monkeypatch.setattr(sys, "path", [str(site)])
    assert forget_tree.packages_below("/testbed") == [("below", "packages/b"), ("ours", ".")]


def test_code_in_a_folder_of_its_own_is_of_the_project_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree/src/a.egg-info").mkdir(parents=True)
    (tmp_path / "tree/src/a.egg-info/PKG-INFO").write_text("Name: a\n")
    (tmp_path / "tree/setup.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "tree/src")])
    assert forget_tree.packages_below(str(tmp_path / "tree")) == [("a", ".")]


def test_what_older_tools_wrote_is_asked_for_as_today_s_read_it() -> None:
    """uvicorn of 2020; pip 24.1 and uv refuse such metadata."""
    metadata = (
        'Requires-Dist: a (>=0.13.*)\nRequires-Dist: b>=0.6,<0.7.* ; extra == "standard"\nRequires-Dist: c==1.*\n'
    )
    assert wanted.requirements(metadata, ["standard"]) == ["a (>=0.13)", "b>=0.6,<0.7", "c==1.*"]
    assert wanted.of_egg("a>=0.13.*\n\n[docs]\nb~=1.2.*\n", ["docs"]) == ["a>=0.13", "b~=1.2"]
