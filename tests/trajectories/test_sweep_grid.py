"""The grid of a sweep: policies, guides and variants, and what each of its settings asks."""

from __future__ import annotations

from typing import Any

import pytest

from prchain.core.errors import UsageError
from prchain.core.settings import PurposeSettings, Settings
from trajectories.studies.guidance.sweeps.grid import sweep_grid

OWN = {
    "small": PurposeSettings(model="small-32b", base_url="http://127.0.0.1:1/v1", temperature=0.7, price_input=1),
    "expert": PurposeSettings(model="sonnet", temperature=0.1),
    "prm": PurposeSettings(max_tokens=512),
}


def settings_with(**purposes: PurposeSettings) -> Settings:
    return Settings(llm_model="usual", purposes=purposes)


def names(*lists: str) -> list[str]:
    return [setting.name for setting in sweep_grid(settings_with(**OWN), *lists)]


def test_one_policy_and_one_guide_are_named_by_the_variant_alone() -> None:
    assert names("base,S,D") == ["base", "S", "D"]
    assert names("base,D", "small", "expert") == ["base", "D"]


def test_a_policy_stands_once_without_guidance_and_under_each_guide() -> None:
    assert names("base,S", "small,agent", "self,expert") == [
        "small: base", "small: S by self", "small: S by expert",
        "agent: base", "agent: S by self", "agent: S by expert",
    ]  # fmt: skip


@pytest.mark.parametrize(("policy", "guide", "agent", "prm"), [
    ("agent", "prm", None, {"max_tokens": 512}),
    ("agent", "self", None, {"max_tokens": 512}),
    ("agent", "expert", None, {"model": "sonnet", "temperature": 0.1}),
    ("small", "self", OWN["small"],
     {"model": "small-32b", "base_url": "http://127.0.0.1:1/v1", "price_input": 1.0, "max_tokens": 512}),
    ("small", "expert", OWN["small"], {"model": "sonnet", "temperature": 0.1}),
    ("prm", "prm", OWN["prm"], {"max_tokens": 512}),
], ids=range(6))  # fmt: skip
def test_a_setting_asks_the_models_of_its_policy_and_its_guide(
    policy: str, guide: str, agent: PurposeSettings | None, prm: dict[str, Any]
) -> None:
    settings = settings_with(**OWN)
    (setting,) = sweep_grid(settings, "D", policy, guide)
    found = setting.settings(settings)
    assert found.purposes.get("agent") == agent
    assert found.purposes["prm"].model_dump(exclude_defaults=True) == prm
    assert found.llm_model == "usual" and settings.purposes == OWN, "the settings themselves stay"


@pytest.mark.parametrize(("lists", "words"), [
    (("base,Q",), "no variant 'Q'"),
    (("D,D",), "the variant D is named twice"),
    ((",",), "--variants names no setting"),
    (("D", "smal"), "--policies: there is no [purposes.smal] in prchain.toml; did you mean small?"),
    (("D", "self"), "--policies: there is no [purposes.self]"),
    (("D", "agent", "nobody"), "--guides: there is no [purposes.nobody] in prchain.toml; known are prm, self"),
    (("D", "small,small"), "the purpose small is named twice"),
    (("D", ""), "--policies names no purpose"),
], ids=range(8))  # fmt: skip
def test_names_that_cannot_be_meant_are_refused(lists: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        sweep_grid(settings_with(**OWN), *lists)
    assert words in str(refused.value)
