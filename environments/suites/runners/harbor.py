"""The tests of a task of Harbor's, which are a script of its own that writes a reward.

M_t's tree holds the files in the folder `.harbor-tests`. A run lays them at /tests, outside of the tree, and takes them
out of it; then ``/tests/test.sh`` runs in the work folder. The container is a fresh one of the task's image, as in
Harbor's mode ``separate``. A reward that is missing or unreadable is no test that passes, whatever the exit code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection

from environments.suites.runner import Runner
from environments.suites.testlogs import Status

FOLDERS = ("/tests", "/solution", "/logs/agent", "/logs/verifier", "/logs/artifacts")
"""Where Harbor puts things (harbor 0.26): an image for such tests has them, empty, and its user can write there."""

FILES = ".harbor-tests"

# Where others than root run it, the folders are there already (`environments.images.published.images`).
_BEGIN = f"""\
shopt -s dotglob nullglob
mkdir -p /tests /logs/agent /logs/verifier /logs/artifacts
rm -rf -- /tests/* /logs/verifier/*
cp -a -- {FILES}/* /tests/ && chmod +x /tests/test.sh || exit 1
git rm -rqf --cached -- {FILES} && git commit -q --amend --no-edit --no-verify
rm -rf -- {FILES}
"""
_END = """
[[ -f /logs/verifier/reward.json ]] && found=/logs/verifier/reward.json || found=/logs/verifier/reward.txt
[[ -f $found ]] && head -c 1000000 -- "$found" >{report}
exit 0"""


def script(lines: Collection[str]) -> str:
    """The command that runs these lines of shell as such tests."""
    return f"{_BEGIN}(\n" + "\n".join(lines) + f"\n) </dev/null{_END}"


def parse_rewards(log: str) -> dict[str, Status]:
    """A reward of 1 passes. Of several (an object of numbers) the one that is called so counts, and where none is, each
    is a test. A text that Harbor would refuse, too, has none."""
    try:
        values = json.loads(log)
    except (ValueError, RecursionError):
        try:
            values = float(log)  # as `reward.txt` may write it: ``.5``
        except ValueError:
            return {}
    rewards = values if isinstance(values, dict) else {"reward": values}
    if not rewards or not all(_is_number(value) for value in rewards.values()):
        return {}
    chosen = ["reward"] if "reward" in rewards else sorted(rewards)
    return {name: Status.passed if rewards[name] >= 1 else Status.failed for name in chosen}


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def file_of(test: str, files: Collection[str]) -> str | None:
    """All of them are of the one script."""
    return next(iter(files), None)


RUNNER = Runner(
    name="harbor",
    template=script(["/tests/test.sh"]),
    plain="bash {files}",
    typed="bash FILES",
    files=rf"^{FILES.replace('.', '[.]')}/test\.sh$",
    parse=parse_rewards,
    file_of=file_of,
)
