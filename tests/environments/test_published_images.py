"""Publishers' images: a stage works in one, begins on what stands there, and an agent sees nothing of later work."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chains.imports.importing import Importer
from chains.imports.reading import read_instances
from chains.imports.report import ImportReport
from environments.images.images import find_image, remove_image
from environments.images.provide import Provider
from environments.images.published.commands import PublishedTests, published_tests
from environments.images.published.said import is_published
from environments.proofs.proof_report import proof_report
from environments.proofs.validate import ChainProver, ValidateOptions
from environments.sandboxes.engine import connect, engine_failures
from environments.stages import open_git, open_trees, read_chain
from environments.workplace import Workplace
from prchain.core.errors import ImageMissing
from prchain.core.settings import Settings
from prchain.imports.trees import EngineTrees
from sql.chosen import selected_ids
from sql.outcomes import PROVED
from sql.store import Store
from tests.chains.import_rows import swe_rebench, swe_rebench_v2
from tests.databases import open_new
from tests.miner.gitworld import git

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")

LATER = "qzlater"
"""Stands in all that comes after B_t, and in nothing else."""

_CASE = "import unittest\n\nfrom till import cart, made\n\n\nclass Case(unittest.TestCase):\n"
_EMPTY = "    def test_empty(self):\n        self.assertEqual(cart.total([]), 0)\n"
_SALE = "    def test_sale(self):\n        self.assertEqual(cart.total([4], sale=True), made.HALF * 4)\n"
_CONFIG = "[user]\n\tname = t\n\temail = t@example.org\n"

# Copies and remains of the repository that images have been seen with, and more.
_REMAINS = f"""
set -eu
cd /testbed
git clone -q --bare . /opt/cache.git
git clone -q . /srv/second && git -C /srv/second checkout -q {LATER}
git bundle create -q /var/all.bundle --all
git clone -q . upstream && git clone -q --bare . build/mirror.git
cp /var/all.bundle build/all && cp /var/all.bundle dist.bundle
git init -q build/other && touch build/other/made
cp /tmp/fix.patch /home/fix.patch
printf 'git apply - <<EOF_1\\n%s\\nEOF_1\\n' "$(cat /tmp/fix.patch)" > /eval.sh
sed '/^diff --git/d;/^index/d' /tmp/fix.patch > /home/odd.txt
mv /tmp/fix.patch /opt/python.txt
echo 'HALF = 0.5' > till/made.py
mkdir -p till/__pycache__ && echo {LATER} > till/__pycache__/x.pyc
ln -sf "$(command -v python3)" /usr/local/bin/python
chown -R root:root /testbed
"""


SEEN = f"""
cd /testbed
echo commits $(git rev-list --all --reflog | wc -l) of $(git rev-list HEAD | wc -l)
echo unreachable $(git fsck --unreachable --no-reflogs 2>/dev/null | wc -l)
echo refs $(git for-each-ref | wc -l), $(git remote | wc -l), $(git stash list | wc -l), $(git tag | wc -l)
find / -xdev -name HEAD -type f 2>/dev/null | while read -r head; do
    git --git-dir="${{head%/HEAD}}" cat-file --batch-all-objects --batch 2>/dev/null | grep -a {LATER}
done
find / -xdev -path /usr/lib -prune -o -path /usr/share -prune -o -type f -print0 | xargs -0 grep -la {LATER} 2>/dev/null
find / -xdev -name '*{LATER}*'
find / -xdev -name '*.bundle'
git status --porcelain
cat till/made.py
"""


def repository(folder: Path) -> dict[str, Any]:
    """A repository with work after B_t in every place that git has, and its task as a row of SWE-rebench."""
    place = folder / "repository"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    (place / ".git" / "config").write_text((place / ".git" / "config").read_text() + _CONFIG)

    def commit(message: str, **files: str) -> str:
        for name, text in files.items():
            path = place / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        git(place, "add", "-A")
        git(place, "commit", "-qm", message)
        return git(place, "rev-parse", "HEAD").strip()

    (place / "till").mkdir()
    (place / "till" / "__init__.py").write_text("")
    (place / "tests").mkdir()
    (place / "tests" / "__init__.py").write_text("")
    (place / ".gitignore").write_text("made.py\n__pycache__\n")
    base = commit(
        "Begin",
        setup_dot_py="from setuptools import setup\nsetup(name='till')\n",
        till__cart_dot_py="def total(items):\n    return sum(items)\n",
        tests__test_cart_dot_py=_CASE + _EMPTY,
    )
    fixed = f"def total(items, sale=False):\n    {LATER} = sum(items)\n    return {LATER} / 2 if sale else {LATER}\n"
    commit(f"{LATER}: sales", till__cart_dot_py=fixed)
    patch = git(place, "diff", base, "HEAD")
    commit(f"{LATER}: tests", tests__test_cart_dot_py=f"{_CASE}{_EMPTY}{_SALE}")
    test_patch = git(place, "diff", "HEAD~", "HEAD")
    git(place, "tag", "-am", LATER, f"v-{LATER}")
    git(place, "branch", LATER)
    git(place, "update-ref", f"refs/remotes/origin/{LATER}", "HEAD")
    git(place, "remote", "add", LATER, f"https://example.org/{LATER}.git")
    commit(f"{LATER}: that only the reflog knows", till__lost_dot_py=LATER)
    git(place, "reset", "-q", "--hard", "HEAD~")
    (place / "till" / "cart.py").write_text(f"{LATER} = 1\n")
    git(place, "stash", "push", "-qm", LATER)
    git(place, "pack-refs", "--all")
    git(place, "repack", "-adq")
    git(place, "reset", "-q", "--hard", base)
    (folder / "fix.patch").write_text(patch)
    return swe_rebench(
        instance_id="shop__till-2",
        base_commit=base,
        patch=patch,
        test_patch=test_patch,
        problem_statement="Sales take half.",
        created_at="2024-05-01T12:30:00",
        FAIL_TO_PASS=["test_sale (tests.test_cart.Case.test_sale)"],
        PASS_TO_PASS=["test_empty (tests.test_cart.Case.test_empty)"],
        install_config={"log_parser": "parse_log_django", "test_cmd": "python -m unittest -v tests.test_cart"},
    )


def taken(store: Store, folder: Path, row: dict[str, Any], images: EngineTrees | None = None) -> ImportReport:
    (folder / "swe-rebench.jsonl").write_text(json.dumps(row))
    importer = Importer(store, folder / "data", folder / "mirrors", images=images)
    return importer.run(read_instances(folder / "swe-rebench.jsonl"), lambda row: None)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with contextlib.closing(connect()) as client:
        yield client


@pytest.fixture
def images() -> Iterator[EngineTrees]:
    with EngineTrees(None) as images:
        yield images


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, client: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A publisher's image, and the row that names it."""
    folder = tmp_path_factory.mktemp("published")
    row = repository(folder)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder / "repository", "testbed")
        tar.add(folder / "fix.patch", "tmp/fix.patch")
    name = f"prchain-test/published-{os.getpid()}:1"
    container = client.containers.create(IMAGE, command=["sleep", "infinity"], user="0")
    try:
        container.start()
        container.put_archive("/", archive.getvalue())
        result = container.exec_run(["bash", "-c", f"git config --global safe.directory '*'\n{_REMAINS}"], user="0")
        assert result.exit_code == 0, result.output
        before = container.exec_run(["bash", "-c", SEEN], user="0").output.decode().splitlines()
        assert len(before) > 20 and "/var/all.bundle" in before and "unreachable 0" not in before, before
        container.commit(repository=name.rpartition(":")[0], tag="1", changes=["USER root"])
    finally:
        container.remove(force=True)
    try:
        yield folder, row | {"docker_image": name}
    finally:
        with contextlib.suppress(ImageMissing), engine_failures():
            client.images.remove(name, force=True)


@pytest.mark.docker
def test_a_stage_without_a_mirror_begins_on_what_its_image_holds_and_shows_nothing_that_lies_after(
    tmp_path: Path, published: tuple[Path, dict[str, Any]], client: Any, images: EngineTrees
) -> None:
    folder, row = published
    store = open_new(tmp_path / "p.db")
    settings = Settings.load(db=str(store.url.database), data_dir=tmp_path / "data")
    assert taken(store, tmp_path, row).waiting.total() == 1
    report = taken(store, tmp_path, row, images)
    assert (report.imported, report.waiting.total(), report.passed_over) == (1, 0, {})
    assert taken(store, tmp_path, row, images).known == 1
    with store.reading() as tx:
        chain = read_chain(tx, selected_ids(tx, "imported")[0])
    trees = open_trees(chain, open_git(chain, settings.mirrors_dir), settings.data_dir)
    (stage,) = chain.stages
    own = git(folder / "repository", "rev-parse", f"{row['base_commit']}^{{tree}}").strip()
    assert trees.tree_of(stage.base) == own
    provider = Provider(settings, engine=client, store=store)
    prover = ChainProver(store, provider, settings, ValidateOptions(backend="docker", runs=1, test_timeout=60.0))
    names = []
    try:
        proof = prover.prove(chain.id)
        (found,) = proof.stages
        names.append(str(found.image))
        assert (proof.outcome, found.runner) == (PROVED, "unittest") and is_published(names[0]), proof
        assert proof.published is not None and not proof.published.differ
        provided = provider.provide(chain.repository, trees, open_git(chain, settings.mirrors_dir), stage)
        assert provided.publisher == f"in {row['docker_image']}" and provided.cached
        assert provided.plan.test.startswith("python -m unittest")
        with prover.backend.connected() as backend:
            workplace = Workplace(provided, trees, backend=backend)
            with workplace.sandbox() as sandbox:
                workplace.place(sandbox, stage.base)
                seen = sandbox.exec(SEEN, timeout=120).text.splitlines()
                assert workplace.extract(sandbox, start_tree=own, rules_from=stage.base).tree == own
                assert workplace.briefing(sandbox).tests is None
        assert seen == ["commits 1 of 1", "unreachable 0", "refs 1, 0, 0, 0", "HALF = 0.5"]
        shown = proof_report(store, chain.id)
        assert (shown.stages[0].image, shown.stages[0].publisher) == (names[0], f"made of {row['docker_image']}")
        image = find_image(client, names[0])
        assert image is not None and image.notes[0] == f"of {row['docker_image']}" and len(image.notes) == 3
    finally:
        for name in names:
            remove_image(client, name)
        store.close()


@pytest.mark.docker
def test_an_image_without_the_folder_is_said_so_and_the_task_waits(tmp_path: Path, images: EngineTrees) -> None:
    with contextlib.closing(open_new(tmp_path / "p.db")) as store:
        row = swe_rebench_v2(image_name=IMAGE)
        report = taken(store, tmp_path, row, images)
        assert report.waiting.total() == 1 and "it has no folder /till" in report.passed_over[IMAGE]


@pytest.mark.parametrize(
    ("commands", "parser", "expected"),
    [
        (["pytest --no-header -rA -p no:cacheprovider -W ignore"], None, ("-p", "no:cacheprovider", "-W", "ignore")),
        (["TZ=UTC python -m pytest -k 'not slow' tests/a.py --tb short -n 4"], "parse_log_pytest", ("-k", "not slow")),
        (["pytest --no-header -rA --tb=no"], "parse_log_pytest_v2", ("--no-header",)),
    ],
)
def test_a_command_that_starts_pytest_is_run_by_our_reporter_with_its_options(
    commands: list[str], parser: str | None, expected: tuple[str, ...]
) -> None:
    found = published_tests(commands, parser)
    assert (found.runner, found.script, found.note) == ("pytest", "", "")
    assert found.arguments[-len(expected) :] == expected


@pytest.mark.parametrize(
    ("commands", "parser", "expected"),
    [
        ([], None, PublishedTests()),
        ([], "parse_log_gotest", PublishedTests("go")),
        (["./runtests.py -v 2 a"], "parse_log_django", PublishedTests("unittest", script="./runtests.py -v 2 a")),
        (["make", "pytest -rA"], "parse_log_pytest", PublishedTests("pytest", script="make\npytest -rA")),
        (["pytest -rA && true"], "parse_log_pytest", PublishedTests("pytest", script="pytest -rA && true")),
    ],
)
def test_another_command_is_run_as_it_is_where_a_parser_of_ours_reads_what_it_prints(
    commands: list[str], parser: str | None, expected: PublishedTests
) -> None:
    assert published_tests(commands, parser) == expected


@pytest.mark.parametrize(
    ("commands", "parser"),
    [
        (["bin/test -C --verbose"], "parse_log_sympy"),
        (["go test -v ./..."], "parse_log_gotest"),
        (["./runtests.py {tools}/x"], "parse_log_django"),
        (["make test"], None),
    ],
)
def test_a_command_whose_output_nothing_of_ours_reads_is_not_run_and_said_so(
    commands: list[str], parser: str | None
) -> None:
    found = published_tests(commands, parser)
    assert found.script == "" and "test command is not used" in found.note
