"""A build's log: the lines that say why it failed are found among the many that only say that it did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.images.buildlogs import MOST_LINES, cure, decisive_lines, is_away, refusal

RESOLUTION = """Using Python 3.11.2 environment at: /opt/env
Resolved 3 packages in 812ms
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because only numpy<=2.3.5 is available and widget==1.4.0 depends on numpy>=9, we can conclude that
      widget==1.4.0 cannot be used.
      And because you require widget[test], we can conclude that your requirements are unsatisfiable.
"""

COMPILER = """Collecting lxml==4.2.1
  Building wheel for lxml (pyproject.toml): started
  error: subprocess-exited-with-error
  \u00d7 Building wheel for lxml (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> [102 lines of output]
      running build_ext
      building 'lxml.etree' extension
      src/lxml/etree.c:96:10: fatal error: libxml/xmlversion.h: No such file or directory
         96 | #include "libxml/xmlversion.h"
      compilation terminated.
      error: command '/usr/bin/x86_64-linux-gnu-gcc' failed with exit code 1
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for lxml
ERROR: Could not build wheels for lxml, which is required to install pyproject.toml-based projects
"""

PYTHON = """Preparing metadata (setup.py): started
ERROR: Package 'gadget' requires a different Python: 3.11.2 not in '<3.11,>=3.6'
"""

SETUP = """running egg_info
Traceback (most recent call last):
  File "<string>", line 14, in <module>
  File "/testbed/setup.py", line 5, in <module>
    import numpy
ModuleNotFoundError: No module named 'numpy'
hint: See above for output from the failure.
"""

NPM = """npm warn deprecated inflight@1.0.6: This module is not supported
npm error code ERESOLVE
npm error ERESOLVE could not resolve
npm error Could not resolve dependency:
npm error peer react@"^16.8" from widget@2.0.0
npm error A complete log of this run can be found in: /home/agent/.npm/_logs/x.log
"""

CARGO = """    Updating index
error: no matching package named `widgetry` found
location searched: registry
"""

GO = """go: downloading example.org/widget v1.0.0
go: example.org/widget@v1.0.0: reading https://example.org: 404 Not Found
"""

MAVEN = """[INFO] Scanning for projects...
[ERROR] Failed to execute goal on project app: Could not resolve dependencies for project a:app:jar:1.0
[ERROR] -> [Help 1]
[ERROR] Re-run Maven using the -X switch to enable full debug logging.
"""

DISK = """Downloading torch
error: failed to write to file `/opt/env/lib/libtorch.so`
  Caused by: No space left on device (os error 28)
"""

APT = """Reading package lists...
E: Unable to locate package libwidget-dev
"""


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (RESOLUTION, "widget==1.4.0 depends on numpy>=9"),
        (COMPILER, "fatal error: libxml/xmlversion.h"),
        (PYTHON, "requires a different Python: 3.11.2"),
        (SETUP, "ModuleNotFoundError: No module named 'numpy'"),
        (NPM, "npm error code ERESOLVE"),
        (CARGO, "no matching package named `widgetry`"),
        (GO, "404 Not Found"),
        (MAVEN, "Could not resolve dependencies"),
        (DISK, "No space left on device"),
        (APT, "Unable to locate package libwidget-dev"),
    ],
)
def test_the_cause_is_among_the_decisive_lines_even_when_it_stands_in_the_middle_of_a_long_log(
    log: str, cause: str
) -> None:
    chatter = "".join(f"Downloading package {number}\nInstalling package {number}\n" for number in range(2_000))
    found = decisive_lines(chatter + log + "cleaning up\n" * 50)
    assert any(cause in line for line in found)
    assert len(found) <= MOST_LINES


FORBIDDEN = """error: Failed to install seed packages into virtual environment
  cause: Because pip was not found in the package registry and you require pip, we can conclude that your
requirements are unsatisfiable.

hint: An index (http://index.example/simple) returned a 403 Forbidden error. Check that the index URL is correct.
"""
REFUSED = """error: Request failed after 3 retries in 7.1s
  cause: Failed to fetch: http://index.example/simple/pip/
  cause: error sending request for url (http://index.example/simple/pip/)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
OF_PIP = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(refused)': /simple/uv/
ERROR: Could not find a version that satisfies the requirement uv (from versions: none)
ERROR: No matching distribution found for uv
"""


@pytest.mark.parametrize(
    ("log", "cause", "told"),
    [
        (FORBIDDEN, "An index (http://index.example/simple) returned a 403", "with credentials"),
        (REFUSED, "Connection refused (os error 111)", "environments_proxy"),
        (REFUSED, "Failed to fetch: http://index.example/simple/pip/", "environments_proxy"),
        (OF_PIP, "connection broken by", "environments_proxy"),
        ("error: the index gave no whole answer in 150 s\n", "no whole answer", "environments_index_url"),
    ],
)
def test_an_index_that_refuses_is_the_cause_and_not_the_packages_that_it_therefore_lacks(
    log: str, cause: str, told: str
) -> None:
    found = decisive_lines(log)
    assert cause in refusal(found) and "Because" not in refusal(found) and "cause:" not in refusal(found)
    assert told in str(cure(found))


@pytest.mark.parametrize(
    ("log", "noise"), [(NPM, "complete log"), (COMPILER, "note: This error"), (MAVEN, "Re-run"), (SETUP, "hint")]
)
def test_lines_that_only_point_elsewhere_are_left_out(log: str, noise: str) -> None:
    assert not any(noise in line for line in decisive_lines(log))


def test_a_log_without_any_sign_gives_its_end() -> None:
    assert decisive_lines("one\ntwo\n\nthree\n", most=2) == ("two", "three")
    assert decisive_lines("") == ()


def test_colours_and_carriage_returns_of_a_terminal_do_not_hide_a_cause() -> None:
    assert decisive_lines("10%\r50%\r\x1b[31mERROR: No matching distribution found for x\x1b[0m\n") == (
        "ERROR: No matching distribution found for x",
    )


@given(st.text(max_size=400))
def test_any_text_gives_few_short_printable_lines(log: str) -> None:
    found = decisive_lines(log)
    assert len(found) <= MOST_LINES
    assert all(line and len(line) <= 300 and "\n" not in line and "\x1b" not in line for line in found)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("error: invalid peer certificate: UnknownIssuer", "environments_ca_bundle"),
        ("Could not resolve host: pypi.org", "environments_proxy"),
        ("OSError: [Errno 28] No space left on device", "environments prune"),
        ("hint: `x` was filtered by `exclude-newer`", "exclude-newer-package"),
        ('OCI runtime exec failed: exec: "bash": executable file not found in $PATH', "environments_base_image"),
        ("bash: line 12: apt-get: command not found", "environments_base_image"),
        ("ModuleNotFoundError: No module named 'x'", "None"),
    ],
)
def test_a_cause_whose_cure_is_known_is_told_with_it(line: str, told: str) -> None:
    assert told in str(cure(["error: x", line]))


@pytest.mark.parametrize(
    ("log", "away"),
    [
        (
            'go: m@v1: Get "https://proxy.example/m": dial tcp: lookup proxy.example: no such host',
            1,
        ),
        ('go: m@v1: Get "https://proxy.example/m": dial tcp 9.9.9.9:443: connect: connection refused', 1),
        ('go: m@v1: Get "https://proxy.example/m": dial tcp 9.9.9.9:443: i/o timeout', 1),
        ("error: failed to query replaced source registry\n[6] (Could not resolve host: index.example)", 1),
        ("go: m@v1: reading https://proxy.example/m/@v/v1.mod: 404 Not Found", 0),
        ("go: updates to go.mod needed", 0),
        ("fatal: unable to access 'https://gone.example/x.git/': Could not resolve host: gone.example", 0),
    ],
)
def test_an_index_that_cannot_be_reached_is_no_fault_of_the_repository(log: str, away: int) -> None:
    assert is_away(decisive_lines(log)) is bool(away)
