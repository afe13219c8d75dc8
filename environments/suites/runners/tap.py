"""node-tap. Its files are programs of Node; started by themselves they print TAP."""

from __future__ import annotations

from environments.suites import javascript
from environments.suites.canaries.blockduels import JAVASCRIPT_FALSIFIER
from environments.suites.canaries.blocknames import lone_titles
from environments.suites.canaries.blocks import JAVASCRIPT
from environments.suites.canaries.jsmasks import mask_javascript
from environments.suites.collected import own_names
from environments.suites.runner import PARENT, Runner, name_behind
from environments.suites.tap import parse_subtests

RUNNER = Runner(
    name="tap",
    template=f"{PARENT} node -- {{files}}",
    plain="node -e '' && for file in {files}; do node $file; done",
    typed="node FILE",
    files=r"(?:[.\-_](?:test|spec)|(?:^|/)test)\.[cm]?[jt]sx?$|(?:^|/)(?:tests?|__tests__)/(?:[^/]+/)*[^/]+\.[cm]?[jt]sx?$",
    parse=parse_subtests,
    reports=False,
    refused=javascript.REFUSED,
    file_of=javascript.file_of,
    steering=(r"\.taprc", *javascript.STEERING),
    project_files=javascript.PROJECT_FILES,
    sections=javascript.package_sections("tap"),
    sign=javascript.package_sign("tap", rank=50),
    name_of=name_behind(" > "),
    own_names=own_names("tap"),
    plant=JAVASCRIPT.plant,
    lone=lone_titles,
    falsify=JAVASCRIPT_FALSIFIER,
    mask=mask_javascript,
)
