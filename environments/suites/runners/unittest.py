"""Python's unittest."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from environments.suites.canaries.python import plant_python
from environments.suites.runner import Runner
from environments.suites.testlogs import Status, join

_LINE = re.compile(
    r"(?P<method>[^\s()]+) \((?P<place>[^\s()]+)\)(?: [(\[][^\n]*[)\]])?(?:\n.*?)?? \.\.\. "
    r"(?:.*?)(?P<word>ok|FAIL|ERROR|skipped(?: .*)?|expected failure|unexpected success)",
    re.S,
)
_START = re.compile(r"^(?:  )?[^\s()]+ \([^\s()]+\)", re.M)
_WORDS = {
    "ok": Status.passed,
    "FAIL": Status.failed,
    "ERROR": Status.error,
    "expected failure": Status.xfail,
    "unexpected success": Status.xpass,
}
_HEADING = re.compile(r"^=+\n(?P<word>ERROR|FAIL): (?P<method>[^\s()]+) \((?P<place>[^\s()]+)\)", re.M)


def parse_unittest(log: str) -> dict[str, Status]:
    """The tests of ``python -m unittest -v``, by their dotted ids (``tests.test_a.Case.test_b``).

    Python 3.11 and newer print the whole id in the brackets, older ones the class alone; a docstring takes a second
    line. What a test prints may stand between ``...`` and its word.
    """
    log = log.replace("\r\n", "\n")
    body = log.partition("\n" + "=" * 70)[0]
    starts = [found.start() for found in _START.finditer(body)]
    reports = []
    for start, end in pairwise([*starts, len(body)]):
        if found := _LINE.fullmatch(body[start:end].partition("\n" + "-" * 70)[0].strip()):
            word = found["word"].split(" '")[0]
            status = Status.skipped if word.startswith("skipped") else _WORDS[word]
            reports.append((_dotted(found["method"], found["place"]), status))
    for found in _HEADING.finditer(log):
        reports.append((_dotted(found["method"], found["place"]), _WORDS[found["word"]]))
    return join(reports)


def _dotted(method: str, place: str) -> str:
    return place if place.endswith(f".{method}") else f"{place}.{method}"


def modules(files: Sequence[str]) -> list[str]:
    """The dotted names of the files' modules."""
    return list(dict.fromkeys(map(_module, files)))


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def file_of(test: str, files: Collection[str]) -> str | None:
    """The file of the module that a test's dotted id begins with."""
    plain = test.removeprefix("unittest.loader._FailedTest.")
    names = {_module(path): path for path in files}
    fitting = [name for name in names if plain == name or plain.startswith(f"{name}.")]
    return names[max(fitting, key=len)] if fitting else None


RUNNER = Runner(
    name="unittest",
    template="python {tools}/python_reporter.py",
    plain="python -m unittest -v {files}",
    typed="python -m unittest MODULES",
    files=r"(?:^|/)tests?[^/]*\.py$",
    parse=parse_unittest,
    arguments=modules,
    file_of=file_of,
    steering=(r"(?:site|user)customize\.py",),
    shadows=(r"unittest/__init__\.py", r"unittest\.py"),
    plant=plant_python,
)
