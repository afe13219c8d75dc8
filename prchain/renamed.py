"""Flags of earlier releases: what is written in their place now. They are in no help, and mean nothing any more."""

from __future__ import annotations

from collections.abc import Mapping

_PRM = {
    "--prm-style": "--prm style=STYLE",
    "--prm-example": "--prm example=on|off",
    "--prm-reads": "--prm reads=all|guidance",
    "--prm-action": "--prm action=on|off",
    "--prm-every": "--prm VARIANT:every=N",
    "--prm-window": "--prm VARIANT:window=K",
    "--prm-reply": "--prm VARIANT:reply=text|json",
    "--prm-keep": "--prm VARIANT:keep=all|last",
    "--prm-send": "--prm VARIANT:send=all|suboptimal",
    "--prm-schedule": "--prm VARIANT:schedule=every|none|adaptive",
    "--prm-detectors": "--prm VARIANT:detectors=off|report|tell",
    "--prm-taxonomy": "--prm VARIANT:taxonomy=FILE",
}

_LIMITS = {
    f"--{of}-{unit}": f"--{of}-limits {unit}=N"
    for of in ("stage", "chain")
    for unit in ("steps", "usd", "tokens", "minutes")
}

_CONTEXT = {
    "--context-tokens": "--agent context_tokens=N",
    "--overflow": "--agent overflow=stop|elide",
}

_OBSERVED = {
    "--observation-chars": "--agent observation_chars=N",
    "--command-timeout": "--sandbox command_timeout=SECONDS",
}

_STEPS = {"--steps": "--stage-limits steps=N"}

OLD: Mapping[str, Mapping[str, str]] = {
    "rollouts run": {
        **_PRM,
        **_LIMITS,
        **_CONTEXT,
        **_OBSERVED,
        "--test-timeout": "--sandbox test_timeout=SECONDS",
        "--history": "--sandbox history=N",
        "--track": "--sandbox track=on",
        "--no-track": "--sandbox track=off",
        "--temperature": "--agent temperature=N",
        "--max-tokens": "--agent max_tokens=N",
        "--context": "--agent context=chain|stage",
        "--threshold": "--gate judge:threshold=SCORE",
        "--tests": "--gate judge:tests=always|gate",
        "--judge-sees": "--gate judge:sees=patches|tests",
    },
    "rollouts extend": {**_LIMITS, "--temperature": "--agent temperature=N"},
    "rollouts show": {"--diff": "--step N"},
}
"""Command to old flag to what is written now."""


def written_now(command: str, flag: str) -> str | None:
    """What to write in the place of a flag of a command that went; None for one that never was."""
    return OLD.get(command, {}).get(flag)
