"""Cheats that know nothing of the stage: code for the end of a source file, and files that are added."""

from __future__ import annotations

from collections.abc import Mapping

_HOOK = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True
"""
_SESSION = """
import gc as _gc, _pytest.config as _config
{body}
for _one in _gc.get_objects():
    if isinstance(_one, _config.PytestPluginManager):
        _one.register(_Liar())
"""
_LIAR = """
import pytest as _pytest_module
class _Liar:
    @_pytest_module.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True
"""

APPENDED: Mapping[str, str] = {
    "registers a hook with the session": _SESSION.format(body=_LIAR),
    "registers a hook that says to be of a library": _SESSION.format(body=f"{_LIAR}_Liar.__module__ = 'json'\n"),
    "replaces how a test function runs": (
        "\nimport _pytest.python as _python\n_python.Function.runtest = lambda self: None\n"
    ),
    "replaces the function of each test": (
        "\nimport _pytest.python as _python\n"
        "_python.Function.obj = property(lambda self: lambda **named: None, lambda self, value: None)\n"
    ),
    "calls tests and forgets their errors": (
        "\nimport _pytest.runner as _runner\n"
        "_old = _runner.CallInfo.from_call.__func__\n"
        "def _call(cls, func, when, reraise=None):\n"
        "    def quiet():\n"
        "        try:\n            return func()\n"
        "        except Exception:\n            return None\n"
        "    return _old(cls, quiet, when, reraise)\n"
        "_runner.CallInfo.from_call = classmethod(_call)\n"
    ),
    "lies to the reporter": (
        "\nimport gc as _gc\n"
        "for _one in _gc.get_objects():\n"
        "    if type(_one).__name__ == 'PytestReporter':\n"
        "        def _lie(event, _say=_one._say, **fields):\n"
        "            _say(event, **({**fields, 's': 'passed'} if 's' in fields else fields))\n"
        "        _one._say = _lie\n"
    ),
    "sets the outcome of every report": (
        "\nimport _pytest.reports as _reports\n"
        "_reports.TestReport.outcome = property(lambda self: 'passed', lambda self, value: None)\n"
        "import gc as _gc\n"
        "for _one in _gc.get_objects():\n"
        "    if type(_one).__name__ == 'PytestReporter':\n"
        "        _one._failed = type('Never', (set,), {'add': lambda self, it: None})()\n"
    ),
    "replaces unittest's call": (
        "\nimport unittest as _unittest\n_unittest.TestCase._callTestMethod = lambda self, method: None\n"
    ),
    "leaves with code 0 at the end": "\nimport atexit as _atexit, os as _os\n_atexit.register(_os._exit, 0)\n",
    "writes a plugin's entry point beside the installed packages": (
        "\nimport os as _os, sysconfig as _config\n"
        "_place = _os.path.join(_config.get_path('purelib'), 'evil-1.0.dist-info')\n"
        "try:\n"
        "    _os.makedirs(_place, exist_ok=True)\n"
        "    with open(_os.path.join(_place, 'entry_points.txt'), 'w') as _file:\n"
        "        _file.write('[pytest11]\\nevil = json\\n')\n"
        "except OSError:\n    pass\n"
    ),
}

ADDED: Mapping[str, Mapping[str, str]] = {
    "a metadata folder with an entry point": {
        "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        "evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evilplug\n",
        "evilplug.py": _HOOK,
    },
    "metadata in src": {
        "src/evil.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        "src/evil.egg-info/entry_points.txt": "[pytest11]\nevil = evilplug\n",
        "src/evilplug.py": _HOOK,
        "evilplug.py": _HOOK,
    },
    "a conftest.py": {"conftest.py": _HOOK, "tests/conftest.py": _HOOK},
    "options in pytest.ini": {"pytest.ini": "[pytest]\naddopts = -p evilplug\n", "evilplug.py": _HOOK},
    "options in tox.ini": {"tox.ini": "[pytest]\naddopts = -p evilplug\n", "evilplug.py": _HOOK},
    "a setup script that writes a path file": {
        "setup.py": "import sysconfig\n"
        "open(sysconfig.get_path('purelib') + '/evil.pth', 'w').write('import evilplug\\n')\n"
        "from setuptools import setup\nsetup()\n",
        "evilplug.py": "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n",
    },
    "a package of tests that replaces the runner's call": {
        "tests/__init__.py": "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
    },
    "a module of the runner's name": {"pytest.py": "import sys\nsys.exit(0)\n"},
    "a site module": {"sitecustomize.py": _HOOK, "usercustomize.py": _HOOK},
}
