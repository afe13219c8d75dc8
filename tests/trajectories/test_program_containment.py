"""In Docker, too, nothing of the endpoint's key is where an agent program runs, nor in what is kept of it."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from environments.backends import BACKENDS
from environments.programs.volumes import volume_name
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import connect
from environments.sandboxes.sandbox import LaidFolder, Sandbox, SandboxConfig
from prchain.core.llm.setup import make_gateway
from prchain.core.settings import Settings
from sql.ledger import SqlLedger
from tests.endpoint import Answer, Call, FakeEndpoint
from tests.trajectories.rolloutworld import FolderPlace, PolicyReply, answering, bash, rollout_world
from tests.trajectories.test_programs import OPTIONS, finishes
from tests.trajectories.test_programs_killed import KEY, LOOK
from tests.trajectories.toyagent import write_toy
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.options import RolloutOptions
from trajectories.programs.choice import make_scaffold, named_program
from trajectories.rollouts.rollout import roll

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")

PROCESSES = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | grep -ac '%s'"
FILES = "find / /tmp /dev/shm /.prchain /opt/prchain/agents/* -xdev -type f -cmin -90 -exec grep -als '%s' {} +"
"""What looks for a pattern in all processes, and in all files that were not there before the test."""


@dataclass
class DockerPlace(FolderPlace):
    """Workplaces in containers of the base image."""

    boxes: list[DockerSandbox] = field(default_factory=list)

    def sandbox(self, laid: Sequence[LaidFolder] = ()) -> Sandbox:
        config = SandboxConfig(IMAGE, labels={"prchain.test": "containment"}, laid=tuple(laid))
        self.boxes.append(DockerSandbox(config, relay_image=lambda client: IMAGE))
        return self.boxes[-1]


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Settings]:
    """Settings with which the toy is installed in a volume of its own."""
    write_toy(tmp_path, mark=f"# {uuid.uuid4().hex[:8]}")
    settings = Settings(data_dir=tmp_path / "data", agents_dir=tmp_path / "agents", environments_base_image=IMAGE)
    program = named_program("toy", settings).program
    BACKENDS["docker"].of(settings).install_program(program, settings)
    yield settings
    with closing(connect()) as client:
        client.volumes.get(volume_name(program)).remove(force=True)


@pytest.mark.docker
def test_in_docker_the_key_is_in_no_variable_process_file_log_row_or_export(
    tmp_path: Path, toy: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    calls: list[Call] = []
    boxes: list[DockerSandbox] = []
    seen: list[tuple[str, ...]] = []
    told: list[str] = []
    pattern = f"[{KEY[0]}]{KEY[1:]}"  # is not what it looks for

    def looks(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        if str(messages[0]["content"]).startswith("You are a toy") and messages[-1]["role"] != "tool":
            return bash(LOOK.replace("PORT", endpoint.url.rpartition(":")[2].partition("/")[0]))
        return finishes([*messages[:2], *messages[4:]] if len(messages) > 3 else messages)

    def answers(call: Call) -> Answer:
        if call.body["messages"][-1]["role"] == "tool" and not seen:
            box = boxes[-1]
            assert box._companion is not None
            for each, mark in ((box, "agent.py"), (box._companion, "The relay:")):
                printed = [look(each, PROCESSES, f"[{mark[0]}]{mark[1:]}"), look(each, PROCESSES, pattern)]
                seen.append((*printed, look(each, FILES, pattern)))
                container = client.api.inspect_container(each.name)
                assert container["HostConfig"]["LogConfig"]["Type"] == "none", "the engine keeps no log"
                told.append(json.dumps(container))
        calls.append(call)
        return answering(looks)(call)

    chosen = RolloutOptions(min_length=1, **OPTIONS)
    with closing(connect()) as client, rollout_world(tmp_path, [(1,)]) as world, FakeEndpoint(answers) as endpoint:
        settings = Settings.load(llm_base_url=endpoint.url, llm_model="fake", llm_price_input=1.0, llm_price_output=2.0)
        with closing(make_gateway(settings, SqlLedger(world.store, "run"))) as gateway:
            context = replace(
                world.context(min_length=1, overrides={"tell": told.append}, **OPTIONS),
                gateway=gateway,
                scaffold=make_scaffold(chosen, toy, BACKENDS["docker"].of(toy)),
                make_workplace=lambda _, trees: DockerPlace(trees, world.folder, boxes=boxes),
            )
            name = roll(context, world.chains[0], 0)
        assert world.outcome(name)[0] == "accepted"
        export(world.store, chosen_format("slime", ExportOptions()), ExportOptions(), tmp_path / "out.jsonl")
    looked = str(calls[1].body["messages"][-1]["content"])
    assert looked.endswith("PROBED [401, 200, 404, 404, 411, 413] False False\n"), looked[-500:]
    assert {call.key for call in calls} == {KEY}, "it is the key that the endpoint takes"
    assert seen == [("1\n", "0\n", "")] * 2, "its own words are found in each, and the key is not"
    assert KEY not in json.dumps([call.body for call in calls]) + "".join(told) + caplog.text
    held = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert held == []
    assert any(b"PROBED" in path.read_bytes() for path in tmp_path.glob("*.db*")), "the rows are among these files"


def look(box: DockerSandbox, command: str, pattern: str) -> str:
    """What the command prints there."""
    return box.exec(f"{command % pattern} 2> /dev/null", timeout=60).output.decode("utf-8", "replace")
