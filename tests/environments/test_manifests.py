"""Manifests: what makes two trees share an image, what a Python project asks for, and the names of images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from environments.images.image_settings import BuildSettings
from environments.images.manifests import image_name, manifest_hash, manifest_paths, relevant
from environments.images.plans import make_plan, version_of_tags
from environments.images.python_project import read_project
from environments.images.recipes import choose
from environments.images.requirement_lines import lock_pins, poetry_requirement, poetry_specifier
from prchain.core.errors import SettingsError
from prchain.core.settings import Settings
from tests.growth import assert_linear

PYPROJECT = """
[build-system]
requires = ["setuptools>=64", "setuptools_scm"]
build-backend = "setuptools.build_meta"
[project]
name = "widget"
version = "1.0"
requires-python = ">=3.9"
dependencies = ["requests"]
[project.optional-dependencies]
test = ["pytest"]
full = ["numpy"]
docs = ["sphinx"]
[dependency-groups]
typing = ["mypy"]
dev = ["ruff", {include-group = "tests"}]
tests = ["hypothesis", {include-group = "dev"}]
[tool.ruff]
line-length = 100
"""


class Tree:
    """A tree in memory."""

    def __init__(self, **texts: str) -> None:
        self.texts = {name.replace("__", "/").replace("_dot_", "."): text for name, text in texts.items()}

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.texts)

    def read(self, path: str) -> bytes:
        return self.texts[path].encode()

    def write_tar(self, file: Any, owner: int) -> None:
        raise NotImplementedError


def hashed(**texts: str) -> str:
    tree = Tree(**texts)
    return make_plan("o/n", tree, base_image="base").image


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version = "1.0"', 'version = "1.1"'),
        ("line-length = 100", "line-length = 120"),
        ('["requests"]', '[ "requests" ]  # for http'),
        ("[tool.ruff]", "[tool.pytest.ini_options]\nx = 1\n[tool.ruff]"),
    ],
)
def test_what_says_nothing_of_dependencies_does_not_make_another_image(old: str, new: str) -> None:
    assert old in PYPROJECT
    assert hashed(pyproject_dot_toml=PYPROJECT.replace(old, new)) == hashed(pyproject_dot_toml=PYPROJECT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["requests"]', '["requests>=2"]'),
        (">=3.9", ">=3.10"),
        ('["pytest"]', '["pytest<8"]'),
        ('"setuptools>=64"', '"setuptools>=70"'),
        ('["mypy"]', '["mypy", "pyright"]'),
    ],
)
def test_what_changes_dependencies_makes_another_image(old: str, new: str) -> None:
    assert old in PYPROJECT
    assert hashed(pyproject_dot_toml=PYPROJECT.replace(old, new)) != hashed(pyproject_dot_toml=PYPROJECT)


def test_other_files_of_the_tree_do_not_matter_and_other_manifests_do() -> None:
    plain = hashed(pyproject_dot_toml=PYPROJECT)
    assert hashed(pyproject_dot_toml=PYPROJECT, src__a="x = 1", docs__requirements_dot_txt="sphinx") == plain
    assert hashed(pyproject_dot_toml=PYPROJECT, requirements_dot_txt="attrs") != plain


def test_the_base_image_and_the_recipe_are_in_the_hash() -> None:
    recipe = choose({"setup.py"}, "o/n")
    first = manifest_hash({"setup.py": b"x"}, recipe, "a")
    assert first != manifest_hash({"setup.py": b"x"}, recipe, "b")
    assert first != manifest_hash({"setup.py": b"x"}, recipe.model_copy(update={"packages": ("x",)}), "a")
    assert first == manifest_hash({"setup.py": b"x"}, recipe, "a")


@given(st.dictionaries(st.sampled_from(["a.txt", "b.txt", "c.lock"]), st.binary(max_size=30), min_size=1))
def test_the_hash_does_not_depend_on_the_order_of_the_manifests(manifests: dict[str, bytes]) -> None:
    recipe = choose({"setup.py"}, "o/n")
    turned = dict(reversed(manifests.items()))
    assert manifest_hash(manifests, recipe, "b") == manifest_hash(turned, recipe, "b")


@given(
    st.sampled_from(
        [
            "pyproject.toml",
            "setup.cfg",
            "setup.py",
            "tox.ini",
            "uv.lock",
            "Pipfile.lock",
            "package.json",
            "package-lock.json",
            "requirements.txt",
            "go.mod",
        ]
    ),
    st.one_of(
        st.binary(max_size=200), st.sampled_from([b"project = 1", b"tool = []", b"{}", b"[project]\ndependencies = 3"])
    ),
)
def test_no_content_of_a_manifest_makes_it_unreadable(name: str, content: bytes) -> None:
    assert isinstance(relevant(name, content), bytes)
    assert read_project({name: content.decode("utf-8", "replace")}) is not None


def test_files_that_setuptools_reads_dependencies_from_are_manifests() -> None:
    text = '[tool.setuptools.dynamic]\ndependencies = {file = ["deps/runtime.in"]}\n'
    recipe = choose({"setup.py"}, "o/n")
    assert manifest_paths({"deps/runtime.in", "pyproject.toml", "x"}, recipe, text) == (
        "deps/runtime.in",
        "pyproject.toml",
    )


NAME = re.compile(r"prchain/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


@given(st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?/[A-Za-z0-9._-]{1,100}", fullmatch=True))
def test_every_repository_has_a_name_that_an_image_may_have(repository: str) -> None:
    assert NAME.fullmatch(image_name(repository, "0123456789abcdef"))


@pytest.mark.parametrize(("one", "other"), [("o/.github", "o/github"), ("o/a__.b", "o/a-b"), ("o/_x", "o/x")])
def test_repositories_whose_names_differ_in_odd_letters_have_images_of_different_names(one: str, other: str) -> None:
    assert image_name(one, "0") != image_name(other, "0")


def test_a_plain_name_stays_readable() -> None:
    assert image_name("SWE-agent/mini-swe-agent", "ab12") == "prchain/swe-agent--mini-swe-agent:ab12"


def test_a_project_is_read_from_pyproject() -> None:
    project = read_project({"pyproject.toml": PYPROJECT})
    assert project.installable
    assert project.requires_python == ">=3.9"
    assert project.chosen_extras() == ("test", "full")
    assert project.chosen_extras(fewer=True) == ("test",)
    assert set(project.chosen_groups()) == {"ruff", "hypothesis"}
    assert set(project.chosen_groups(fewer=True)) == {"hypothesis", "ruff"}
    assert project.build_requires == ("setuptools>=64", "setuptools_scm", "setuptools", "wheel")


def test_a_project_is_read_from_setup_py_without_running_it() -> None:
    text = """
import os
os.abort()
EXTRAS = {"testing": ["pytest"], "all": [], "docs": []}
setuptools.setup(name="x", python_requires=">=3.7", extras_require=EXTRAS)
"""
    project = read_project({"setup.py": text})
    assert (project.installable, project.requires_python) == (True, ">=3.7")
    assert project.chosen_extras() == ("testing", "all")


def test_a_project_is_read_from_setup_cfg() -> None:
    text = "[metadata]\nname = x\n[options]\npython_requires = >=3.8\n"
    text += "[options.extras_require]\ndev =\n  pytest\nall = %(x)s\n"
    project = read_project({"setup.cfg": text})
    assert (project.installable, project.requires_python) == (True, ">=3.8")
    assert project.chosen_extras() == ("dev", "all")


def test_a_project_of_poetry_is_read_with_its_groups() -> None:
    text = """
[tool.poetry]
name = "x"
[tool.poetry.dependencies]
python = "^3.8"
[tool.poetry.extras]
all = ["y"]
[tool.poetry.dev-dependencies]
pytest = "^7.0.0"
local = {path = "../local"}
[tool.poetry.group.test.dependencies]
attrs = {version = "~21.4", extras = ["tests"], markers = "python_version < '3.12'"}
[tool.poetry.group.docs.dependencies]
sphinx = "*"
"""
    project = read_project({"pyproject.toml": text})
    assert project.requires_python == ">=3.8,<4"
    assert project.chosen_groups() == ("pytest>=7.0.0,<8", "attrs[tests]>=21.4,<21.5 ; python_version < '3.12'")
    assert project.chosen_groups(fewer=True) == ("attrs[tests]>=21.4,<21.5 ; python_version < '3.12'",)


def test_a_pyproject_with_only_tool_settings_installs_nothing_of_the_tree() -> None:
    assert not read_project({"pyproject.toml": "[tool.ruff]\nline-length = 1\n", "requirements.txt": "x"}).installable


@pytest.mark.parametrize(
    ("backend", "installable"), [("mesonpy", True), ("poetry.core.masonry.api", False), ("", False)]
)
def test_a_project_of_another_tool_whose_developers_use_poetry_is_put_in(backend: str, *, installable: bool) -> None:
    """pycairo, whose tests import an extension that nobody built."""
    build = f"[build-system]\nbuild-backend = '{backend}'\n" if backend else ""
    text = f"[project]\nname = 'a'\n{build}[tool.poetry]\npackage-mode = false\n"
    assert read_project({"pyproject.toml": text}).installable is installable


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["requirements.txt", "requirements-dev.txt", "requirements_test.txt"], 3),
        (["dev-requirements.txt", "test-requirements.txt"], 2),
        (["requirements/test.txt", "requirements/default.txt"], 2),
        (
            ["requirements/docs.txt", "requirements-docs.txt", "constraints.txt", "docs/requirements.txt", "notes.txt"],
            0,
        ),
    ],
)
def test_requirement_files_for_tests_development_and_the_project_are_told_by_their_names(
    paths: list[str], chosen: int
) -> None:
    assert len(read_project(dict.fromkeys(paths, "x")).requirement_files) == chosen


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        ("^1.2.3", ["1.2.3", "1.9"], ["2.0", "1.2.2"]),
        ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0"]),
        ("^0.0.3", ["0.0.3"], ["0.0.4"]),
        ("^1", ["1.0", "1.99"], ["2.0"]),
        ("~1.2.3", ["1.2.3", "1.2.9"], ["1.3.0"]),
        ("~1", ["1.0", "1.9"], ["2.0"]),
        ("1.2.*", ["1.2.5"], ["1.3"]),
        ("1.4", ["1.4"], ["1.5"]),
        (">= 1.0, <2.0", ["1.5"], ["2.0"]),
        (">=1.0 <2.0", ["1.5"], ["2.0"]),
        ("*", ["0.1", "9"], []),
        ("~=1.4", ["1.9"], ["2.0"]),
        ("^1.0 || ^2.0", ["1.0", "2.5"], []),
    ],
)
def test_poetrys_constraints_mean_the_same_in_pep_440(constraint: str, inside: list[str], outside: list[str]) -> None:
    specifiers = SpecifierSet(poetry_specifier(constraint))
    assert all(version in specifiers for version in inside)
    assert not any(version in specifiers for version in outside)


@given(st.from_regex(r"[~^]?[0-9]{1,3}(\.[0-9]{1,3}){0,3}", fullmatch=True))
def test_every_version_that_poetry_takes_gives_a_requirement(constraint: str) -> None:
    line = poetry_requirement("widget", constraint)
    assert line is not None
    lowest = re.sub(r"^[~^]", "", constraint)
    assert Requirement(line).specifier.contains(lowest, prereleases=True)


UV_LOCK = """
[[package]]
name = "attrs"
version = "23.1.0"
source = { registry = "R" }
[[package]]
name = "numpy"
version = "1.26.0"
[[package]]
name = "numpy"
version = "2.1.0"
[[package]]
name = "widget"
version = "0.1"
source = { editable = "." }
"""


def test_a_lock_file_pins_what_it_knows_one_version_of_and_not_the_project_itself() -> None:
    assert lock_pins("uv.lock", UV_LOCK) == ["attrs==23.1.0"]


def test_pipenvs_lock_pins_both_of_its_tables() -> None:
    develop = '{"pytest": {"version": "==8.0"}, "x": {"git": "u"}}'
    text = '{"default": {"attrs": {"version": "==23.1.0"}}, "develop": %s}' % develop
    assert lock_pins("Pipfile.lock", text) == ["attrs==23.1.0", "pytest==8.0"]


@pytest.mark.parametrize(
    "text", ["", "[[[", '{"default": 3}', "package = 3", '[[package]]\nname = "a"\nversion = "1\\n--index-url x"']
)
def test_a_lock_that_cannot_be_read_pins_nothing(text: str) -> None:
    assert lock_pins("uv.lock", text) == lock_pins("Pipfile.lock", text) == []


def test_tools_that_read_versions_from_tags_are_told_one() -> None:
    plan = make_plan("o/n", Tree(pyproject_dot_toml=PYPROJECT), base_image="b", version="1.4.2")
    assert plan.environment == {"SETUPTOOLS_SCM_PRETEND_VERSION": "1.4.2"}
    other = make_plan("o/n", Tree(pyproject_dot_toml=PYPROJECT.replace(', "setuptools_scm"', "")), base_image="b")
    assert other.environment == {}


def test_the_pretended_version_does_not_make_another_image() -> None:
    tree = Tree(pyproject_dot_toml=PYPROJECT)
    names = {make_plan("o/n", tree, base_image="b", version=version).image for version in ("1.0", "2.0")}
    assert len(names) == 1


@pytest.mark.parametrize(
    ("tags", "version"),
    [
        (["v1.0", "v1.2.3"], "1.2.3"),
        (["release-2.0", "nightly"], "2.0"),
        (["v2.0.0rc1"], "2.0.0rc1"),
        (["v2.0.0-beta.1"], "2.0.0b1"),
        (["9.2.0.dev0"], "9.2.0.dev0"),
        (["core-v2.48.0"], "2.48.0"),
        (["2.0.0-nightly"], "0.0.1"),
        (["latest"], "0.0.1"),
        ([], "0.0.1"),
    ],
)
def test_the_version_is_that_of_the_last_tag_that_has_one(tags: list[str], version: str) -> None:
    assert version_of_tags(tags) == version


@pytest.mark.parametrize("line", ["-e .", "-e.", "-e '.'", "--editable=.", "-e .[test,dev]", "-e ./"])
def test_a_requirement_file_that_names_the_project_itself_keeps_no_other_requirement_away(line: str) -> None:
    tree = Tree(setup_dot_py="setup()", **{"dev-requirements_dot_txt": f"{line}\npretend\n-e ./other\n"})
    files = make_plan("o/n", tree, base_image="b").files
    for name in ("flat.txt", "fewer.txt"):
        assert files[name].decode().splitlines() == ["pytest", "setuptools", "wheel", "pretend", "-e ./other"]
    assert b"-r /testbed/dev-requirements.txt" in files["requirements.txt"]


@pytest.mark.parametrize(
    ("tag", "given"), [("v1.2", "v1.2"), ("a/v1", "a/v1"), ("v1;id", ""), ("-d", ""), ("v1\n", "")]
)
def test_the_tag_of_a_builds_commit_is_a_plain_word(tag: str, given: str) -> None:
    assert make_plan("o/n", Tree(pyproject_dot_toml=PYPROJECT), base_image="b", tag=tag).tag == given


@pytest.mark.parametrize("piece", ["-a", "a", "-a1", "1.", "-1", "."])
def test_a_tag_that_only_begins_as_a_version_takes_no_time(piece: str) -> None:
    assert_linear(lambda size: [f"v1.0a{piece * size}!"] * 5, version_of_tags, 15)


def test_a_name_in_a_manifest_cannot_reach_a_shell() -> None:
    text = '[project]\nname = "x"\n[project.optional-dependencies]\n"test;touch x" = []\n"$(id)" = []\ntest = []\n'
    plan = make_plan("o/n", Tree(pyproject_dot_toml=text), base_image="b")
    assert plan.variables["EDITABLE"] == "--editable .[test]"
    hostile = make_plan("o/n", Tree(setup_dot_py="setup(python_requires='>=3; rm -rf /')"), base_image="b")
    assert hostile.variables["PYTHON"] == ""


@pytest.mark.parametrize(
    ("package", "runner"),
    [("vitest", "vitest"), ("jest", "jest"), ("mocha", "mocha"), ("left-pad", "jest"), ("node --test", "nodetest")],
)
def test_the_runner_of_a_node_project_is_the_one_that_it_depends_on(package: str, runner: str) -> None:
    tree = Tree(package_dot_json='{"devDependencies": {"%s": "1"}}' % package)
    assert make_plan("o/n", tree, base_image="b").runner == runner


def test_settings_of_builds_reach_the_steps_and_secrets_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_bytes(b"certificates")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_INDEX_URL", "https://me:hidden-word@index.example/simple")
    (tmp_path / "prchain.toml").write_text(
        'environments_ca_bundle = "ca.pem"\n[environments_build_variables]\nGOPROXY = "off"\n'
    )
    settings = BuildSettings.of(Settings.load())
    assert settings.variables["PIP_INDEX_URL"] == settings.variables["UV_DEFAULT_INDEX"]
    assert settings.variables["GOPROXY"] == "off"
    assert settings.variables["PIP_CERT"].startswith("/")
    assert settings.files["ca.pem"] == b"certificates"
    assert "hidden-word" in settings.secrets
    assert "hidden-word" not in repr(Settings.load())


def test_a_ca_bundle_that_cannot_be_read_is_an_error_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="environments_ca_bundle"):
        BuildSettings.of(Settings.load(environments_ca_bundle=tmp_path / "missing"))


WORKSPACE = """
[project]
name = "root"
[dependency-groups]
dev = ["pytest-root"]
[tool.uv.workspace]
members = ["core", "libs/*"]
exclude = ["libs/old"]
"""


def member(name: str) -> str:
    return f"[project]\nname = '{name}'\n[dependency-groups]\ndev = ['{name}-tests', 'Root_Core']\n"


def test_the_groups_of_a_workspaces_members_are_wanted_too_but_not_the_members() -> None:
    tree = Tree(
        pyproject_dot_toml=WORKSPACE,
        core__pyproject_dot_toml=member("root-core"),
        libs__a__pyproject_dot_toml=member("a"),
        libs__old__pyproject_dot_toml=member("old"),
        docs__pyproject_dot_toml=member("docs"),
    )
    plan = make_plan("o/n", tree, base_image="b")
    assert plan.manifests == ("core/pyproject.toml", "libs/a/pyproject.toml", "pyproject.toml")
    lines = plan.files["requirements.txt"].decode().split()
    assert {"pytest-root", "root-core-tests", "a-tests"} <= set(lines)
    assert not {"old-tests", "docs-tests", "Root_Core"} & set(lines)
    assert plan.variables["EDITABLE"] == "--editable ."


def test_of_a_tree_that_is_no_project_those_in_its_folders_are_installed_with_their_extras() -> None:
    setup = "setup(name='core', python_requires='>=3.6', extras_require={'test': ['x'], 'docs': []})"
    tree = Tree(
        pyproject_dot_toml="[tool.black]\nline-length = 80\n",
        core__setup_dot_py=setup,
        core__setup_dot_cfg="[metadata]\nname = core\n",
        core__inner__setup_dot_py=setup,
        libs__a__pyproject_dot_toml=member("a"),
        libs__b__pyproject_dot_toml="[tool.black]\n",
        docs__setup_dot_py=setup,
    )
    plan = make_plan("o/n", tree, base_image="b")
    assert plan.variables["EDITABLE"] == "--editable ./core[test] --editable ./libs/a"
    assert plan.variables["EDITABLE_LEAST"] == "--editable ./core --editable ./libs/a"
    assert plan.variables["FOLDERS"] == "./core ./libs/a" and plan.variables["PYTHON"] == ">=3.6"
    assert {"core/setup.py", "core/setup.cfg", "libs/a/pyproject.toml"} < set(plan.manifests)
    assert "docs/setup.py" not in plan.manifests and "core/inner/setup.py" not in plan.manifests


def test_of_a_workspace_that_is_no_package_the_members_are_installed() -> None:
    virtual = WORKSPACE.replace('[project]\nname = "root"\n', "")
    tree = Tree(
        pyproject_dot_toml=virtual, core__pyproject_dot_toml=member("c"), libs__a__pyproject_dot_toml=member("a")
    )
    assert make_plan("o/n", tree, base_image="b").variables["EDITABLE"] == "--editable ./core --editable ./libs/a"


def test_a_members_folder_cannot_reach_a_shell() -> None:
    text = '[tool.uv.workspace]\nmembers = ["*"]\n'
    tree = Tree(pyproject_dot_toml=text)
    tree.texts |= {
        "-x y/pyproject.toml": member("a"),
        "$(id)/pyproject.toml": member("b"),
        "--c/pyproject.toml": member("c"),
    }
    assert make_plan("o/n", tree, base_image="b").variables["EDITABLE"] == ""


def test_with_fewer_requirements_those_of_tests_stand_one_a_line() -> None:
    tree = Tree(
        setup_dot_py="setup()",
        requirements__test_dot_txt="-r base.txt\n-c pins.txt\n-r extras/a.txt\nhypothesis\n-r test.txt\n-r no.txt\n",
        requirements__base_dot_txt="six # why\n-e .[x]\n--index-url http://h\n",
        requirements__extras__a_dot_txt="--requirement ../base.txt\nredis\n",
        requirements__dev_dot_txt="git+https://h.example/x.git\n",
    )
    plan = make_plan("o/n", tree, base_image="b")
    files, fewer = plan.files, plan.files["fewer.txt"].decode().splitlines()
    assert {"six", "redis", "hypothesis"} <= set(fewer)
    assert plan.variables["EDITABLE_FEWER"] == "--editable .[x]" and plan.variables["EXTRAS_FEWER"].endswith(" x$")
    assert not [line for line in fewer if "git+" in line or "index-url" in line or line.startswith("-r")]
    assert b"requirements/dev.txt" in files["requirements.txt"]
