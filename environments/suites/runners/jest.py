"""jest."""

from __future__ import annotations

from environments.suites import javascript
from environments.suites.canaries.blockduels import JAVASCRIPT_FALSIFIER
from environments.suites.canaries.blocknames import lone_titles
from environments.suites.canaries.blocks import JAVASCRIPT
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.collected import own_names
from environments.suites.runner import Runner, name_behind

# On two cores jest would run all in its own process, which holds the key, and which a test's `process.exit` ends.
RUNNER = Runner(
    name="jest",
    template="jest --ci --maxWorkers=2 --runTestsByPath {files} --reporters={tools}/jest_reporter.cjs",
    plain="jest --ci --verbose --colors=false --runTestsByPath {files}",
    typed="jest --ci FILES",
    files=r"\.(?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)__tests__/(?:[^/]+/)*[^/]+\.[cm]?[jt]sx?$",
    parse=javascript.results,
    refused=javascript.REFUSED,
    file_of=javascript.file_of,
    steering=(r"jest\.(?:config|setup)\.\w+", *javascript.STEERING),
    project_files=javascript.PROJECT_FILES,
    sections=javascript.package_sections("jest"),
    sign=javascript.package_sign("jest", rank=20),
    name_of=name_behind(" > "),
    own_names=own_names("jest"),
    plant=JAVASCRIPT.plant,
    lone=lone_titles,
    falsify=JAVASCRIPT_FALSIFIER,
    mask=mask_javascript,
)
