"""The script between two steps of a chain: `inside.step` with its pack, as one file that removes itself."""

from __future__ import annotations

import base64
import io
import textwrap
import zipfile

from environments.stages import Stage, StagePatch
from prchain.core.errors import UsageError
from prchain.core.git.trees import SUBMODULE, TreeStore
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.inside.said import OBJECTS, StageSaid, texts_of
from trajectories.export.tasks.harbor.inside.step import STEP, StepSaid
from trajectories.export.tasks.harbor.objects import packed, trees_of

MODULE = "trajectories.export.tasks.harbor.inside.step"
SCRIPT = "setup.sh"
"""Harbor copies it into the repository's folder, and runs it there as the agent's user (harbor 0.26)."""
OLDEST_GIT = (2, 38)
"""The first with ``git merge-tree --write-tree``."""

# It always ends well: Harbor ends the trial where it does not, and whoever owns the container can see to that.
_SCRIPT = """\
#!/bin/bash
# {canary}
/usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 HOME=/nonexistent /usr/bin/python3 -I -S - "$0" <<'END'
import base64, os, shutil, subprocess, sys, tempfile
with open(sys.argv[1], "rb") as script:
    packed = base64.b64decode(script.read().split(b"\\n# packed\\n", 1)[1])
folder = os.getcwd()
os.unlink(sys.argv[1])
place = tempfile.mkdtemp(prefix="prchain-", dir="/var/tmp")
try:
    os.chdir(place)
    with open("step.pyz", "xb") as file:
        file.write(packed)
    shutil.unpack_archive("step.pyz", ".", "zip")
    command = ["/usr/bin/python3", "-I", "-S", "step.pyz", folder, place]
    sys.exit(subprocess.run(command, stdin=subprocess.DEVNULL).returncode)
finally:
    shutil.rmtree(place, ignore_errors=True)
END
/bin/rm -f -- "$0"
exit 0
# packed
"""


def setup_script(
    trees: TreeStore, before: Stage, stage: Stage, patches: list[StagePatch], said: StageSaid, canary: str
) -> bytes:
    """The script of a stage after `before`; `patches` are those of the stages before it, `said` is the stage's.

    Raises `UsageError` where the repository has a file of the script's name, `IncompleteRepository`.
    """
    step = step_said(trees, before, stage, patches, said)
    for commit in (before.base, before.landed, stage.base, stage.landed):
        if SCRIPT.encode() in trees.entries(commit):
            raise UsageError(f"the repository has a {SCRIPT} of its own, which Harbor would write over")
    out = io.BytesIO(bundle(MODULE))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((STEP, step.text().encode()), (OBJECTS, step_pack(trees, step))):
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED, 9)
    lines = textwrap.wrap(base64.b64encode(out.getvalue()).decode(), 100)
    return (_SCRIPT.format(canary=canary) + "\n".join(lines) + "\n").encode()


def step_said(trees: TreeStore, before: Stage, stage: Stage, patches: list[StagePatch], said: StageSaid) -> StepSaid:
    """What the script is told."""
    return StepSaid(
        base_before=trees.tree_of(before.base),
        landed_before=trees.tree_of(before.landed),
        base=trees.tree_of(stage.base),
        test_paths=texts_of({path for patch in patches for path in patch.test_paths}),
        outputs=said.outputs,
        refresh=said.refresh,
        tag=said.tag,
        environment=said.environment,
    )


def step_pack(trees: TreeStore, step: StepSaid) -> bytes:
    """The trees, and of their files what upstream changed from M_{t-1} to B_t, the tests of the earlier stages as they
    landed, and the ignore rules of B_{t-1}. Raises `IncompleteRepository`."""
    names: dict[str, None] = {}
    for tree in (step.base_before, step.landed_before, step.base):
        names |= dict.fromkeys(trees_of(trees, tree))
    for change in trees.diff(step.landed_before, step.base):
        names |= {entry.blob: None for entry in (change.old, change.new) if entry and entry.mode != SUBMODULE}
    tests = set(step.test_paths)
    landed = trees.entries(step.landed_before)
    names |= {it.blob: None for path, it in landed.items() if it.mode != SUBMODULE and texts_of([path])[0] in tests}
    rules = trees.entries(step.base_before)
    names |= {it.blob: None for path, it in rules.items() if path.rpartition(b"/")[2] == b".gitignore"}
    return packed(trees, names)
