"""Python's unittest."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from environments.suites.canaries.falsehoods import PYTHON_FALSIFIER
from environments.suites.canaries.python import plant_python
from environments.suites.canaries.pythonmasks import mask_python
from environments.suites.canaries.renames import lone_names
from environments.suites.runner import Runner, name_behind
from environments.suites.testlogs import Status, join, uncoloured

_START = re.compile(
    r"(?<![^\s()])(?P<method>[^\s()]{1,2000}) \((?P<place>[^\s()]{1,400})\)(?: [(\[][^\n]{0,200}[)\]])?"
    r"(?:\n[^\n]{0,200}?)?? \.\.\.(?: |(?=\n)|$)"
)
_WORD = re.compile(r"(?P<word>ok|FAIL|ERROR|skipped(?: .*)?|expected failure|unexpected success)$")
_WORDS = {
    "ok": Status.passed,
    "FAIL": Status.failed,
    "ERROR": Status.error,
    "expected failure": Status.xfail,
    "unexpected success": Status.xpass,
}
_HEADING = re.compile(r"^=+\n(?P<word>ERROR|FAIL): (?P<method>[^\s()]+) \((?P<place>[^\s()]+)\)", re.M)
_OF_ALL = re.compile(r"\.(?:setUp|tearDown)(?:Class|Module)$")
"""Of what is no test, and is named where it fails."""
_RESULT = re.compile(r"^Ran (?P<tests>\d+) tests? in [\d.]+s\n+(?:OK|FAILED|NO TESTS RAN)(?: \(.*\))?$", re.M)


def parse_unittest(log: str) -> dict[str, Status]:
    """The tests of ``python -m unittest -v``, by their dotted ids (``tests.test_a.Case.test_b``).

    Python 3.11 and newer print the whole id in the brackets, older ones the class alone, and 3.14 has colours; a
    docstring takes a second line. What a test prints may stand between ``...`` and its word, over several lines, and
    before the next test on its line: the word that ends the last line of all that stands before the next test counts,
    and a test without one is an error. Nothing passed in a run without its result (``Ran 3 tests in 0.1s``), or that
    names more tests than it ran.
    """
    log = uncoloured(log).replace("\r\n", "\n")
    body = log.partition("\n" + "=" * 70)[0]
    starts = list(_START.finditer(body))
    reports, without_word = list[tuple[str, Status]](), list[tuple[str, Status]]()
    for found, end in zip(starts, [*(it.start() for it in starts[1:]), len(body)], strict=False):
        word = _word(body[found.end() : end].partition("\n" + "-" * 70)[0])
        (reports if word else without_word).append((_dotted(found["method"], found["place"]), word or Status.error))
    for found in _HEADING.finditer(log):
        reports.append((_dotted(found["method"], found["place"]), _WORDS[found["word"]]))
    statuses = {**join(without_word), **join(reports)}
    ran = [int(found["tests"]) for found in _RESULT.finditer(log)]
    if ran and sum(not _OF_ALL.search(test) for test in statuses) <= ran[-1]:
        return statuses
    return {test: Status.error if status is Status.passed else status for test, status in statuses.items()}


def _word(text: str) -> Status | None:
    """The last result that ends a line."""
    for line in reversed(text.split("\n")):
        if found := _WORD.search(line.rstrip()):
            word = found["word"]
            return Status.skipped if word.startswith("skipped") else _WORDS[word]
    return None


def _dotted(method: str, place: str) -> str:
    """The id of a test; where the whole id is in the brackets, what stands before the method was printed."""
    name = place.rpartition(".")[2]
    is_whole = place.endswith(f".{method}") or (method.endswith(name) and name.startswith("test"))
    return place if is_whole else f"{place}.{method}"


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


def named(files: Sequence[str], tests: Sequence[str]) -> list[str]:
    """See `Runner.named`: ids of tests that stand in a class of such a module."""
    names = modules(files)
    for it in tests:
        place = next((it[len(name) + 1 :] for name in names if it.startswith(f"{name}.")), "")
        if place.count(".") != 1 or not all(map(str.isidentifier, place.split("."))):
            return []
    return list(dict.fromkeys(tests))


RUNNER = Runner(
    name="unittest",
    template="python {tools}/python_reporter.py",
    plain="python -m unittest -v {files}",
    typed="python -m unittest MODULES",
    files=r"(?:^|/)tests?[^/]*\.py$",
    parse=parse_unittest,
    arguments=modules,
    # No dotted name of a module.
    refused=r"(?:^|/)[^/]*\.[^/]*/|\.[^/]*\.py$",
    plain_refused=r"^-",  # an option
    file_of=file_of,
    named=named,
    steering=(r"(?:site|user)customize\.py",),
    shadows=(r"unittest/__init__\.py", r"unittest\.py"),
    plant=plant_python,
    lone=lone_names,
    falsify=PYTHON_FALSIFIER,
    mask=mask_python,
    name_of=name_behind("."),
)
