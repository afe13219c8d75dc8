"""The example of a reply in a prompt, for whatever taxonomy is in use."""

from __future__ import annotations

import json

from trajectories.agents.guidance.settings import PrmSettings
from trajectories.agents.guidance.variants import PrmStyle

_DETECTED = {
    "step_repetition": (
        'sed -n "1,80p" lib/parser.c',
        "You have read these lines in steps 3 and 5. Write the bounds check into next_token() now.",
    ),
    "verification_failure": (
        "The edit looks right, I will submit.",
        "Build it and run tests/test_parser before you hand it in.",
    ),
}
"""Category to evidence and recovery; a taxonomy without these has its first and its last one in their place."""

_GUIDANCE = {
    PrmStyle.CONCISE: "Stop reading parser.c and make the bounds check in next_token(); then run tests/test_parser.",
    PrmStyle.DETAILED: (
        "You know enough to make the change, and read the same lines again instead.\n"
        "1. Do not open lib/parser.c again: lines 1 to 80 have not changed since step 3.\n"
        "2. Add the bounds check at the top of next_token(), where the trace of step 4 ends.\n"
        "3. Build, and run tests/test_parser: its case empty_input has to pass, and the others as before.\n"
        "4. Only then hand the work in."
    ),
}

_ACTION = 'bash {"command": "make && ./tests/test_parser"}'


def example_reply(settings: PrmSettings) -> str:
    """An example in the form that the settings ask for; the settings' style is not simple."""
    taxonomy = settings.categories
    assert taxonomy is not None
    places = dict(_DETECTED)
    if not all(taxonomy.has(name) for name in places):
        own = taxonomy.categories
        places = dict(zip(dict.fromkeys([own[0].name, own[-1].name]), _DETECTED.values(), strict=False))
    guidance = _GUIDANCE[settings.style]
    if settings.reply == "json":
        value = {
            "status": "needs_correction",
            "guidance": guidance,
            "detections": [
                {"category": name, "evidence": evidence, "recovery": recovery}
                for name, (evidence, recovery) in places.items()
            ],
            **({"recommended_action": _ACTION} if settings.action else {}),
        }
        return json.dumps(value, indent=1)
    lines = []
    for number, category in enumerate(taxonomy.categories, 1):
        found = places.get(category.name)
        lines += [f"{number}. {category.title}", f"DETECTED: {'Yes' if found else 'No'}"]
        lines += [f"EVIDENCE: {found[0]}", f"RECOVERY_ACTION: {found[1]}"] if found else []
    lines += ["", "TASK_STATUS: Needs correction", f"OVERALL_GUIDANCE: {guidance}"]
    return "\n".join([*lines, *([f"RECOMMENDED_ACTION: {_ACTION}"] if settings.action else [])])
