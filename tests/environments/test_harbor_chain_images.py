"""The image of a chain of two environments in an engine: what it holds, who reads it, and what a switch makes of it."""

from __future__ import annotations

import contextlib
import os
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from environments.images.images import remove_image
from environments.sandboxes.engine import connect, engine_failures
from prchain.core.errors import ImageMissing, UsageError
from tests.trajectories.test_harbor_folder import CHAIN
from trajectories.export.tasks.harbor import chain_image as chains
from trajectories.export.tasks.harbor.chain_image import archive_of, chain_image
from trajectories.export.tasks.harbor.folder import files_of
from trajectories.export.tasks.harbor.image import ImageFacts, TaskImage, container_of

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
COMMON = "set -e; id agent || useradd agent; mkdir -p /opt/env/lib /opt/python /testbed; echo code > /testbed/a"
ENVIRONMENTS = (
    "echo 1 > /opt/env/lib/version; mkdir /opt/python/3.8; echo old > /opt/python/3.8/python; chown -R agent /opt/env",
    "echo 2 > /opt/env/lib/version; mkdir -m 750 /opt/python/3.12; echo new > /opt/python/3.12/python; "
    "ln /opt/python/3.12/python /opt/python/3.12/hard; chmod 4711 /opt/python/3.12/hard; "
    "ln -s ../python/3.12 /opt/env/now; chown -R agent /opt/env; echo THE SECOND REFERENCE > /testbed/a",
)
SHOWN = (
    "cd /opt && find env python -printf '%p %y %m %u %l\\n' | sort && cat env/lib/version python/*/*; cat /testbed/a"
)
PLANTED = "rm -rf /opt/env/lib; ln -s /etc /opt/env/lib; mkdir /opt/env/now; echo mine > /opt/env/now/mine"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with contextlib.closing(connect()) as client:
        yield client


@pytest.fixture(scope="module")
def images(client: Any) -> Iterator[list[str]]:
    """Two images of dependencies; the first serves as that of its stage's tasks, too."""
    repository = f"prchain-test/chain-{os.getpid()}"
    names = [f"{repository}:{number}" for number in (1, 2)]
    try:
        for name, script in zip(names, ENVIRONMENTS, strict=True):
            with container_of(client, IMAGE) as container:
                said(container, f"({COMMON}; {script}) && touch /made", "0")
                assert said(container, "ls /made", "0") == "/made\n"
                container.commit(repository=repository, tag=name[-1], changes=["USER agent"])
        yield names
    finally:
        for name in names:
            with contextlib.suppress(ImageMissing), engine_failures():
                client.images.remove(name, force=True)


def said(container: Any, script: str, user: str) -> str:
    done = container.exec_run(["/bin/bash", "-c", script], user=user)
    return str(done.output.decode())


@pytest.mark.docker
def test_the_environment_of_a_later_stage_is_there_for_root_alone_and_made_as_its_image_has_it(
    client: Any, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = ImageFacts(
        inputs=str(os.getpid()) * 8,
        user="agent",
        environment={},
        outputs=(),
        watched=("/opt/env",),
        fingerprint={"files": "1", "compiled": "1"},
        git=(2, 39),
    )
    plan = SimpleNamespace(workdir="/testbed")
    places: Any = [SimpleNamespace(provided=SimpleNamespace(image=name, plan=plan)) for name in images]
    tasks = [TaskImage(images[0], facts), TaskImage("unused", replace(facts, outputs=("build/",)))]
    with monkeypatch.context() as patched:
        patched.setattr(chains, "MOST_BYTES", 4)
        with pytest.raises(UsageError, match="environments differ too much: 0 MB of files"):
            chain_image(client, "shop/till", "c0", places, tasks)
    found = chain_image(client, "shop/till", "c0", places, tasks)
    try:
        assert found.archives == ("", archive_of(2)) and found.stages[1].outputs == ("build/",)
        assert found.stages[0] == facts and found.stages[1].fingerprint["files"] not in ("", "1")
        first = client.images.get(found.name)
        with monkeypatch.context() as patched:
            patched.setattr(chains, "_listing", None)
            assert chain_image(client, "shop/till", "c0", places, tasks) == found, "what is there is not made again"
        assert first.attrs["Config"]["User"] == "agent"
        steps = [replace(CHAIN.steps[0], switches_to=found.switches()[0]), CHAIN.steps[1]]
        values = tomllib.loads(files_of(replace(CHAIN, steps=steps))["task.toml"].decode())
        (collect,) = values["steps"][0]["verifier"]["collect"]
        with container_of(client, images[1]) as container:
            wanted = said(container, SHOWN, "0").replace("THE SECOND REFERENCE", "code")
        with container_of(client, found.name) as container:
            assert "Permission denied" in said(container, f"cat {shlex.quote(archive_of(2))}", "agent")
            assert said(container, "grep -rl REFERENCE /opt /testbed || true", "0") == ""
            said(container, PLANTED, "agent")
            before = said(container, "ls -la --time-style=full-iso /etc", "0")
            assert said(container, collect["command"], collect["user"]) == ""
            assert said(container, SHOWN, "0") == wanted
            assert said(container, "ls -la --time-style=full-iso /etc", "0") == before
    finally:
        remove_image(client, found.name)
