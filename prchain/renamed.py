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
    "chains build": {"--overlap": "--shared"},
    "tasks show": {"--diff": "--reference"},
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
    "curate run": {
        **_PRM,
        **_CONTEXT,
        **_OBSERVED,
        **_STEPS,
        "--test-timeout": "--sandbox test_timeout=SECONDS",
        "--window": "--windows window=N",
        "--stride": "--windows stride=N",
        "--seeds": "--windows seeds=N",
        "--floor": "--windows floor=N",
        "--floor-unit": "--windows floor_unit=progress|nodes",
        "--premature": "--windows premature=defer|zero",
        "--pick": "--windows pick=rule|model",
        "--length": "--windows length=tokens|all|steps",
        "--est": "--windows est=step|each",
        "--ground": "--windows ground=on|off",
        "--commit": "--windows commit=shortest|random",
    },
    "curate graphs": {
        **_OBSERVED,
        "--empty-rounds": "--rounds 6:empty_rounds=N",
        "--tool-calls": "--rounds 6:tool_calls=N",
        "--nodes": "--rounds 6:nodes=N",
        "--schema-repeats": "nothing: it is always 2",
        "--wide-view": "nothing: it is always 60",
        "--most-dropped": "nothing: it is always 0.25",
    },
    "curate study disclosure": {**_CONTEXT, **_STEPS},
    "prm replay": _PRM,
    "prm sweep": {
        **{flag: now.replace("VARIANT:", "") for flag, now in _PRM.items()},
        **dict.fromkeys(("--prm-style", "--prm-example", "--prm-reads", "--prm-action"), "--variants LIST"),
        "--stage-steps": "--stage-limits steps=N",
        "--temperature": "--agent temperature=N",
        "--context-tokens": "--agent context_tokens=N",
    },
    "prm labels": {"--pairs": "--beginnings", "--next-steps": "nothing: it is always 5"},
    "export": {
        "--refinements": "--rejected mask|keep|drop",
        "--grounded": "--guidance drop:grounded=on",
        "--per-chain": "--duplicates trees:per_chain=shortest",
        "--too-long": "--max-tokens N:too_long=drop|split",
        "--split-by": "--split SHARE:by=repository|chain",
        "--sample": "--predictions sample=N",
        "--like": "--predictions like=ID",
    },
}
"""Command to old flag to what is written now."""


def written_now(command: str, flag: str) -> str | None:
    """What to write in the place of a flag of a command that went; None for one that never was."""
    return OLD.get(command, {}).get(flag)
