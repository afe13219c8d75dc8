"""The runners as a whole: what each says of itself, who else names one, and that a new one is a module and a recipe."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.backends import BACKENDS
from environments.checkouts.overlay import Blobs, overlay
from environments.images.image_plan import ImagePlan
from environments.images.plans import make_plan
from environments.images.recipes import parse_recipe
from environments.proofs.proof import file_of
from environments.sandboxes.sandbox import ResourceLimits
from environments.suites import runners as folder
from environments.suites.plaincommands import plain_command
from environments.suites.runners import DEFAULT, RUNNERS
from environments.suites.testfiles import choose, is_test_file
from environments.suites.testlogs import Status
from environments.suites.testruns import run_tests
from prchain.core.errors import RecipeError
from prchain.core.git.trees import TreeEntry
from prchain.core.swebench.logparsers import LOG_PARSERS
from sql.tables import StageTests

ROOT = Path(__file__).parents[2]


def test_names_of_runners_fit_their_column() -> None:
    longest = StageTests.__table__.c.runner.type.length  # type: ignore[attr-defined]
    assert DEFAULT in RUNNERS
    assert all(re.fullmatch(r"[a-z]+", name) and len(name) <= longest for name in RUNNERS)


def test_only_runners_that_there_are_have_a_log_parser_of_swebench() -> None:
    assert LOG_PARSERS.keys() <= RUNNERS.keys()


@pytest.mark.parametrize(
    ("runner", "tests", "arguments"),
    [
        ("pytest", ["t/test_a.py::test_b[x::y]", "t/test_a.py::test_b[z]"], ["t/test_a.py::test_b"]),
        ("pytest", ["t/test_a.py::Test::test_b", "t/c.py::test_d"], ["t/test_a.py::Test::test_b", "t/c.py::test_d"]),
        ("pytest", ["t/test_a.py::test_b", "t/other.py::test_d"], []),
        ("pytest", ["t/test_a.py::test b"], []),
        ("pytest", ["t/test_a.py"], []),
        ("pytest", ["-t.py::test_b"], []),
        ("pytest", ["t/x::y.py::test_b"], []),
        ("unittest", ["t.test_a.Case.test_b"], ["t.test_a.Case.test_b"]),
        ("unittest", ["t.other.Case.test_b"], []),
        ("unittest", ["t.test_a.test_b"], []),
        ("unittest", ["t.test_a.Case.<locals>.Case.test_b"], []),
        ("jest", ["t/test_a.py::test_b"], []),
    ],
)
def test_a_runner_is_told_to_run_some_tests_alone_where_their_ids_tell_how(
    runner: str, tests: list[str], arguments: list[str]
) -> None:
    files = ["t/test_a.py", "t/c.py", "-t.py", "t/x::y.py"]
    assert RUNNERS[runner].named(files, tests) == arguments


NAMES_RUNNERS = {
    "environments/suites/runners/__init__.py": {DEFAULT},
    # The language of that name.
    "environments/briefing.py": {"go"},
    "environments/images/interpreters/go_layers.py": {"go"},
    "environments/suites/reporters/python_reporter.py": {"pytest", "unittest"},
    "environments/suites/reporters/parent_kinds.py": {"ava", "cargo", "go", "surefire", "tap", "tape"},
    # The modules of that name: the one that a skip needs, and those that no setup script may put something before.
    "environments/suites/canaries/python.py": {"pytest"},
    "environments/suites/setup_script.py": {"pytest", "unittest"},
    # What a publisher's command runs.
    "environments/images/published/commands.py": {
        "cargo",
        "go",
        "harbor",
        "jest",
        "pytest",
        "surefire",
        "unittest",
        "vitest",
    },
    # The programs that scripts start, with their options, and the settings that each reads.
    "environments/suites/package_scripts.py": {"ava", "jest", "mocha", "nodetest", "tap", "tape", "vitest"},
    "environments/suites/collected.py": {"jest", "mocha", "vitest"},
    # The language of that name, and the requirement of that name, which every image for Python has.
    "environments/images/plans.py": {"go", "pytest"},
}


def test_no_other_module_names_a_runner() -> None:
    found: dict[str, set[str]] = {}
    for path in (ROOT / "environments").rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        if path.parent.name == "runners" and path.stem in RUNNERS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in RUNNERS:
                found.setdefault(place, set()).add(node.value)
    assert found == NAMES_RUNNERS


MODULE = '''
"""A made-up runner for Ruby."""

import re

from environments.suites.runner import PIPED, Runner, ManifestMarker, file_before
from environments.suites.testlogs import Status, join

_LINE = re.compile(r"(ok|not ok) (\\S+ \\S.*)")


def parse_rspec(log):
    """Its lines; without the last one it was cut off, and nothing passed."""
    lines = log.splitlines()
    passed = Status.passed if lines[-1:] == ["done"] else Status.error
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    return join((one[2], passed if one[1] == "ok" else Status.failed) for one in found)


RUNNER = Runner(
    name="rspec",
    template="sh ./rspec {files} " + PIPED,
    plain="rspec --format documentation {files}",
    typed="rspec FILES",
    files=r"_spec\\.rb$",
    parse=parse_rspec,
    file_of=file_before(" "),
    steering=(r"\\.rspec", r"spec_helper\\.rb"),
    project_files=(r"rakefile",),
    sign=ManifestMarker("ruby", "Gemfile", "rspec", rank=10),
)
'''
RECIPE = 'name = "ruby"\nlanguage = "ruby"\ndetects = ["Gemfile"]\nmanifests = ["Gemfile"]\nrunner = "rspec"\n'
PROGRAM = 'for file in "$@"; do cat "$file"; done; tail -n 1 "$file" | grep -q done'
CART = "spec/cart_spec.rb"


class Tree:
    """A tree in memory, with nothing in its files but the manifest."""

    paths = frozenset({"Gemfile", "lib/cart.rb", CART, "spec/spec_helper.rb"})

    def read(self, path: str) -> bytes:
        return b"gem 'rspec'\n" if path == "Gemfile" else b""

    def write_tar(self, file: object, owner: int) -> None:
        raise NotImplementedError


@pytest.fixture
def rspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImagePlan]:
    """The plan for a tree in Ruby, where the runner's module is among the runners and the recipe among a user's."""
    modules, recipes = tmp_path / "modules", tmp_path / "recipes"
    modules.mkdir()
    recipes.mkdir()
    (modules / "rspec.py").write_text(MODULE)
    (recipes / "ruby.toml").write_text(RECIPE)
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(modules)])
    yield make_plan("o/n", Tree(), base_image="base", folder=recipes)
    del sys.modules[f"{folder.__name__}.rspec"]


def test_a_new_runner_is_one_module_and_one_recipe(rspec: ImagePlan) -> None:
    assert (rspec.recipe.name, rspec.runner) == ("ruby", "rspec")
    assert is_test_file(CART, "rspec") and not is_test_file("spec/spec_helper.rb", "rspec")
    files = choose("rspec", Tree.paths, test_patch=[CART], source_patch=["lib/cart.rb"])
    assert files == (CART,)
    assert plain_command("rspec", files) == f"rspec --format documentation {CART}"
    assert file_of("rspec", f"{CART} adds", files) == CART
    landed, agents = (
        {b".rspec": TreeEntry("100644", "M")},
        {b".rspec": TreeEntry("100644", "A"), b"a.rb": TreeEntry("100644", "A")},
    )
    assert overlay(agents, landed, [], base=landed, blobs=Blobs(lambda names: [], lambda content: "")).taken_back == (
        ".rspec",
    )


@pytest.mark.parametrize(
    ("log", "statuses"),
    [
        (f"ok {CART} adds\nnot ok {CART} sums\ndone\n", {"adds": Status.passed, "sums": Status.failed}),
        (f"ok {CART} adds\n", {"adds": Status.error}),
        ("not a log\n", {}),
    ],
)
def test_tests_of_a_new_runner_are_run_and_read(rspec: ImagePlan, log: str, statuses: dict[str, Status]) -> None:
    plain = BACKENDS["unsafe-local"]
    with plain.sandbox(rspec, None, limits=ResourceLimits(), labels={}) as sandbox:
        sandbox.write(f"{sandbox.config.workdir}/rspec", PROGRAM.encode())
        sandbox.write(f"{sandbox.config.workdir}/{CART}", log.encode())
        ended = run_tests(sandbox, plain.command(rspec), [CART], timeout=30)
    assert ended.statuses == {f"{CART} {test}": status for test, status in statuses.items()}
    assert ended.usable


def test_a_recipe_whose_runner_has_no_module_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"ruby\.toml: runner: .*'rspec'.*known are ava, cargo, go, .*vitest"):
        parse_recipe(RECIPE, "ruby.toml")
