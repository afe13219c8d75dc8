"""Harbor's folders in containers: the oracle's trees, proofs by their own tests, and what an agent sees of either."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from chains.imports.ends import TESTS
from chains.imports.importing import Importer
from chains.imports.reading import read_instances
from environments.duelling import GradingSuite
from environments.graded_runs import graded_run
from environments.images.images import remove_image
from environments.images.provide import Provider
from environments.proofs.validate import ChainProver, ValidateOptions
from environments.sandboxes.engine import connect, engine_failures
from environments.stages import open_git, open_trees, read_chain, stage_patches
from environments.suites.outcomes import StateCheck, grade
from environments.workplace import StageSuite, Workplace
from prchain.core.errors import ImageMissing
from prchain.core.git.trees import TreeEntry
from prchain.core.settings import Settings
from prchain.imports.trees import EngineTrees
from sql.chosen import selected_ids
from sql.outcomes import PROVED
from sql.store import Store
from tests.databases import open_new
from trajectories.task import read_task

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")

MADE = """
set -eu
mkdir -p /app /solution && cd /app
printf 'def total(prices):\\n    return sum(prices)\\n' > till.py
echo build/ > .gitignore && mkdir build && echo made > build/made
echo 'the answer of an earlier run' > /solution/left
git init -q && git add -A && git -c user.name=t -c user.email=t@e commit -qm begin
id agent > /dev/null 2>&1 || useradd agent
chown -R agent:agent /app
"""
TEST = """#!/bin/bash
# The folders are those that Harbor lays out; the work folder is where commands begin.
[[ $PWD == /app && $DEPTH == 3 && $SHOP == "a b" && -f /tests/cases.txt && -f build/made ]] || exit 1
[[ -z $(git status --porcelain) || $1 == any ]] || echo "changed: $(git status --porcelain)"
[[ ! -e .harbor-tests ]] || exit 1
python3 -c "
import sys; sys.path.insert(0, '.')
import till
cases = [line.rsplit('=', 1) for line in open('/tests/cases.txt')]
print(all(eval(left) == eval(right) for left, right in cases) * 1.0)
" > /logs/verifier/reward.txt
exit 3
"""
FIRST = """#!/bin/bash
set -e
[[ $ORACLE == yes && ! -e /solution/left ]]
printf 'def total(prices, sale=False):\\n    return sum(prices) / (2 if sale else 1)\\n' > till.py
"""
SECOND = "#!/bin/bash\ncat /solution/more.txt >> till.py\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def task(folder: Path, image: str) -> Path:
    """Two steps: the second one's base has a file of upstream's, and its tests have the first one's, too."""
    write(
        folder,
        {
            "tests/test.sh": TEST,
            "tests/cases.txt": "till.total([4], sale=True)=2\n",
            "steps/one/instruction.md": "Sell at half the price.\n",
            "steps/one/solution/solve.sh": FIRST,
            "steps/two/instruction.md": "Count what was sold.\n",
            "steps/two/workdir/setup.sh": "#!/bin/bash\necho upstream > upstream.txt\nrm setup.sh\n",
            "steps/two/tests/cases.txt": "till.total([4], sale=True)=2\ntill.count([4])=1\n",
            "steps/two/solution/solve.sh": SECOND,
            "steps/two/solution/more.txt": "\n\ndef count(prices):\n    return len(prices)\n",
        },
    )
    values = {
        "schema_version": "1.4",
        "task": {"name": "lab/till"},
        "metadata": {"repository": "shop/till"},
        "environment": {"docker_image": image, "env": {"SHOP": "a b"}},
        "verifier": {"environment_mode": "separate", "env": {"DEPTH": "3"}},
        "solution": {"env": {"ORACLE": "yes"}},
        "steps": [{"name": "one"}, {"name": "two"}],
    }
    (folder / "task.toml").write_text(tomli_w.dumps(values))
    return folder


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with contextlib.closing(connect()) as client:
        yield client


@pytest.fixture(scope="module")
def image(client: Any) -> Iterator[str]:
    name = f"prchain-test/harbor-{os.getpid()}:1"
    container = client.containers.create(IMAGE, command=["sleep", "infinity"], user="0")
    try:
        container.start()
        result = container.exec_run(["bash", "-c", MADE], user="0")
        assert result.exit_code == 0, result.output
        container.commit(repository=name.rpartition(":")[0], tag="1", changes=["USER agent", "WORKDIR /app"])
    finally:
        container.remove(force=True)
    try:
        yield name
    finally:
        with contextlib.suppress(ImageMissing), engine_failures():
            client.images.remove(name, force=True)


def made(client: Any) -> set[str]:
    """The images that were made of the task's."""
    # Not `images.list`, which asks for each again: one may be gone by then.
    tags = {tag for it in client.api.images() for tag in it["RepoTags"] or ()}
    return {tag for tag in tags if tag.startswith("prchain/shop--till:")}


def imported(store: Store, place: Path, folder: Path) -> list[str]:
    """What is told of a folder that is imported."""
    told: list[str] = []
    with EngineTrees(None) as trees:
        importer = Importer(store, place / "data", place / "mirrors", images=trees)
        importer.run(read_instances(folder), lambda row: told.append(row.reason))
    return told


@pytest.mark.docker
def test_a_folder_of_two_steps_is_proved_and_graded_by_its_own_tests(tmp_path: Path, image: str, client: Any) -> None:
    store = open_new(tmp_path / "p.db")
    settings = Settings.load(db=str(store.url.database), data_dir=tmp_path / "data")
    assert imported(store, tmp_path, task(tmp_path / "till", image)) == []
    with store.reading() as tx:
        (id_,) = selected_ids(tx, "imported")
        chain = read_chain(tx, id_)
    git = open_git(chain, settings.mirrors_dir)
    trees = open_trees(chain, git, settings.data_dir)
    bases = [sorted(trees.entries(stage.base)) for stage in chain.stages]
    assert bases == [[b".gitignore", b"till.py"], [b".gitignore", b"till.py", b"upstream.txt"]]
    first, second = stage_patches(git, trees, chain.stages)
    assert first.source == second.source == ("till.py",)
    assert first.test == second.test == (f"{TESTS}/cases.txt", f"{TESTS}/test.sh")
    provider = Provider(settings, engine=client, store=store)
    prover = ChainProver(store, provider, settings, ValidateOptions(backend="docker", runs=1, test_timeout=60.0))
    names: set[str] = set()
    try:
        proof = prover.prove(chain.id)
        names |= {stage.image for stage in proof.stages if stage.image}
        assert proof.outcome == PROVED, proof
        with store.reading() as tx:
            told = read_task(tx, chain.id)
        with prover.backend.connected() as backend:
            for stage, patches in zip(told.stages, [[first], [first, second]], strict=True):
                assert stage.tests is not None and stage.tests.classes.f2p == ("reward",)
                provided = provider.provide(chain.repository, trees, git, stage.stage)
                workplace = Workplace(provided, trees, backend=backend)
                tests = stage.tests
                suite = StageSuite.of(workplace, stage.stage, patches, files=tests.files, baseline=tests.baseline)
                broken = trees.edit(stage.stage.landed, {b"till.py": TreeEntry("100644", trees.write_blob(b")\n"))})
                bad = broken if stage.position == 1 else trees.tree_of(stage.stage.base)
                for tree, outcome in ((trees.tree_of(stage.stage.landed), "passed"), (bad, "f2p_failed")):
                    run = graded_run(GradingSuite(suite), tree, tests.classes.f2p)
                    assert grade(tests.classes, StateCheck(), run.statuses).outcome == outcome, run
            with workplace.sandbox() as sandbox:
                workplace.place(sandbox, told.stages[0].stage.base)
                seen = sandbox.exec("ls -A . /tests /solution /logs/verifier; id -un; cat build/made; echo $SHOP")
                assert seen.text.split() == (
                    [
                        ".:",
                        ".git",
                        ".gitignore",
                        "build",
                        "till.py",
                        "/logs/verifier:",
                        "/solution:",
                        "/tests:",
                        "agent",
                        "made",
                        "a",
                        "b",
                    ]
                ), seen.text
                assert workplace.briefing(sandbox).tests is None
    finally:
        for name in names:
            remove_image(client, name)
        store.close()


@pytest.mark.docker
@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("name", "script", "words"),
    [
        (
            "steps/one/solution/solve.sh",
            "#!/bin/bash\necho no such file\nexit 4\n",
            "solve.sh of step one ends with 4: no",
        ),
        (
            "steps/one/solution/solve.sh",
            "#!/bin/bash\ntouch /tmp/x\n",
            "step one: the oracle leaves the work folder as",
        ),
        ("steps/two/workdir/setup.sh", "exit 7\n", "setup.sh of step two ends with 7"),
    ],
)
def test_a_script_that_fails_is_told_and_leaves_no_image(
    tmp_path: Path, image: str, client: Any, name: str, script: str, words: str
) -> None:
    folder = task(tmp_path / "till", image)
    (folder / name).write_text(script)
    before = made(client)
    with contextlib.closing(open_new(tmp_path / "p.db")) as store:
        (reason,) = imported(store, tmp_path, folder)
    assert words in reason
    assert made(client) <= before
