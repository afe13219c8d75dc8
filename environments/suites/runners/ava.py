"""ava, a command for each file. Tests run in processes or threads of their own, and ava prints TAP."""

from __future__ import annotations

from dataclasses import replace

from environments.suites import javascript
from environments.suites.collected import own_names
from environments.suites.runner import PARENT
from environments.suites.runners.tap import RUNNER as TAP

RUNNER = replace(
    TAP,
    name="ava",
    template=f"{PARENT} ava --tap -- {{files}}",
    plain="ava --verbose {files}",
    typed="ava FILES",
    steering=(r"ava\.config\.\w+", *javascript.STEERING),
    sections=javascript.package_sections("ava"),
    sign=javascript.package_sign("ava", rank=52),
    own_names=own_names("ava"),
)
