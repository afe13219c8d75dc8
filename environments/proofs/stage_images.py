"""Images that hold a stage's checkout: S_t = B_t as a git repository in the work folder, refreshed.

SWE-bench's harness needs them: it starts a container of the instance's image as root, applies a patch to the checkout
with git and runs the tests.
"""

from __future__ import annotations

import hashlib
import shlex
from typing import Any

from environments.images.manifests import image_name
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import LABEL, engine_failures
from environments.sandboxes.leftovers import OWNER, SANDBOX, SNAPSHOT
from environments.sandboxes.sandbox import WORKDIR
from environments.stages import ChainStages, Stage
from environments.workplace import Workplace
from prchain.core.errors import ImageError, ImageMissing

STAGE_LABEL = f"{LABEL}.stage"
"""On images of checkouts: a hash of all that they were made from."""

# The checkout belongs to the image's user, and git refuses a repository that is another's to root.
# The harness looks at our work folder; a publisher's image may have the repository elsewhere.
_TRUSTED = "git config --system --replace-all safe.directory {0} && {{ [ -e {1} ] || ln -s {0} {1}; }}"


def stage_image_name(chain: ChainStages, stage: Stage) -> str:
    """``prchain/<owner>--<name>:stage-<chain>-<position>``."""
    return image_name(chain.repository, f"stage-{chain.id}-{stage.position}")


def stage_image(workplace: Workplace, chain: ChainStages, stage: Stage) -> str:
    """The name of the image of a stage's checkout, made where the engine has none of the same inputs.

    `workplace` is the stage's, in docker, and connected. Raises as `Workplace.place`, and `ImageError` where the engine
    refuses.
    """
    client = workplace.backend.client
    name = stage_image_name(chain, stage)
    with engine_failures():
        base_image = str(client.images.get(workplace.provided.image).id)
    tree = workplace.trees.tree_of(stage.base)
    inputs = "\n".join([base_image, tree, *workplace.provided.plan.refresh, str(workplace.provided.plan.environment)])
    digest = hashlib.sha256(inputs.encode()).hexdigest()
    if _label(client, name) == digest:
        return name
    sandbox = workplace.sandbox(from_base=False)
    if not isinstance(sandbox, DockerSandbox):
        raise ImageError("images of checkouts are made in docker only")
    with sandbox:
        workplace.place(sandbox, tree)
        with engine_failures():
            container = client.containers.get(sandbox.name)
            trusted = _TRUSTED.format(shlex.quote(sandbox.config.workdir), WORKDIR)
            result = container.exec_run(["bash", "-c", trusted], user="0")
        if result.exit_code != 0:
            raise ImageError(f"git cannot be told to trust {sandbox.config.workdir}: exit code {result.exit_code}")
        repository, _, tag = name.rpartition(":")
        labels = [f'LABEL {label}=""' for label in (SANDBOX, SNAPSHOT, OWNER)]
        # An entry point that is empty, not missing, is not taken from the container; `changes` cannot say so.
        with engine_failures():
            container.commit(
                repository=repository,
                tag=tag,
                changes=[*labels, f'LABEL {STAGE_LABEL}="{digest}"'],
                conf={"Entrypoint": [], "Cmd": ["/bin/bash"]},
            )
    return name


def _label(client: Any, name: str) -> str | None:
    try:
        with engine_failures():
            return (client.images.get(name).labels or {}).get(STAGE_LABEL)
    except ImageMissing:
        return None
