"""What tests need by other words than the project's own lists."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from environments.images.dated_indexes import uv_configuration
from environments.images.inside.lacking import lacking
from environments.images.inside.told_metadata import main
from environments.images.plans import make_plan
from environments.images.requirement_lines import flat_lines
from environments.images.wishes import ci_installs, named_files, nox_installs, wished_extras, wishes
from tests.environments.test_manifests import Tree

TOX = "[testenv]\ndeps =\n    pretend\n    py27: mock\n    -r{toxinidir}/tests/needs.txt\n    -e.\ncommands = pytest\n"
TRAVIS = """install:
  - pip install -U tox "nose>=1.3" -r ci/more.txt -e .[test] $EXTRA  # and more
  - travis_retry pip install mock; pip install 'unclosed
"""
NOX = """
def lint(session): session.install("ruff")
@nox.session(python=["3.8"])
def unit_tests(session):
    session.install("coverage<5" if True else "x", "pretend", "-r", "dev.txt", f"{it}", "-e", ".")
"""


FACTORS = """[testenv]
extras = socks, brotli
deps =
    -e{toxinidir}[format]
    tests,coverage: twisted
    py{27,36}-unit: lxml
    py27: mock
    docs: sphinx
    django18: Django>=1.8
"""


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"tox.ini": FACTORS}, ["twisted", "lxml"]),
        ({"tox.ini": TOX, "tests/needs.txt": "lxml\n"}, ["pretend", "lxml"]),
        ({".travis.yml": TRAVIS, "ci/more.txt": "webtest\n"}, ["nose>=1.3", "webtest", "mock"]),
        ({"setup.py": "needs = ['mock', 'x' + y]\nsetup(tests_require=needs)"}, ["mock"]),
        ({"noxfile.py": NOX, "dev.txt": "lxml"}, ["pretend", "lxml"]),
        ({"setup.py": "setup(tests_require='mock')"}, ["mock"]),
        ({"setup.cfg": "[options]\ntests_require = mock\n"}, ["mock"]),
        ({"setup.py": "setup(tests_require=read('x'))", "tox.ini": "[", ".travis.yml": "pip install ../x"}, []),
    ],
)
def test_what_tests_are_said_to_need_is_wished_for(files: dict[str, str], found: list[str]) -> None:
    assert wishes(files) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("-c constraints.txt nose", ["nose"]),
        ("--constraint constraints.txt --progress-bar off --upgrade-strategy eager nose", ["nose"]),
        ("-t lib -f wheels --trusted-host pypi.org nose", ["nose"]),
        ("-Ur more.txt -qr=dev.txt --requirement ci.txt", ["-r more.txt", "-r dev.txt", "-r ci.txt"]),
        ("nose \\\n  mock -e other -e .[test] -U requirements.txt", ["nose", "mock", ".[test]"]),
    ],
)
def test_values_of_options_of_pip_are_no_packages(given: str, found: list[str]) -> None:
    assert ci_installs(f"- pip install {given}\n") == found
    words = ", ".join(map(repr, given.replace("\\\n", " ").split()))
    assert nox_installs(f"def tests(s): s.install({words})") == found
    assert nox_installs("def tests(s): s.install('-c', CONSTRAINTS, 'nose')") == ["nose"]


MANY = 1500
SURROGATE = '"foo @ https://x/\\ud800"'
SMUGGLED = '"foo @ https://x/y.zip\\n--index-url=http://evil/"'


@pytest.mark.parametrize(
    "files",
    [
        {"setup_dot_py": f"setup(tests_require=[{SURROGATE}, {SMUGGLED}], setup_requires=[{SURROGATE}])"},
        {"noxfile_dot_py": f"def tests(s): s.install({SURROGATE}, {SMUGGLED}, '-r', '\\ud800.txt')"},
        {"setup_dot_py": "x" + ".a" * 2000 + "()"},
        {"tox_dot_ini": "[testenv]\ndeps = pytest; " + "(" * 20_000},
        {"tox_dot_ini": "[testenv]\ndeps\n  pytest\n"},
        {"pyproject_dot_toml": "x = " + "1" * 5000},
        {"pyproject_dot_toml": f"[tool.poetry]\nname = 'x'\ndependencies = {{python = '^{'1' * 5000}'}}"},
        {
            "pyproject_dot_toml": "[dependency-groups]\n"
            + "".join(f"a{it} = [{{include-group = 'a{it + 1}'}}]\n" for it in range(MANY))
        },
    ],
)
def test_no_hostile_manifest_ends_a_plan_or_smuggles_a_line_into_it(files: dict[str, str]) -> None:
    plan = make_plan("o/n", Tree(**{"setup_dot_py": "setup()", **files}), base_image="b")
    assert plan.files["wished.txt"] == b"" and "evil" not in str(plan.files["build.txt"])


def test_requirement_files_that_include_each_other_are_each_read_once() -> None:
    twice = {f"{it}.txt": f"-r {it + 1}.txt\n--requirement={it + 1}.txt\n-r 0.txt\n" for it in range(MANY)}
    assert flat_lines("0.txt", {**twice, f"{MANY}.txt": "lxml"}) == ["lxml"]


def test_files_that_tox_and_ci_name_are_manifests_and_ci_counts_by_what_it_installs() -> None:
    assert named_files({"tox.ini": TOX, ".travis.yml": TRAVIS}) == ("tests/needs.txt", "ci/more.txt")
    assert named_files({"tox.ini": "[testenv]\ndeps = -r/etc/x.txt\n -r../x.txt\n"}) == ()
    tree = {"setup_dot_py": "setup()", "tox_dot_ini": TOX, "tests/needs_dot_txt": "lxml"}
    plan = make_plan("o/n", Tree(**tree), base_image="b")
    assert "tests/needs.txt" in plan.manifests and plan.files["wished.txt"] == b"pretend\nlxml\n"
    images = {
        make_plan("o/n", Tree(**tree, _dot_travis_dot_yml=text), base_image="b").image
        for text in ("sudo: false\ninstall: pip install nose\n", "install: pip install nose\n")
    }
    assert len(images) == 1 and images != {plan.image}


def test_extras_that_tox_or_ci_name_are_the_projects_own() -> None:
    assert wished_extras({"tox.ini": FACTORS, ".travis.yml": TRAVIS}) == ["format", "socks", "brotli", "test"]
    plan = make_plan("o/n", Tree(setup_dot_py="setup()", tox_dot_ini=FACTORS), base_image="b")
    assert plan.variables["EDITABLE"] == "--editable .[format,socks,brotli]"


def test_many_installs_on_a_line_take_no_time() -> None:
    assert len(ci_installs("pip install " + "a " * 100_000)) == 1


def test_of_wishes_only_packages_that_are_not_there_are_put_in() -> None:
    lines = ["Mock>=1", "zope.interface[test]", "lxml", "-e ./other", "./x", "lxml"]
    assert lacking(lines, {"mock", "zope-interface"}) == ["lxml"]


SAID = """hint: Metadata for `pandas` (v0.20.1) could not be parsed:
  after parsing `2011`, found `k`, which is not part of a valid version
"""
METADATA = """Name: pandas
Requires-Dist: pytz (>=2011k)
Requires-Dist: numpy (>=1.7.0,!=1.9.*,>dev)
Requires-Dist: lxml[x] (>=4.0rc1) ; extra == 'xml'
Requires-Dist: ;bad

Requires-Dist: text
"""


def test_uv_is_told_what_a_package_needs_whose_metadata_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("environments.images.inside.told_metadata._metadata", lambda name, version: METADATA)
    (tmp_path / "said").write_text(SAID)
    (tmp_path / "uv.toml").write_bytes(uv_configuration(datetime(2016, 1, 1, tzinfo=UTC), installs=True))
    assert main(str(tmp_path / "said"), [str(tmp_path / "uv.toml")])
    told = tomllib.loads((tmp_path / "uv.toml").read_text())
    assert told["exclude-newer-package"]
    needs = ["pytz", "numpy>=1.7.0,!=1.9.*", "lxml[x]>=4.0rc1 ; extra == 'xml'"]
    assert told["dependency-metadata"] == [{"name": "pandas", "version": "0.20.1", "requires-dist": needs}]
    (tmp_path / "said").write_text("error: No solution found")
    assert not main(str(tmp_path / "said"), [])
