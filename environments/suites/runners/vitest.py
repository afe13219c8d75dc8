"""vitest."""

from __future__ import annotations

from environments.suites import javascript
from environments.suites.canaries.blockduels import JAVASCRIPT_FALSIFIER
from environments.suites.canaries.blocknames import lone_titles
from environments.suites.canaries.blocks import JAVASCRIPT
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.collected import own_names
from environments.suites.runner import Runner, name_behind

RUNNER = Runner(
    name="vitest",
    template="vitest run {files} --reporter={tools}/vitest_reporter.mjs",
    plain="vitest run --reporter=verbose --no-color {files}",
    typed="vitest run FILES",
    files=r"\.(?:test|spec)\.[cm]?[jt]sx?$",
    parse=javascript.results,
    refused=javascript.REFUSED,
    file_of=javascript.file_of,
    steering=(r"vitest\.(?:config|workspace|setup)\.\w+", *javascript.STEERING),
    project_files=(r"vite\.config\.\w+", *javascript.PROJECT_FILES),
    sections=javascript.package_sections("vitest"),
    sign=javascript.package_sign("vitest", rank=10),
    name_of=name_behind(" > "),
    own_names=own_names("vitest"),
    plant=JAVASCRIPT.plant,
    lone=lone_titles,
    falsify=JAVASCRIPT_FALSIFIER,
    mask=mask_javascript,
)
