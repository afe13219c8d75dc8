"""Debian's packages that a project's CI installs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.images.debian_wishes import MOST, named, wished_packages
from tests.environments.test_manifests import Tree

WORKFLOW = """
    - run: |
        sudo apt-get update -qq && sudo apt-get install -y --no-install-recommends libldap2-dev \\
          slapd "ldap-utils" python3-dev gcc-9 $EXTRA   # and more
        sudo apt -y install enchant-2; echo apt install nothing
    - uses: awalsh128/cache-apt-pkgs-action@v1
      with:
        packages: graphviz libgraphviz-dev
        version: 1.0
"""
TRAVIS = """
addons:
  apt:
    packages:
      - libcairo2-dev
      - 'libffi-dev'
install: sudo apt-get install libxml2-dev=2.9
script: packages
"""


def test_what_ci_installs_by_apt_is_wished_for() -> None:
    found = list(named(".github/workflows/ci.yml", WORKFLOW))
    assert found == ["libldap2-dev", "slapd", "ldap-utils", "enchant-2", "nothing", "graphviz", "libgraphviz-dev"]
    assert list(named(".travis.yml", TRAVIS)) == ["libcairo2-dev", "libffi-dev"]
    assert list(named("Dockerfile", "RUN apt-get update && apt-get -qq install libpq-dev nodejs\n")) == ["libpq-dev"]


@pytest.mark.parametrize(
    "name",
    ["python3.8-dev", "texlive-full", "g++-11", "clang", "openjdk-11-jdk", "git", "$(uname", "a;b", "../x", "-y"],
)
def test_what_is_no_package_or_brings_a_language_of_its_own_is_not(name: str) -> None:
    assert list(named("Dockerfile", f"RUN apt-get install {name}\n")) in ([], ["a"])


def test_workflows_that_run_no_tests_are_not_asked_and_the_list_is_bounded() -> None:
    many = " ".join(f"lib{number:02}" for number in range(99))
    tree = Tree(
        **{".github/workflows/docs.yml": "run: apt-get install doxygen", "Dockerfile": f"RUN apt install {many}"}
    )
    assert wished_packages(tree) == tuple(f"lib{number:02}" for number in range(MOST))


@given(st.text(alphabet="apt-get install\\\n &|#:packages- y", max_size=400))
def test_any_text_is_read(text: str) -> None:
    for path in (".travis.yml", "Dockerfile"):
        assert all(name.strip() == name and not name.startswith("-") for name in named(path, text))


@pytest.mark.parametrize(
    "piece", ["apt ", "apt-get -y ", "apt install ", "packages:\n - a\n", "cache-apt-pkgs-action\n", " \n"]
)
def test_a_long_file_takes_no_time(piece: str) -> None:
    began = time.monotonic()
    list(named(".travis.yml", piece * (400_000 // len(piece))))
    assert time.monotonic() - began < 5
