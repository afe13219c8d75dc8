"""Maven with surefire. Its report is JUnit's XML as surefire and failsafe write it, one document a test class."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError, ParserCreate, errors

from environments.suites.canaries.blocks import JAVA
from environments.suites.runner import PARENT, Runner, function_behind
from environments.suites.testlogs import Status, join

_SPACE = re.compile(rb"\s*")
_OUTCOMES = {"failure": Status.failed, "error": Status.error, "skipped": Status.skipped}
_NEXT = {
    errors.codes[message] for message in (errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT, errors.XML_ERROR_MISPLACED_XML_PI)
}
"""Where a document has ended, and another one begins."""


def parse_surefire(log: str) -> dict[str, Status]:
    """The tests of surefire's ``TEST-*.xml`` files, one after the other, as ``package.Class#method``.

    A suite whose own counts differ from its test cases, or that cannot be read, has no passed test: its file was cut
    off or written by somebody else. ``rerunFailures`` and ``flakyFailures`` count as what the last run was. What tests
    print stands in the files as text, also where it is XML: a document ends where its root does. Behind one that
    cannot be read nothing counts, but where other output stands before the documents.
    """
    return join(report for root in _roots(log) for report in _suites(root))


def _roots(log: str) -> Iterator[ElementTree.Element]:
    text = log.strip().encode("utf-8", "replace")
    is_mixed = not text.startswith(b"<")
    at = 0
    while (at := text.find(b"<?xml", at) if is_mixed else at) >= 0 and at < len(text):
        end = _end(text[at:])
        try:
            yield ElementTree.fromstring(text[at : at + end])
        except ElementTree.ParseError:
            if not is_mixed:
                return
            end = 1
        at = _SPACE.match(text, at + end).end()  # type: ignore[union-attr]  # which always matches


def _end(text: bytes) -> int:
    """Where the document ends that begins the text; 0 for one that cannot be read, or has a document type: surefire
    writes none, and entities can grow without end."""
    parser = ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except ValueError:
        return 0
    except ExpatError as error:
        return parser.ErrorByteIndex if error.code in _NEXT else 0
    return len(text)


def _refuse(*_: object) -> None:
    raise ValueError("a document type")


def _suites(root: ElementTree.Element) -> Iterator[tuple[str, Status]]:
    for suite in root.iter("testsuite"):
        cases = [(_name(case, suite), _status(case)) for case in suite.findall("testcase")]
        consistent = all(
            suite.get(count) in {None, str(sum(status is kind for _, status in cases))}
            for count, kind in (("failures", Status.failed), ("errors", Status.error), ("skipped", Status.skipped))
        ) and suite.get("tests") in {None, str(len(cases))}
        for name, status in cases:
            yield name, status if consistent or status is not Status.passed else Status.error


def _name(case: ElementTree.Element, suite: ElementTree.Element) -> str:
    return "#".join(part for part in (case.get("classname") or suite.get("name"), case.get("name")) if part)


def _status(case: ElementTree.Element) -> Status:
    return next((_OUTCOMES[child.tag] for child in case if child.tag in _OUTCOMES), Status.passed)


def classes(files: Sequence[str]) -> list[str]:
    """The names of the files' classes, as ``-Dtest`` takes them."""
    return list(dict.fromkeys(posixpath.splitext(posixpath.basename(path))[0] for path in files))


def file_of(test: str, files: Collection[str]) -> str | None:
    """The file of the outermost class that a test is of."""
    ending = test.partition("#")[0].partition("$")[0].replace(".", "/") + ".java"
    return next((path for path in files if f"/{path}".endswith(f"/{ending}")), None)


RUNNER = Runner(
    name="surefire",
    template=(
        f"{PARENT} mvn -o -B ${{MAVEN_WAY:-}} test -Dtest={{files}} -DfailIfNoTests=false"
        " -Dsurefire.failIfNoSpecifiedTests=false -Dmaven.test.failure.ignore=false"
    ),
    plain="mvn -o -B test -Dtest={files} -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false",
    typed="mvn -o -B test -Dtest=CLASSES",
    files=r"(?:^|/)(?:Test[^/]*|[^/]*(?:Tests?|TestCase|IT))\.java$",
    parse=parse_surefire,
    reports=False,
    arguments=classes,
    separator=",",
    file_of=file_of,
    steering=(r"\.mvn/[^/]*(?:config|nextest|extensions)[^/]*",),
    project_files=(r"pom\.xml",),
    sections={"pom.xml": (("build",), ("profiles",))},
    name_of=function_behind("#"),
    # The name of no class; in -Dtest some are patterns.
    refused=r"(?:^|/)(?:\d[^/]*|[^/]*[^\w$/][^/]*)\.java$",
    plant=JAVA.plant,
)
