"""tape. Its files are programs of Node that print TAP."""

from __future__ import annotations

from dataclasses import replace

from environments.suites import javascript
from environments.suites.collected import own_names
from environments.suites.runners.tap import RUNNER as TAP
from environments.suites.tap import parse_titled

RUNNER = replace(
    TAP,
    name="tape",
    parse=parse_titled,
    steering=javascript.STEERING,
    sections=javascript.package_sections("tape"),
    sign=javascript.package_sign("tape", rank=51),
    own_names=own_names("tape"),
)
