"""Programs of agents in volumes of an engine: installed whole or not at all, and read-only for what runs there."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from environments.backends import BACKENDS
from environments.programs.program import AgentProgram
from environments.programs.volumes import LABEL, volume_name
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import connect
from environments.sandboxes.leftovers import OWNER
from environments.sandboxes.sandbox import SandboxConfig
from prchain.core.errors import BuildFailed
from prchain.core.processes.alive import this_process
from prchain.core.settings import Settings

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")

pytestmark = pytest.mark.docker


@pytest.fixture
def client() -> Iterator[Any]:
    found = connect()
    yield found
    found.close()


def test_a_volume_holds_a_program_whole_or_is_not_there(client: Any, tmp_path: Path) -> None:
    settings = Settings(environments_base_image=IMAGE, data_dir=tmp_path)
    backend = BACKENDS["docker"].of(settings)
    name = f"test-{uuid.uuid4().hex[:8]}"
    good = AgentProgram(
        name, "\"$PYTHON\" -c 'print(1)' > one; mkdir -m 700 bin; echo 'echo ran' > bin/go; chmod 700 bin/go"
    )
    bad = AgentProgram(name, "touch begun; echo 'no such package' >&2; exit 3")
    try:
        with pytest.raises(BuildFailed, match="no such package"):
            backend.install_program(bad, settings)
        assert not client.volumes.list(filters={"name": volume_name(bad)})
        assert not backend.has_program(good, settings)
        client.volumes.create(volume_name(good))
        assert not backend.has_program(good, settings), "one whose making was cut off is not there"
        backend.install_program(good, settings)
        assert backend.has_program(good, settings)
        assert 8000 < (backend.program_size(good, settings) or 0) < 100_000
        laid = backend.laid_program(good, tmp_path)
        with DockerSandbox(SandboxConfig(IMAGE, user="agent", laid=(laid,)), client=client) as box:
            assert box.exec(f"cat {laid.path}/one; {laid.path}/bin/go").output == b"1\nran\n"
            assert b"Read-only" in box.exec(f"touch {laid.path}/mine", cwd="/").output
            snapshot = box.snapshot()
            with box.branch(snapshot) as other:
                assert other.exec(f"cat {laid.path}/one").output == b"1\n"
    finally:
        for volume in client.volumes.list(filters={"name": f"prchain-agent-{name}"}):
            volume.remove(force=True)


def test_a_volume_that_a_process_left_half_filled_is_cleared_away_and_one_in_use_is_not(
    client: Any, tmp_path: Path
) -> None:
    backend = BACKENDS["docker"].of(Settings(environments_base_image=IMAGE, data_dir=tmp_path))
    key = uuid.uuid4().hex[:8]
    gone = str(replace(this_process(), start="1"))
    names = {word: f"prchain-agent-test-{key}-{word}" for word in ("half", "whole", "running", "unknown")}
    owners = {"half": gone, "whole": gone, "running": str(this_process())}
    try:
        for word, name in names.items():
            labels = {LABEL: "test"} | ({OWNER: owners[word]} if word in owners else {})
            client.volumes.create(name, labels=labels)
        client.containers.run(
            IMAGE, "touch /agent/.whole", volumes={names["whole"]: {"bind": "/agent", "mode": "rw"}}, remove=True
        )
        cleared = backend.clear_away()
        assert {name: cleared.get(f"volume {name}") for name in names.values()} == {
            names["half"]: True,
            names["whole"]: None,
            names["running"]: None,
            names["unknown"]: None,
        }
    finally:
        for volume in client.volumes.list(filters={"name": f"prchain-agent-test-{key}"}):
            volume.remove(force=True)
