"""Packages that a stage's own landing begins to need are in its image, and in no other stage's."""

from __future__ import annotations

import pytest

from environments.images.added_requirements import added_requirements
from environments.images.image_plan import ImagePlan
from environments.images.plans import make_plan
from tests.environments.test_odd_manifests import Tree

PROJECT = (
    '[project]\nname = "a"\ndependencies = ["attrs>=1"{more}]\n[project.optional-dependencies]\ntest = ["pytest"]\n'
)
BEFORE = {"pyproject.toml": PROJECT.format(more="")}


def plan(before: dict[str, str], after: dict[str, str] | None) -> ImagePlan:
    return make_plan("o/n", Tree(before), base_image="b", landed=None if after is None else Tree(after))


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [
        (BEFORE, {"pyproject.toml": PROJECT.format(more=', "referencing>=0.2"')}, ("referencing>=0.2",)),
        (BEFORE, {"pyproject.toml": PROJECT.format(more=', "Attrs>=2"')}, ()),
        (BEFORE, {"pyproject.toml": PROJECT.format(more=', "x y", 5')}, ()),
        (BEFORE, {}, ()),
        (BEFORE, {**BEFORE, "requirements-dev.txt": "rpds-py\n"}, ("rpds-py",)),
        (BEFORE, {**BEFORE, "tox.ini": "[testenv]\ndeps = hypothesis\n"}, ("hypothesis",)),
        ({}, {"setup.py": "NEEDS = ['six']\nsetup(install_requires=NEEDS)\n"}, ("six",)),
        ({}, {"setup.cfg": "[options]\ninstall_requires =\n    b>1\n    c; extra<'3'\n"}, ("b>1", "c; extra<'3'")),
        ({}, {"pyproject.toml": "[tool.poetry.dependencies]\npython = '^3.8'\nd = '^1.2'\n"}, ("d>=1.2,<2",)),
        (
            {"pyproject.toml": "[dependency-groups]\ndocs = ['sphinx']\n"},
            {"pyproject.toml": "[dependency-groups]\ndocs = ['sphinx', 'furo']\ntest = ['sphinx']\n"},
            ("sphinx",),
        ),
    ],
)  # fmt: skip
def test_what_a_landing_adds_is_each_package_that_was_not_needed_before(
    before: dict[str, str], after: dict[str, str], added: tuple[str, ...]
) -> None:
    assert added_requirements(before, after) == added


def test_a_landing_that_adds_none_leaves_the_image_to_all_stages_and_one_that_does_has_its_own() -> None:
    alone, same = plan(BEFORE, None), plan(BEFORE, {"pyproject.toml": PROJECT.format(more="") + "# a comment\n"})
    assert (same.image, same.added) == (alone.image, ())
    more = plan(BEFORE, {"pyproject.toml": PROJECT.format(more=', "z", "y"')})
    assert more.added == ("z", "y") and more.image != alone.image
    assert more.files["wished.txt"] == b"z\ny\n" and alone.files["wished.txt"] == b""
    assert more.files["requirements.txt"] == alone.files["requirements.txt"]
