"""The files of exported tasks, under the schema that Harbor 0.26 prints (``harbor task schema``), without Harbor."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prchain.core.errors import UsageError
from prchain.exports.cli import export
from trajectories.export.tasks.harbor.folder import Files, FolderStep, HarborTask, dataset, digest, files_of
from trajectories.export.tasks.harbor.image import output_texts, task_image_name
from trajectories.export.tasks.harbor.inside.said import paths_of

SCHEMA = json.loads((Path(__file__).parent / "data" / "harbor_0_26_task_schema.json").read_text(encoding="utf-8"))

SINGLE = HarborTask(
    name="prchain/a__b-1__s1",
    description="what",
    keywords=["python"],
    metadata={"chain": "1", "proof": [{"f2p": 1}]},
    image="prchain/a--b:harbor-1-1",
    workdir="/testbed",
    network="declared",
    steps=[
        FolderStep(name="", instruction="do it\n", tests={"stage.json": b"{}"}, solution={"solve.sh": b"#!/bin/bash\n"})
    ],
    grader=b"PK",
    seconds=900.0,
    canary="canary x",
)
CHAIN = replace(
    SINGLE,
    min_reward=1.0,
    steps=[
        replace(SINGLE.steps[0], name="1"),
        replace(SINGLE.steps[0], name="2", workdir={"setup.sh": b"#!/bin/bash\n"}),
    ],
)


def faults(value: Any, schema: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Where a value is not what a schema says: unknown keys, missing ones, other types, other words."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        found = [list(faults(value, option, at)) for option in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
        return
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
    }
    kind = schema.get("type")
    if kind == "null" or (kind in kinds and not isinstance(value, kinds[kind])):
        yield f"{at} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is none of {schema['enum']}"
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{at} lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            if name not in schema["properties"]:
                yield f"{at} has an unknown key {name}"
            else:
                yield from faults(inner, schema["properties"][name], f"{at}.{name}")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from faults(inner, schema.get("items", {}), f"{at}[{number}]")


def configuration(files: Files) -> dict[str, Any]:
    return tomllib.loads(files["task.toml"].decode())


@pytest.mark.parametrize(
    "task", [SINGLE, CHAIN, replace(CHAIN, network="compose", min_reward=None), replace(CHAIN, agent="agent")]
)
def test_the_configuration_is_what_harbors_schema_says(task: HarborTask) -> None:
    assert list(faults(configuration(files_of(task)), SCHEMA)) == []


def test_the_check_finds_faults() -> None:
    wrong = configuration(files_of(CHAIN))
    wrong["verifier"]["environment_mode"] = "apart"
    wrong["environment"]["image"] = "x"
    del wrong["steps"][0]["name"]
    found = list(faults(wrong, SCHEMA))
    assert len(found) == 3, found


def test_a_stage_is_a_folder_of_a_single_step() -> None:
    files = files_of(SINGLE)
    assert files.keys() == {
        "task.toml",
        "instruction.md",
        "tests/test.sh",
        "tests/grader.pyz",
        "tests/stage.json",
        "solution/solve.sh",
    }
    assert "steps" not in configuration(files)


def test_a_chain_has_no_instruction_at_its_root_and_gates_its_steps() -> None:
    """SkyRL starts a task with one, and cannot read its result."""
    files = files_of(CHAIN)
    assert "instruction.md" not in files and "steps/2/instruction.md" in files
    assert "steps/2/workdir/setup.sh" in files and "steps/1/workdir/setup.sh" not in files
    steps = configuration(files)["steps"]
    assert [step["name"] for step in steps] == ["1", "2"]
    assert all(step["min_reward"] == {"reward": 1.0} for step in steps)


def test_each_steps_verifier_has_the_time_that_runs_of_its_tests_take() -> None:
    """Harbor never asks the task for it: a step without a time of its own has 600 s, whatever the task's is."""
    of_chain, of_stage = (configuration(files_of(task)) for task in (CHAIN, SINGLE))
    assert [step["verifier"] for step in of_chain["steps"]] == [{"timeout_sec": 3600.0}] * 2
    assert of_stage["verifier"]["timeout_sec"] == 3600.0


def test_tests_are_uploaded_to_a_verifier_of_their_own() -> None:
    """With an environment of the verifier's own, or a Dockerfile beside the tests, they would not be."""
    for task in (SINGLE, CHAIN):
        files = files_of(task)
        verifier = configuration(files)["verifier"]
        assert verifier["environment_mode"] == "separate" and "environment" not in verifier
        assert not any(path.endswith("Dockerfile") for path in files)


def test_behind_a_step_root_switches_to_the_next_ones_environment_where_that_differs() -> None:
    steps = [replace(CHAIN.steps[0], switches_to="/opt/prchain/environments/2.gz"), CHAIN.steps[1]]
    for agent in (None, "agent"):
        values = configuration(files_of(replace(CHAIN, steps=steps, agent=agent)))
        assert list(faults(values, SCHEMA)) == []
        first, second = (step["verifier"] for step in values["steps"])
        (collect,) = first["collect"]
        assert collect["command"].endswith("/opt/prchain/environment.py switch /opt/prchain/environments/2.gz")
        assert collect.get("user") == values["verifier"]["collect"][0].get("user") == (None if agent else "root")
        assert "collect" not in second and "environment_mode" not in first


def test_the_grader_is_another_user_than_the_agent_whichever_of_them_is_named() -> None:
    """verifiers refuses a user of the verifier's and of its collecting; both are the image's then, which is root."""
    of_image, declared = (configuration(files_of(replace(CHAIN, agent=user))) for user in (None, "agent"))
    assert of_image["verifier"]["user"] == of_image["verifier"]["collect"][0]["user"] == "root"
    assert "agent" not in of_image
    assert "user" not in declared["verifier"] and "user" not in declared["verifier"]["collect"][0]
    assert declared["agent"] == {"user": "agent"}


def test_the_network_is_ruled_out_in_one_of_two_ways() -> None:
    declared, compose = (files_of(replace(SINGLE, network=network)) for network in ("declared", "compose"))
    assert configuration(declared)["environment"]["network_mode"] == "no-network"
    assert "environment/docker-compose.yaml" not in declared
    assert configuration(compose)["environment"]["network_mode"] == "public"
    assert b"network_mode: none" in compose["environment/docker-compose.yaml"]


RUNTIME_INSTALLS = (
    r"\b(pip|pip3|uv|uvx|pipx|apt|apt-get|apk|yum|dnf|npm|pnpm|yarn|conda|curl|wget|git clone)\b|https?://"
)


@pytest.mark.parametrize("task", [SINGLE, replace(CHAIN, network="compose"), replace(CHAIN, agent="agent")])
def test_harbors_lint_has_nothing_to_find(task: HarborTask) -> None:
    """Its default rules (0.26, `harbor.lint.models.DEFAULT_RULES`) that a folder of ours could break, without Harbor:
    `faults` has those of keys, the test above those of the verifier's mode."""
    files = files_of(task)
    values = configuration(files)
    names = {path.rpartition("/")[2] for path in files}
    # agent-image-test-leak, unused-harborignore: nothing is built, and nothing kept back.
    assert not names & {"Dockerfile", ".harborignore"}
    # overlapping-artifacts, artifact-log-overlap: the folder that Harbor itself takes along is all.
    assert "artifacts" not in values and not any("artifacts" in step for step in values.get("steps", ()))
    # verifier-runtime-install, verifier-network-download, unpinned-python-dependency
    assert not re.search(RUNTIME_INSTALLS, files["tests/test.sh"].decode())
    # compose-*: no mount, no right and no image of its own.
    if task.network == "compose":
        assert files["environment/docker-compose.yaml"].split() == b"services: main: network_mode: none".split()
    # root-agent, which is no default
    assert values.get("agent", {}).get("user") not in ("root", "0", 0)


def test_the_list_of_a_data_set_names_tasks_with_digests() -> None:
    """By Harbor's own rule: of each file its path, a NUL, the SHA-256 of its content and a newline, by path."""
    assert digest({"b": b"2", "a": b"1"}) == "sha256:e2cb7a5e828b2a312d5da6cda64ff26cd2b30f11751826412717d51976f8d425"
    text = dataset("prchain/stages", "what", {SINGLE.name: digest(files_of(SINGLE))})
    values = tomllib.loads(text)
    assert values["tasks"][0]["name"] == SINGLE.name
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", values["tasks"][0]["digest"])


def test_an_image_of_other_inputs_has_another_name() -> None:
    names = {task_image_name("A/b", "c1", 1, inputs * 32) for inputs in ("ab", "cd")}
    assert names == {"prchain/a--b:harbor-c1-1-abababababab", "prchain/a--b:harbor-c1-1-cdcdcdcdcdcd"}


def test_outputs_of_any_name_can_be_told_to_a_grader(tmp_path: Path) -> None:
    names = [b"plain/", b"bad\xff", "ä".encode(), rb"b\xff"]
    texts = output_texts(b"".join(name + b"\0" for name in names).decode("utf-8", "surrogateescape"))
    place = tmp_path / "said"
    place.write_text("\n".join(texts), encoding="utf-8")
    assert paths_of(texts) == {*names}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--format", "harbor"], "is a file"),
        (["--min-reward", "0.5"], "--min-reward"),
        (["--agent-user", "declared"], "--agent-user"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(tmp_path: Path, options: list[str], words: str) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    result = CliRunner().invoke(export, ["--out", str(out), "--db", str(tmp_path / "db"), *options])
    assert isinstance(result.exception, UsageError) and words in str(result.exception)
    assert out.read_text(encoding="utf-8") == "mine"
