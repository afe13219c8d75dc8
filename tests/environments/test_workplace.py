"""One stage's place to work: trees put in ready to run, the agent's tree out of it, tests in a sandbox of their own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from environments.backends import BACKENDS
from environments.images.images import list_images
from environments.images.stage_image import StageImage
from environments.proofs.stage_images import stage_image
from environments.sandboxes import leftovers
from environments.sandboxes.engine import IMAGE_LABEL, connect
from environments.sandboxes.sandbox import ResourceLimits, Sandbox
from environments.suites.baseline import RunnerBaseline
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun
from environments.workplace import StageSuite, TestBench, Workplace
from prchain.core.errors import EngineUnavailable, OutOfMemory, RefreshFailed, SandboxLost
from prchain.core.processes.alive import this_process
from tests.environments.stageworld import CHANGES, RECIPE, Changes, StageWorld, stage_world, test_file

TEST = "tests.test_prices.Case.test_halved"


@pytest.fixture
def world(tmp_path: Path, bubblewrap: None) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as world:
        yield world


def sandboxes() -> set[Path]:
    """Folders of the local sandboxes of this process: others run on this machine, too."""
    return {
        path.parent
        for path in Path(tempfile.gettempdir()).glob(f"{leftovers.LOCAL_PREFIX}*/{leftovers.OWNER_FILE}")
        if path.read_text(encoding="utf-8") == str(this_process())
    }


def suite_of(world: StageWorld, position: int, **fields: object) -> StageSuite:
    workplace = world.workplace(position)
    return StageSuite.of(workplace, world.chain.stages[position - 1], world.patches(), **fields)  # type: ignore[arg-type]


def edited(world: StageWorld, tree: str, **files: str | None) -> str:
    """The tree with files changed; ``__`` in a name is a slash, and all are Python's."""
    trees = world.trees()
    entries = trees.entries(tree)
    model = next(iter(entries.values()))
    changes = {
        f"{name.replace('__', '/')}.py".encode(): None
        if text is None
        else model._replace(mode="100644", blob=trees.write_blob(text.encode()))
        for name, text in files.items()
    }
    return trees.edit(tree, changes)


def test_a_placed_tree_is_ready_and_git_calls_it_clean(world: StageWorld) -> None:
    workplace, stage = world.workplace(), world.chain.stages[0]
    with workplace.sandbox() as sandbox:
        workplace.place(sandbox, stage.base)
        assert sandbox.exec("cat made/by-refresh").text == "fresh\n"
        assert sandbox.exec("git status --porcelain --untracked-files=all").text == ""
        assert sandbox.exec("git log --format=%s").text == "Start of the stage\n"


def test_the_agents_tree_holds_its_work_and_nothing_that_the_refresh_made(world: StageWorld) -> None:
    workplace, base = world.workplace(), world.chain.stages[0].base
    with workplace.sandbox() as sandbox:
        workplace.place(sandbox, base)
        start = world.trees().tree_of(base)
        assert workplace.extract(sandbox, start_tree=base, rules_from=base).tree == start
        sandbox.exec("echo more > made/mine; echo work > work.txt; echo x > 'a [b]c'")
        entries = world.trees().entries(workplace.extract(sandbox, start_tree=base, rules_from=base).tree)
        new = entries.keys() - world.trees().entries(start).keys()
    assert new == {b"work.txt", b"a [b]c"}


def test_what_the_refresh_changes_of_the_tree_is_taken_back(tmp_path: Path, bubblewrap: None) -> None:
    recipe = RECIPE.replace("mkdir -p made", "echo changed >> README.md; rm deps.txt; mkdir -p made")
    with stage_world(tmp_path, recipe=recipe) as world:
        workplace, base = world.workplace(), world.chain.stages[0].base
        with workplace.sandbox() as sandbox:
            workplace.place(sandbox, base)
            assert sandbox.exec("cat README.md deps.txt; cat made/by-refresh").text == "# till\nnone\nfresh\n"


def test_a_refresh_that_fails_says_why(tmp_path: Path, bubblewrap: None) -> None:
    recipe = RECIPE.replace("mkdir -p made", "echo 'error: no compiler' >&2; false; true")
    with stage_world(tmp_path, recipe=recipe) as world:
        workplace = world.workplace()
        with workplace.sandbox() as sandbox, pytest.raises(RefreshFailed, match="error: no compiler") as raised:
            workplace.place(sandbox, world.chain.stages[0].base)
    assert raised.value.lines


def test_a_suite_fails_on_the_base_and_passes_on_what_landed(world: StageWorld) -> None:
    suite, stage = suite_of(world, 1), world.chain.stages[0]
    assert suite.files[0] == "tests/test_prices.py" and suite.own_files == ("tests/test_prices.py",)
    assert suite.run(stage.landed).statuses[TEST] is Status.passed
    before = suite.run(stage.base)
    assert before.usable and before.statuses.get(TEST) is not Status.passed


def test_on_what_landed_the_overlay_changes_nothing(world: StageWorld) -> None:
    for position, stage in enumerate(world.chain.stages, 1):
        assert suite_of(world, position).with_overlay(stage.landed) == world.trees().tree_of(stage.landed)


def test_what_an_agent_did_to_the_tests_that_are_run_does_not_count(world: StageWorld) -> None:
    stage = world.chain.stages[1]
    suite = suite_of(world, 2)
    forged = test_file("prices", halved="self.assertTrue(True)")
    cheat = edited(world, stage.landed, tests__test_prices=forged, till__prices="def halved(amount):\n    return 0\n")
    assert "tests/test_prices.py" in suite.files
    assert suite.run(cheat).statuses[TEST] is Status.failed
    assert suite.run(edited(world, stage.landed, tests__test_prices=None)).statuses[TEST] is Status.passed


def test_stored_files_are_run_and_no_others(world: StageWorld) -> None:
    suite = suite_of(world, 3, files=["tests/test_cart.py"], baseline=RunnerBaseline(("b", "a")))
    assert (suite.files, suite.baseline.replaced) == (("tests/test_cart.py",), ("b", "a"))
    assert set(suite.run(world.chain.stages[2].landed).statuses) == {
        "tests.test_cart.Case.test_empty",
        "tests.test_cart.Case.test_sale",
    }


def test_a_run_sees_nothing_that_another_left(tmp_path: Path, bubblewrap: None) -> None:
    once = "import os; open('left', 'x').close(); open('/tmp/left', 'x').close(); os.path.exists"
    body = f"{once}('made/by-refresh') or self.fail('not refreshed')"
    changes = {1: {**CHANGES[1], "tests/test_prices.py": test_file("prices", halved=body)}}
    with stage_world(tmp_path, changes) as world:
        workplace, landed = world.workplace(), world.chain.stages[0].landed
        with workplace.bench(landed, ["tests/test_prices.py"]) as bench:
            assert [bench.run().statuses[TEST] for _ in range(3)] == [Status.passed] * 3
        with TestBench(workplace, landed, ["tests/test_prices.py"], repeats=False) as bench:
            bench.run()
            with pytest.raises(ValueError, match="one run"):
                bench.run()


def test_nothing_is_started_for_no_files(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    workplace = world.workplace()
    monkeypatch.setattr(workplace, "sandbox", lambda: pytest.fail("started"))
    assert workplace.tests(world.chain.stages[0].base, []).usable


def test_a_sandbox_that_ends_at_its_limits_is_an_unusable_run(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*args: object, **named: object) -> None:
        raise OutOfMemory("more than it may")

    monkeypatch.setattr("environments.workplace.run_tests", ended)
    run = world.workplace().tests(world.chain.stages[0].landed, ["tests/test_prices.py"])
    assert (run.infra, run.usable, run.complete) == ("out_of_memory", False, False)


def test_tests_that_end_every_sandbox_are_an_unusable_run(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def lost(sandbox: Sandbox, *args: object, **named: object) -> TestRun:
        runs.append(sandbox.exec("cat till/cart.py").text)
        if len(runs) == most:
            return TestRun({}, "", 0.0, 0)
        raise SandboxLost("the channel is gone")

    monkeypatch.setattr("environments.workplace.run_tests", lost)
    before, most = sandboxes(), 0
    landed = world.chain.stages[0].landed
    with world.workplace().bench(landed, ["tests/test_prices.py"]) as bench:
        assert bench.run().infra == "sandbox_lost"
        assert len(runs) == 3 and len(set(runs)) == 1 and "total" in runs[0], "each time in a new one, made ready"
        most = 5
        assert bench.run().usable and len(runs) == 5
    assert sandboxes() == before


def test_what_is_the_engines_fault_is_no_run(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*args: object, **named: object) -> None:
        raise EngineUnavailable("gone")

    monkeypatch.setattr("environments.workplace.run_tests", gone)
    before = sandboxes()
    with pytest.raises(EngineUnavailable):
        world.workplace().tests(world.chain.stages[0].landed, ["tests/test_prices.py"])
    assert sandboxes() == before


def test_plain_processes_work_in_a_folder_that_goes_with_them(world: StageWorld) -> None:
    workplace, stage = world.workplace(backend="unsafe-local"), world.chain.stages[0]
    sandbox = workplace.sandbox()
    work = Path(sandbox.config.workdir)
    assert work.is_relative_to(tempfile.gettempdir()) and not work.exists()
    with sandbox:
        workplace.place(sandbox, stage.landed)
        assert (work / "till/prices.py").exists()
        assert (work.parent / leftovers.OWNER_FILE).exists()
    assert not work.parent.exists()
    with workplace.bench(stage.landed, ["tests/test_prices.py"]) as bench:
        assert [bench.run().statuses[TEST] for _ in range(2)] == [Status.passed] * 2


def test_a_recipes_own_command_takes_the_runners_place(world: StageWorld) -> None:
    plan = world.workplace().provided.plan
    docker = BACKENDS["docker"]
    own = docker.command(replace(plan, test="make test FILES='{files}'"))
    assert not own.signed and own.template.startswith("make test") and "{report}" in own.template
    signed = docker.command(replace(plan, test="xvfb-run python {tools}/python_reporter.py"))
    assert signed.signed and signed.template == "xvfb-run python {tools}/python_reporter.py"
    assert docker.command(plan).template == "python {tools}/python_reporter.py"


def test_on_a_host_the_images_folder_is_neither_refreshed_nor_named(world: StageWorld) -> None:
    plan = world.workplace().provided.plan
    recipe = plan.recipe.model_copy(
        update={
            "refresh": ("/opt/env/bin/pip install .", "make"),
            "language": "python",
            "environment": {"VIRTUAL_ENV": "/opt/env", "PATH": "/opt/env/bin:$PATH", "OWN": "1"},
        }
    )
    changed = replace(plan, recipe=recipe)
    local = BACKENDS["local"]
    assert local.refreshes(changed) == ("make",)
    assert BACKENDS["docker"].refreshes(changed) == ("/opt/env/bin/pip install .", "make")
    variables = local.sandbox(changed, None, limits=ResourceLimits(), labels={}).config.environment
    assert variables["OWN"] == "1" and variables["PYTHONPATH"] == "src:." and "VIRTUAL_ENV" not in variables
    assert variables["PATH"].endswith(":/usr/sbin:/usr/bin:/sbin:/bin")


IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")


@pytest.mark.docker
def test_in_docker_runs_start_alike_and_a_checkout_is_kept_for_swebench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Snapshots are images, as where the engine's layers cannot be read.
    monkeypatch.setattr("environments.sandboxes.docker.reads_attributes", lambda _: False)
    once = "import os; open('left', 'x').close(); os.path.exists('made/by-refresh') or self.fail('not refreshed')"
    changes: dict[int, Changes] = {1: {**CHANGES[1], "tests/test_prices.py": test_file("prices", halved=once)}}
    recipe = RECIPE + "test = 'python3 {tools}/python_reporter.py'\n"
    client = connect()
    with stage_world(tmp_path, changes, recipe=recipe) as world, contextlib.closing(client):
        chain, trees = world.chain, world.trees()
        stage = chain.stages[0]
        plan = replace(world.workplace().provided.plan, environment={"PRETENDED": "1.2"})
        base_image = f"prchain-test/stage-{os.getpid()}:1"
        labels = [f"LABEL {IMAGE_LABEL}=x", f"LABEL prchain.test={os.getpid()}", "USER agent", "WORKDIR /testbed"]
        container = client.containers.create(IMAGE, command=["true"])
        container.commit(repository=base_image.rpartition(":")[0], tag="1", changes=labels)
        container.remove()
        docker = replace(BACKENDS["docker"], client=client)
        workplace = Workplace(StageImage(plan, base_image), trees, backend=docker, test_timeout=60)
        names = [base_image]
        try:
            with workplace.bench(stage.landed, ["tests/test_prices.py"]) as bench:
                for _ in range(2):
                    assert bench.run().statuses[TEST] is Status.passed
                listed = [image.name for image in list_images(client)]
                assert client.images.list("prchain-snapshot") and base_image in listed
                assert not any("prchain-snapshot" in name for name in listed)
            names.append(stage_image(workplace, chain, stage))
            assert names[1] == f"prchain/shop--till:stage-{chain.id}-1"
            image = client.images.get(names[1])
            assert stage_image(workplace, chain, stage) == names[1] and client.images.get(names[1]).id == image.id
            script = "git status --porcelain && git rev-parse HEAD^{tree} && echo $PRETENDED; cat made/*"
            output = client.containers.run(
                names[1],
                ["bash", "-c", script],
                user="root",
                network_mode="none",
                remove=True,
                working_dir="/testbed",
            )
            assert output.decode().split() == [trees.tree_of(stage.base), "1.2", "fresh"]
            assert {image.labels.get(name) for name in (leftovers.SANDBOX, leftovers.SNAPSHOT, leftovers.OWNER)} == {""}
        finally:
            for name in reversed(names):
                client.images.remove(name, force=True)
