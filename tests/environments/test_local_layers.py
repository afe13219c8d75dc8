"""Sandboxes on this machine that begin with folders of others: what these hold, cost and leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from environments.backends import BACKENDS
from environments.backends.local import LocalBackend
from environments.sandboxes import local, local_layers
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.local_files import used_bytes
from environments.sandboxes.local_layers import MOST_LAYERS, layers_work
from environments.sandboxes.local_places import KeepingSandbox, KeptFolders, kept_folders
from environments.sandboxes.sandbox import Begin, ResourceLimits, Sandbox, SandboxConfig
from environments.workplace import Workplace
from prchain.core.errors import DiskLimit
from prchain.core.git.trees import FILE, TreeEntry
from tests.environments.kept_index import check_edits_are_seen, check_index_is_current
from tests.environments.stageworld import StageWorld, stage_world

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("bubblewrap")


@pytest.fixture(autouse=True)
def layers(bubblewrap: None) -> None:
    if not layers_work():
        pytest.skip("this kernel mounts no overlay for users, or not below the temporary folder")


@pytest.fixture
def sandbox() -> Iterator[LocalSandbox]:
    with LocalSandbox(SandboxConfig(None)) as sandbox:
        assert sandbox.exec("mkdir -p a/b c d; echo 1 | tee a/b/f a/g c/h d/i; head -c 9000000 /dev/zero > big").text
        yield sandbox


_CHANGES = (
    "echo 2 > a/g; rm -r c; mkdir c; echo 2 > c/new; rm -r d; ln -s a d; mkdir locked; echo 2 > locked/x; "
    "chmod 0 locked; rm a/b/f; mkdir a/b/f; echo 2 > /tmp/t"
)
_TOLD = "cat a/g c/new /tmp/t; ls -d a/* a/b/* c/* big; readlink d; stat -c %a locked; chmod 700 locked; cat locked/x"


def test_a_snapshot_of_layers_holds_what_was_changed(sandbox: LocalSandbox) -> None:
    sandbox.restore(sandbox.snapshot())
    sandbox.exec(_CHANGES)
    name = sandbox.snapshot()
    expected = sandbox.exec(_TOLD).output
    assert expected == b"2\n2\n2\na/b\na/b/f\na/g\nbig\nc/new\na\n0\n2\n"
    kept = sandbox._family.snapshots[name]
    assert len(kept.below) == 1 and used_bytes(kept.folder) < 200_000
    with sandbox.branch(name) as other:
        assert other.exec(_TOLD).output == expected
        assert other.exec("echo 3 > a/g; rm big; ls /testbed").exit_code == 0
    sandbox.restore(name)
    assert sandbox.exec(_TOLD).output == expected


def test_much_that_was_written_is_held_by_one_snapshot_alone(sandbox: LocalSandbox) -> None:
    sandbox.exec("export A=b; cd a", session="s")
    names = []
    for turn in range(3):
        names.append(sandbox.snapshot())
        sandbox.exec(f"echo {turn} > turn")
    sizes = [used_bytes(sandbox._family.snapshots[name].folder) for name in names]
    assert sizes[0] > 9_000_000 and max(sizes[1:]) < 200_000 and len(sandbox._layers) == 1
    assert sandbox.exec("pwd; echo $A", session="s").output == b"/testbed/a\nb\n"
    with sandbox.branch(names[2]) as other:
        assert other.exec("cat turn; wc -c < big").output == b"1\n9000000\n"
    sandbox.restore(names[0])
    assert sandbox.exec("ls turn; wc -c < big").text.endswith("\n9000000\n")


def test_a_snapshot_ends_nothing_that_runs(sandbox: LocalSandbox) -> None:
    sandbox.exec("sleep 60 >/dev/null 2>&1 &")
    name = sandbox.snapshot()
    assert sandbox.leftovers() == 1 and not sandbox._layers
    stream = sandbox.stream("echo on; exec cat")
    sandbox.snapshot()
    stream.send(b"still\n")
    said = b""
    while b"still" not in said:
        said += (stream.receive(5) or (False, b""))[1]
    stream.close()
    sandbox.restore(name)
    assert sandbox.snapshot() and len(sandbox._layers) == 1


def test_copies_are_as_layers_are(sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "layers_work", lambda: False)
    sandbox.restore(sandbox.snapshot())
    sandbox.exec(_CHANGES)
    name = sandbox.snapshot()
    expected = sandbox.exec(_TOLD).output
    with sandbox.branch(name) as other:
        assert other.exec(_TOLD).output == expected and not other._layers


def test_layers_come_to_an_end_and_count_as_disk(sandbox: LocalSandbox) -> None:
    for turn in range(MOST_LAYERS + 3):
        sandbox.exec(f"echo {turn} > turn{turn}; rm -f turn{turn - 2}; head -c 1000000 /dev/zero > more{turn}")
        sandbox.restore(sandbox.snapshot())
        assert len(sandbox._layers) <= MOST_LAYERS
    assert sandbox.exec("ls -d turn*").text.split() == [f"turn{MOST_LAYERS + 1}", f"turn{MOST_LAYERS + 2}"]
    assert 9_000_000 + (MOST_LAYERS + 3) * 1_000_000 <= sandbox._disk_use() < 40_000_000
    sandbox.config = replace(sandbox.config, limits=ResourceLimits(disk_bytes=20_000_000))
    with pytest.raises(DiskLimit):
        sandbox.restore(sandbox.snapshot())
        sandbox.exec("sleep 20", timeout=30)


def test_an_agent_has_no_capability_and_cannot_look_below(sandbox: LocalSandbox) -> None:
    sandbox.exec("echo below > secret")
    sandbox.restore(sandbox.snapshot())
    sandbox.exec("rm secret")
    told = "grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status; umount /testbed 2>&1; rm -rf /testbed/..; "
    told += (
        "unshare -Urm sh -c 'umount -l /testbed || umount /testbed' 2>&1; cat secret; grep -rs below /proc/*/root/tmp"
    )
    said = sandbox.exec(told).text
    assert said.count("0000000000000000") == 3 and "below" not in said


def test_twenty_branches_live_at_once_and_leave_nothing(sandbox: LocalSandbox) -> None:
    sandbox.restore(sandbox.snapshot())
    name = sandbox.snapshot()
    others = [sandbox.branch(name) for _ in range(20)]
    for turn, other in enumerate(others):
        assert other.exec(f"echo {turn} > a/g; cat c/h").text == "1\n"
    assert [other.exec("cat a/g").text for other in others] == [f"{turn}\n" for turn in range(20)]
    folders = [other._folder for other in others]
    for other in others:
        other.close()
    assert not any(folder and folder.exists() for folder in folders)


Make = Callable[[], Workplace]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as world:
        yield world
        kept_folders().drop()


@pytest.fixture
def make(world: StageWorld) -> Make:
    backend = BACKENDS["local"]
    assert isinstance(backend, LocalBackend)
    return lambda: Workplace(
        world.workplace().provided, world.trees(), backend=backend, test_timeout=60, base=world.chain.stages[0].base
    )


_LOOK = "git status --porcelain --untracked-files=all; git rev-parse HEAD^{tree}; cat made/by-refresh; git fsck 2>&1"
_HOSTILE = (
    "mkdir -p .git/hooks; echo hostile > .git/hooks/x; echo hostile > README.md; touch -d @0 README.md; rm -rf tests; "
    "ln -s /etc tests; git add -A; git commit -qm hostile; echo hostile | tee /tmp/hostile made/by-refresh ~/x"
)


def test_the_next_sandbox_begins_with_the_base_and_with_nothing_of_what_was_done_there(
    make: Make, world: StageWorld
) -> None:
    workplace, base = make(), world.chain.stages[0].base
    expected = [workplace.trees.tree_of(base), "fresh"]
    for begun in (Begin.EMPTY, Begin.KEPT, Begin.KEPT):
        with workplace.sandbox() as sandbox:
            assert isinstance(sandbox, KeepingSandbox) and sandbox._began is begun
            workplace.place(sandbox, base)
            assert sandbox.exec(_LOOK).text.split() == expected
            assert sandbox.exec("grep -rs hostile . /tmp ~; ls -A /tmp ~").text.count("hostile") == 0
            sandbox.exec(_HOSTILE)
            with sandbox.branch(sandbox.snapshot()) as other:
                assert other.exec("cat README.md").text == "hostile\n"


@pytest.mark.parametrize("mounts", [True, False])
def test_the_second_sandbox_begins_with_a_repository_whose_index_is_current(
    make: Make, world: StageWorld, monkeypatch: pytest.MonkeyPatch, mounts: bool
) -> None:
    monkeypatch.setattr(local, "layers_work", lambda: mounts)
    for check in (check_index_is_current, check_edits_are_seen) * 2:
        with make().sandbox() as sandbox:
            make().place(sandbox, world.chain.stages[0].base)
            check(sandbox)


def test_another_tree_comes_from_the_base_with_its_own_repository_alone(make: Make, world: StageWorld) -> None:
    workplace, base = make(), world.chain.stages[0].base
    trees = workplace.trees
    blob = trees.write_blob(b"an agent's\n")
    tree = trees.edit(trees.tree_of(base), {b"README.md": TreeEntry(FILE, blob)})
    old = trees.entries(trees.tree_of(base))[b"README.md"].blob
    for _ in range(2):
        with workplace.sandbox() as sandbox:
            workplace.place(sandbox, tree)
            assert sandbox.exec(_LOOK).text.split() == [trees.tree_of(tree), "fresh"]
            assert sandbox.exec(f"git cat-file -e {old}").exit_code != 0
            assert workplace.extract(sandbox, start_tree=tree, rules_from=base).tree == trees.tree_of(tree)
    with workplace.sandbox() as sandbox:
        workplace.place(sandbox, base)
        assert sandbox.exec("cat README.md").text == "# till\n"


def test_a_base_whose_files_do_not_stay_as_they_were_placed_is_not_kept(
    make: Make, world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, ready = world.chain.stages[0].base, Workplace.make_ready

    def changing(workplace: Workplace, sandbox: Sandbox) -> bool:
        ready(workplace, sandbox)
        return sandbox.exec("echo changed >> README.md").exit_code == 0

    monkeypatch.setattr(Workplace, "make_ready", changing)
    for _ in range(2):
        with make().sandbox() as sandbox:
            assert isinstance(sandbox, KeepingSandbox) and sandbox._began is Begin.EMPTY
            make().place(sandbox, base)
            assert sandbox.exec("cat README.md; git status --porcelain").text == "# till\nchanged\n M README.md\n"


def test_nothing_is_kept_where_there_is_no_room_or_no_overlay(
    make: Make, world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = world.chain.stages[0].base
    full = OSError("no space left on device")
    monkeypatch.setattr(KeptFolders, "keep", lambda *given: (_ for _ in ()).throw(full))
    for _ in range(2):
        with make().sandbox() as sandbox:
            make().place(sandbox, base)
            assert sandbox.exec("git status --porcelain && cat made/by-refresh").text == "fresh\n"
    backend = LocalBackend(name="local", help="", rank=0, most_kept=0)
    assert not isinstance(
        backend.sandbox(make().provided.plan, None, limits=ResourceLimits(), labels={}), KeepingSandbox
    )


def test_the_place_that_was_longest_not_used_goes_first_and_one_in_use_stays(tmp_path: Path) -> None:
    kept = KeptFolders()

    def keep(name: str, most: int) -> local_layers.Kept:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x" * 40_000)
        place = kept.keep(name, tmp_path / name, most)
        assert place is not None
        return place

    places = {name: keep(name, 1 << 30) for name in "abc"}
    for name in "bc":
        kept.leave(places[name])
    assert kept.find("b") is not None  # and it is not left
    keep("d", 100_000)
    assert [name for name in "abcd" if kept.find(name)] == ["a", "b", "d"]
    assert not places["c"].folder.exists()
    (tmp_path / "again").mkdir()
    assert kept.keep("a", tmp_path / "again", 1) is None
    kept.drop()
    assert not any(place.folder.parent.exists() for place in places.values())


def test_what_a_process_keeps_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    code = "from environments.sandboxes.local_places import kept_folders; from pathlib import Path; import sys\n"
    code += "place = kept_folders().keep('a', Path(sys.argv[1]), 1 << 30)\nassert place and place.folder.is_dir()"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "state")], cwd=ROOT, env=environment, check=True)
    assert os.listdir(tmp_path) == []
