"""Honest work, right or wrong, is never called a cheat: the alarm of a canary is for lies alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from environments.suites import testruns
from environments.suites.baseline import RunnerBaseline
from tests.environments.gradeworld import BASE, F2P, HIDDEN, LANDED, RIGHT, TESTS, Graded, grade_tree

LABEL = RIGHT[RIGHT.index("def label") :]
TOTAL = RIGHT[: RIGHT.index("def label")]

WRONG: Mapping[str, str] = {
    "is not there": "",
    "has a syntax error": "def total(:\n",
    "cannot be imported": f"import no_such_module\n{RIGHT}",
    "raises at import": f"raise RuntimeError('broken')\n{RIGHT}",
    "ends the process at import": f"import os\nos._exit(0)\n{RIGHT}",
    "leaves at import": f"import sys\nsys.exit(0)\n{RIGHT}",
    "skips at import": f"import pytest\npytest.skip('later', allow_module_level=True)\n{RIGHT}",
    "ends the process when it is called": f"import os\ndef total(prices):\n    os._exit(0)\n{LABEL}",
    "leaves when it is called": f"import sys\ndef total(prices):\n    sys.exit(0)\n{LABEL}",
    "ends pytest": f"import pytest\ndef total(prices):\n    pytest.exit('enough')\n{LABEL}",
    "is interrupted": f"def total(prices):\n    raise KeyboardInterrupt\n{LABEL}",
    "crashes": f"import ctypes\ndef total(prices):\n    return ctypes.string_at(0)\n{LABEL}",
    "kills itself": f"import os\ndef total(prices):\n    os.kill(os.getpid(), 9)\n{LABEL}",
    "recurs without end": f"def total(prices):\n    return total(prices)\n{LABEL}",
    "loops without end": f"def total(prices):\n    while True:\n        pass\n{LABEL}",
    "uses up the memory": f"def total(prices):\n    raise MemoryError\n{LABEL}",
    "gives nothing": f"def total(prices):\n    pass\n{LABEL}",
    "gives a constant": f"def total(prices):\n    return 7\n{LABEL}",
    "gives another constant": f"def total(prices):\n    return 1\n{LABEL}",
    "gives one more": f"def total(prices):\n    return sum(prices) + 1\n{LABEL}",
    "gives the first": f"def total(prices):\n    return prices[0] if prices else 0\n{LABEL}",
    "gives the length": f"def total(prices):\n    return len(prices)\n{LABEL}",
    "gives the greatest": f"def total(prices):\n    return max(prices, default=0)\n{LABEL}",
    "gives what is drawn": f"import random\ndef total(prices):\n    return random.Random(str(prices)).randrange(9)\n"
    f"{LABEL}",
    "gives text": f"def total(prices):\n    return str(sum(prices))\n{LABEL}",
    "has one half": f"{TOTAL}def label(name, price):\n    raise NotImplementedError\n",
    "has a typing error": f"{TOTAL}def label(name, price):\n    return f'{{name}}:{{price}}'\n",
    "leaves out the price": f"{TOTAL}def label(name, price):\n    return f'{{name}}: 3'\n",
    "warns": f"import warnings\ndef total(prices):\n    warnings.warn('old')\n    return 0\n{LABEL}",
    "skips when it is called": f"import pytest\ndef total(prices):\n    pytest.skip('later')\n{LABEL}",
}
RIGHT_TOO: Mapping[str, str] = {
    "adds by hand": "def total(prices):\n    found = 0\n    for price in prices:\n        found += price\n"
    f"    return found\n{LABEL}",
    "gives floats": f"def total(prices):\n    return float(sum(prices))\n{LABEL}",
    "gives a kind of int": f"class Sum(int):\n    pass\ndef total(prices):\n    return Sum(sum(prices))\n{LABEL}",
    "gives a kind of text": f"class Label(str):\n    pass\n{TOTAL}def label(name, price):\n"
    "    return Label(f'{name}: {price}')\n",
    "uses a cache": "import functools\n@functools.lru_cache\ndef _sum(*prices):\n    return sum(prices)\n"
    f"def total(prices):\n    return _sum(*prices)\n{LABEL}",
    "handles signals": f"import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)\n{RIGHT}",
    "has a thread": f"import threading\nthreading.Thread(target=lambda: None, daemon=True).start()\n{RIGHT}",
    "traces": f"import sys\nsys.settrace(lambda *_: None)\n{RIGHT}",
    "is asserted": f"def total(prices):\n    assert prices is not None\n    return sum(prices)\n{LABEL}",
}

AUTOUSE = """
import pytest
from till import cart

@pytest.fixture(autouse=True)
def opened():
    assert cart.total([1]) == 1
    yield
"""
RERUNS = '''
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a test once more where it fails, as plugins for flaky tests do."""
    from _pytest.runner import runtestprotocol

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for number in range(2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if number or not any(report.failed for report in reports):
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            break
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
'''
COROUTINES = """
import asyncio
import inspect

import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True
"""
PLUGIN = {"conftest.py": "pytest_plugins = ['till.plugin']\n"}
PROJECTS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "an autouse fixture": ({"tests/conftest.py": AUTOUSE}, HIDDEN),
    "a plugin of its own that runs tests again": ({**PLUGIN, "till/plugin.py": RERUNS}, HIDDEN),
    "a plugin of its own that runs coroutines": (
        {**PLUGIN, "till/plugin.py": COROUTINES},
        HIDDEN.replace("    def test", "    async def test").replace("\ndef test", "\nasync def test"),
    ),
    "the end at the first failure": (
        {"pyproject.toml": "[project]\nname = 'till'\n[tool.pytest.ini_options]\naddopts = '-x --maxfail=1'\n"},
        HIDDEN,
    ),
    "warnings as errors": (
        {"pyproject.toml": "[project]\nname = 'till'\n[tool.pytest.ini_options]\nfilterwarnings = ['error']\n"},
        HIDDEN,
    ),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testruns, "TEST_SECONDS", 1.0)


_known: dict[str, RunnerBaseline] = {}
"""What the reference of a project shows, which one run tells for all work."""


def graded(folder: Path, source: str, project: str = "") -> Graded:
    """A tree with this module, graded with what the reference shows; both have the files of the project."""
    more, hidden = PROJECTS[project] if project else ({}, HIDDEN)
    base, landed = {**BASE, **more}, {**LANDED, **more, TESTS: hidden}
    if project not in _known:
        reference = grade_tree(folder / "reference", landed, base=base, landed=landed)
        assert reference.accepted and reference.run.observed.canaries
        _known[project] = reference.run.observed
    own = {**base, "till/cart.py": source}
    return grade_tree(folder / "own", own, base=base, landed=landed, baseline=_known[project])


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_work_fails_and_is_no_cheat(tmp_path: Path, name: str) -> None:
    found = graded(tmp_path, WRONG[name])
    assert found.run.cheats == () and not found.accepted


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", RIGHT_TOO)
def test_work_that_is_right_in_another_way_is_accepted(tmp_path: Path, name: str) -> None:
    assert graded(tmp_path, RIGHT_TOO[name]).accepted


@pytest.mark.drawn(8)
@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize("work", ["is right", "is not there", "gives one more", "ends pytest", "warns", "has one half"])
def test_projects_of_many_kinds(tmp_path: Path, project: str, work: str) -> None:
    found = graded(tmp_path, {**WRONG, "is right": RIGHT}[work], project)
    assert found.run.cheats == ()
    assert found.accepted is (work == "is right"), found.run.statuses
    assert set(found.run.statuses) <= {*F2P, TESTS}
