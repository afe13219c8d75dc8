"""Trees into a sandbox and out again: nothing of the future goes in, and no trick of an agent spoils what comes out.

The sandbox is a folder of this machine.
"""

from __future__ import annotations

import os
import socket
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from environments.checkouts.checkout import Extraction, extract_tree, place_repository, place_tree
from environments.checkouts.extraction import ExtractionNote, Omission
from environments.checkouts.junk import CACHE_SIGNATURE
from prchain.core.errors import ExtractionFailed, GitError, PlacementFailed, SandboxFileError
from prchain.core.git.trees import EXECUTABLE, FILE, LINK, SUBMODULE, TreeEntry, TreeStore
from tests.environments.folder_sandbox import FolderSandbox
from tests.miner.gitworld import World, git
from tests.prchain.treeworld import Content, harvest, new_store, plant

COMMIT = "1" * 40
START: dict[str | bytes, Content] = {
    ".gitignore": "*.log\nbuild/\n/local\n!keep.log\n",
    ".gitattributes": "*.txt text eol=crlf\nvendored/** export-ignore\n*.u working-tree-encoding=UTF-16\n",
    "src/app.py": "print(1)\n",
    "src/run": (EXECUTABLE, "#!/bin/sh\n"),
    "src/.gitignore": "*.gen\n",
    "tracked.log": "tracked though ignored\n",
    "unix.txt": "one\ntwo\n",
    "dos.txt": "one\r\ntwo\r\n",
    "vendored/x": "x\n",
    "wide.u": "plain\n",
    "image.bin": b"\x00\xff\x00",
    "link": (LINK, "src/app.py"),
    b"bad\xff\nname": "odd\n",
    "ext/lib": (SUBMODULE, COMMIT),
}


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


@pytest.fixture
def start(store: TreeStore) -> str:
    return plant(store, START)


@pytest.fixture
def sandbox(tmp_path: Path) -> FolderSandbox:
    return FolderSandbox(tmp_path / "testbed")


@pytest.fixture(autouse=True)
def _a_folder_to_be(sandbox: FolderSandbox) -> None:
    sandbox.folder.mkdir()


class TestPlace:
    def test_the_folder_holds_the_tree_and_git_sees_no_change(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        (sandbox.folder / "left.over").write_text("from before")
        (sandbox.folder / ".hidden").mkdir()
        commit = place_tree(sandbox, store, start)
        found = {
            os.fsencode(path.relative_to(sandbox.folder)): path
            for path in sandbox.folder.rglob("*")
            if ".git" not in path.relative_to(sandbox.folder).parts and (path.is_symlink() or not path.is_dir())
        }
        assert found.keys() | {b"ext/lib"} == store.entries(start).keys()
        assert (sandbox.folder / "dos.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert (sandbox.folder / "wide.u").read_bytes() == b"plain\n"
        assert os.readlink(sandbox.folder / "link") == "src/app.py"
        assert (sandbox.folder / "src/run").stat().st_mode & 0o777 == 0o755
        assert (sandbox.folder / "ext/lib").is_dir()
        assert git(sandbox.folder, "status", "--porcelain") == ""
        assert git(sandbox.folder, "rev-parse", "HEAD", "HEAD^{tree}").split() == [commit, start]
        assert git(sandbox.folder, "branch", "--show-current").strip() == "main"

    def test_what_is_placed_comes_out_the_same(self, sandbox: FolderSandbox, store: TreeStore, start: str) -> None:
        place_tree(sandbox, store, start)
        assert extracted(sandbox, store, start) == Extraction(start, {}, ())

    def test_a_second_stage_takes_the_place_of_the_first(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec("echo mine > src/mine.py; git add -A; git commit -qm mine; git tag t; git stash -q; git branch b")
        second = plant(store, {"only": "this\n"})
        commit = place_tree(sandbox, store, second)
        assert git(sandbox.folder, "log", "--all", "--format=%H").split() == [commit]
        assert os.listdir(sandbox.folder) != []
        assert extracted(sandbox, store, second).tree == second

    def test_the_agent_can_work_with_git(self, sandbox: FolderSandbox, store: TreeStore, start: str) -> None:
        place_tree(sandbox, store, start)
        done = sandbox.exec("echo 2 >> src/app.py && git diff --stat && git commit -qam work && git log --oneline")
        assert done.exit_code == 0, done.text
        assert "src/app.py | 1 +" in done.text

    def test_an_agent_that_goes_on_finds_its_own_work_as_changes_to_the_start(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        later = store.edit(start, {b"src/app.py": TreeEntry(FILE, store.write_blob(b"print(2)\n")), b"unix.txt": None})
        place_tree(sandbox, store, later)
        (sandbox.folder / ".git" / "info" / "exclude").write_text("/made\n")
        (sandbox.folder / "made").write_text("by a refresh\n")
        (sandbox.folder / "new.py").write_text("pass\n")
        commit = place_repository(sandbox, store, start)
        assert git(sandbox.folder, "rev-parse", "HEAD^{tree}").strip() == start
        changed = git(sandbox.folder, "status", "--porcelain", "--ignore-submodules=all").splitlines()
        assert changed == [" M src/app.py", " D unix.txt", "?? new.py"]
        assert git(sandbox.folder, "rev-list", "--all").split() == [commit]
        missing = sandbox.exec(f"git cat-file -t {store.commit(later, (), 'Start of the stage' + chr(10))}")
        assert missing.exit_code != 0, "the later tree is in the files, and not in the repository"

    def test_sha256_trees(self, sandbox: FolderSandbox, tmp_path: Path) -> None:
        world = World(tmp_path / "r.git", objects="sha256")
        world.commit("main", {"a": "1"})
        store = TreeStore.open(tmp_path / "other", [world.save()])
        place_tree(sandbox, store, world.sha("main"))
        assert git(sandbox.folder, "rev-parse", "HEAD^{tree}").strip() == store.tree_of(world.sha("main"))
        assert extracted(sandbox, store, world.sha("main")).tree == store.tree_of(world.sha("main"))

    def test_a_sandbox_without_git_is_refused(
        self, sandbox: FolderSandbox, store: TreeStore, start: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (sandbox.home / "git").write_text("#!/bin/sh\nexit 127\n")
        (sandbox.home / "git").chmod(0o755)
        monkeypatch.setattr(
            "tests.environments.folder_sandbox._CLEAN", {"PATH": f"{sandbox.home}:{os.environ['PATH']}"}
        )
        with pytest.raises(PlacementFailed):
            place_tree(sandbox, store, start)

    def test_a_tree_whose_names_lead_astray_is_refused_before_anything_is_touched(
        self, sandbox: FolderSandbox, store: TreeStore
    ) -> None:
        (sandbox.folder / "left").write_text("x")
        blob = store.write_blob(b"x")
        tree = raw_tree(store, b"100644", b"..", blob)
        with pytest.raises(GitError):
            place_tree(sandbox, store, tree)
        assert os.listdir(sandbox.folder) == ["left"]


class TestFuture:
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        mirror = World(tmp_path / "mirror.git")
        for number in range(4):
            mirror.commit("main", {"a": f"past {number}\n"}, f"past {number}", author="Ada Lovelace")
        mirror.commit("main", {"a": "base\n"}, "base")
        mirror.commit("main", {"a": "the solution\n", "fix": "secret\n"}, "future")
        mirror.save()
        return mirror

    @pytest.mark.parametrize("history", [0, 1, 3])
    def test_no_object_but_the_trees_and_its_pasts_is_there(
        self, sandbox: FolderSandbox, world: World, tmp_path: Path, history: int
    ) -> None:
        store = TreeStore.open(tmp_path / "store", [world.path])
        base, future = world.sha(5), world.sha(6)
        store.write_blob(b"something else in the store")
        commit = place_tree(sandbox, store, base, history=[world.sha(4 - n) for n in range(history)])
        present = git(sandbox.folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
        reachable = git(sandbox.folder, "rev-list", "--objects", "--no-object-names", commit).split()
        assert sorted(present) == sorted(reachable)
        ours = set(git(world.path, "rev-list", "--objects", "--no-object-names", future).split())
        theirs = set(git(world.path, "rev-list", "--objects", "--no-object-names", base).split())
        assert not set(present) & (ours - theirs)
        assert git(sandbox.folder, "log", "--format=%s").split("\n")[1 : 1 + history] == [
            f"past {3 - n}" for n in range(history)
        ]

    def test_nothing_else_tells_of_it_either(self, sandbox: FolderSandbox, world: World, tmp_path: Path) -> None:
        store = TreeStore.open(tmp_path / "store", [world.path])
        commit = place_tree(sandbox, store, world.sha(5))
        future = world.sha(6)
        assert sandbox.exec(f"git cat-file -e {future}").exit_code != 0
        for arguments in (["reflog", "--all"], ["remote"], ["tag"], ["stash", "list"], ["worktree", "prune", "-v"]):
            assert git(sandbox.folder, *arguments) == ""
        assert git(sandbox.folder, "for-each-ref", "--format=%(refname) %(objectname)").split() == [
            "refs/heads/main",
            commit,
        ]
        assert git(sandbox.folder, "fsck", "--unreachable", "--lost-found") == ""
        files = [path for path in (sandbox.folder / ".git").rglob("*") if path.is_file()]
        assert {path.relative_to(sandbox.folder / ".git").as_posix().partition(".")[0][:12] for path in files} == {
            "HEAD",
            "config",
            "index",
            "info/attribu",
            "refs/heads/m",
            "objects/pack",
        }
        everything = b"".join(inflated(path.read_bytes()) for path in files)
        assert b"secret" not in everything
        assert str(world.path).encode() not in everything
        assert str(store.path).encode() not in everything
        assert sandbox.exec(f"git fetch -q origin {future}").exit_code != 0

    def test_history_keeps_authors_and_messages_and_loses_signatures(
        self, sandbox: FolderSandbox, world: World, tmp_path: Path
    ) -> None:
        body = git(world.path, "cat-file", "commit", world.sha(4))
        heads, _, message = body.partition("\n\n")
        signed = f"{heads}\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n{message}"
        sha = git(world.path, "hash-object", "-t", "commit", "-w", "--stdin", stdin=signed.encode()).strip()
        store = TreeStore.open(tmp_path / "store", [world.path])
        place_tree(sandbox, store, world.sha(5), history=[sha])
        commit = git(sandbox.folder, "cat-file", "commit", "HEAD~1")
        assert "gpgsig" not in commit
        assert "author Ada Lovelace <ada.lovelace@example.org> 1600000240 +0000" in commit
        assert commit.endswith("\n\npast 3")

    def test_a_missing_commit_of_the_history_has_a_name(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        with pytest.raises(PlacementFailed, match="history"):
            place_tree(sandbox, store, start, history=[COMMIT])


class TestExtract:
    @pytest.mark.parametrize(
        "trick",
        [
            "true",
            "git add -A && git commit -qm work",
            "git checkout -q --orphan new && git add -A && git commit -qm rewritten && git branch -D main",
            "rm -rf .git",
            "rm -rf .git && git init -q && git add -A && git commit -qm other; true",
            "rm -rf .git && ln -s /etc .git",
            "rm -rf .git && echo 'gitdir: /elsewhere' > .git",
            "echo garbage > .git/index && echo '[core' > .git/config && rm -rf .git/objects",
            "git config core.worktree /etc; git config core.hooksPath /tmp; git config core.fsmonitor 'touch hacked'",
            "git update-index --assume-unchanged src/app.py && git update-index --skip-worktree link",
            "mkdir -p .git/info && echo '*' > .git/info/exclude && git config core.excludesFile .git/info/exclude",
            "git stash -q -u && git stash pop -q",
        ],
    )
    def test_what_the_agent_does_to_the_repository_does_not_count(
        self, sandbox: FolderSandbox, store: TreeStore, start: str, trick: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec("echo changed > src/app.py; rm unix.txt; echo new > src/new.py; chmod +x vendored/x")
        done = sandbox.exec(trick)
        assert done.exit_code == 0, done.text
        expected = edited(
            store,
            start,
            {"src/app.py": "changed\n", "src/new.py": "new\n", "unix.txt": None, "vendored/x": (EXECUTABLE, "x\n")},
        )
        assert extracted(sandbox, store, start) == Extraction(expected, {}, ())

    def test_junk_is_what_the_bases_rules_ignore_and_the_start_does_not_hold(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec(
            "mkdir -p build/deep src/build a/__pycache__ local; echo x | tee build/deep/o src/build/o x.log a/b.log"
            " src/a.gen a/__pycache__/m.pyc local/y keep.log b.gen tracked.log 'build/:(top)x' > /dev/null"
        )
        found = extracted(sandbox, store, start)
        added = dict.fromkeys(("keep.log", "b.gen", "tracked.log"), "x\n")
        assert found.tree == edited(store, start, added)
        assert found.counts == {Omission.JUNK: 8}
        assert {note.path for note in found.notes} == {
            b"build/deep/o",
            b"src/build/o",
            b"x.log",
            b"a/b.log",
            b"src/a.gen",
            b"a/__pycache__/m.pyc",
            b"local/y",
            b"build/:(top)x",
        }

    def test_what_the_agent_writes_into_ignore_files_hides_nothing(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec("echo '*' > .gitignore; mkdir n; echo '*' > n/.gitignore; echo x > n/new.py; echo x > other.log")
        changes = {".gitignore": "*\n", "n/.gitignore": "*\n", "n/new.py": "x\n"}
        assert extracted(sandbox, store, start).tree == edited(store, start, changes)

    def test_what_an_earlier_stage_wrote_into_ignore_files_hides_nothing_either(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        state = edited(store, start, {".gitignore": "*\n"})
        place_tree(sandbox, store, state)
        sandbox.exec("echo x > new.py")
        found = extract_tree(sandbox, store, start_tree=state, ignore_rules_from=start)
        assert found.tree == edited(store, state, {"new.py": "x\n"})

    def test_attributes_change_no_byte(self, sandbox: FolderSandbox, store: TreeStore, start: str) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec(
            r"printf 'a\r\nb\n' > new.txt; echo '* text=auto filter=x' > .gitattributes; printf 'x\r\n' > wide.u"
        )
        changes = {"new.txt": "a\r\nb\n", ".gitattributes": "* text=auto filter=x\n", "wide.u": "x\r\n"}
        assert extracted(sandbox, store, start).tree == edited(store, start, changes)

    def test_caches_that_call_themselves_so_are_junk(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        for folder, tag in ((".pytest_cache", CACHE_SIGNATURE + b"\n# more"), ("mine", b"not the signature")):
            (sandbox.folder / folder / "v").mkdir(parents=True)
            (sandbox.folder / folder / "CACHEDIR.TAG").write_bytes(tag)
            (sandbox.folder / folder / "v/data").write_text("x")
        found = extracted(sandbox, store, start)
        assert found.tree == edited(store, start, {"mine/CACHEDIR.TAG": "not the signature", "mine/v/data": "x"})
        assert found.counts == {Omission.JUNK: 2}

    def test_nested_repositories_are_taken_as_files_and_reported(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec(
            "mkdir -p sub/deep w; cd sub; git init -q; echo x > deep/x; git add -A; git commit -qm s; "
            "echo 'gitdir: ../sub/.git' > ../w/.git; echo y > ../w/y"
        )
        found = extracted(sandbox, store, start)
        assert found.tree == edited(store, start, {"sub/deep/x": "x\n", "w/y": "y\n"})
        assert set(found.notes) == {
            ExtractionNote(Omission.NESTED_REPOSITORY, b"sub"),
            ExtractionNote(Omission.NESTED_REPOSITORY, b"w"),
        }

    def test_links_are_taken_as_links(
        self, sandbox: FolderSandbox, store: TreeStore, start: str, tmp_path: Path
    ) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/secret").write_text("secret")
        place_tree(sandbox, store, start)
        sandbox.exec(
            "ln -s /etc/passwd out; ln -s ../outside up; ln -s loop loop; rm -rf src; ln -s /etc src; ln -sf new link"
        )
        found = extracted(sandbox, store, start)
        gone: dict[str, Content | None] = {str(path): None for path in START if str(path).startswith("src/")}
        links: dict[str, Content | None] = {
            "out": (LINK, "/etc/passwd"),
            "up": (LINK, "../outside"),
            "loop": (LINK, "loop"),
            "src": (LINK, "/etc"),
            "link": (LINK, "new"),
        }
        assert found.tree == edited(store, start, {**gone, **links})

    def test_hard_links_have_the_content_of_what_they_name(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec(
            "mkdir build; echo both > build/a; ln build/a src/b; ln src/b z; ln .git/config zz; chmod +x src/b"
        )
        found = extracted(sandbox, store, start)
        config = (sandbox.folder / ".git/config").read_text()
        changes: dict[str, Content | None] = {
            "src/b": (EXECUTABLE, "both\n"),
            "z": (EXECUTABLE, "both\n"),
            "zz": config,
        }
        assert found.tree == edited(store, start, changes)

    def test_what_no_tree_holds_stays_behind_and_is_reported(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        os.mkfifo(sandbox.folder / "fifo")
        (sandbox.folder / "empty/deep").mkdir(parents=True)
        (sandbox.folder / ".GIT").mkdir()
        (sandbox.folder / ".GIT/config").write_text("x")
        (sandbox.folder / ".gitmodules").symlink_to("/etc/passwd")
        with socket.socket(socket.AF_UNIX) as listener:
            folder = os.open(sandbox.folder, os.O_RDONLY)
            listener.bind(f"/proc/self/fd/{folder}/socket")
            os.close(folder)
            found = extracted(sandbox, store, start)
        assert found.tree == start
        assert set(found.notes) == {
            ExtractionNote(Omission.SPECIAL, b"fifo"),
            ExtractionNote(Omission.BAD_NAME, b".GIT/config"),
            ExtractionNote(Omission.BAD_NAME, b".gitmodules"),
        }

    def test_names_of_any_bytes(self, sandbox: FolderSandbox, store: TreeStore, start: str) -> None:
        place_tree(sandbox, store, start)
        names = [
            b"new\nline",
            b"\xff\xfe",
            b"tab\t",
            b" ",
            b"-rf",
            b":(glob)*",
            b"back\\slash",
            b'"',
            b"git~1",
            b"\xc3\xa4",
            b"l" * 255,
            b"/".join([b"deep" * 20] * 12),
        ]
        for name in names:
            path = os.fsencode(sandbox.folder) + b"/" + name
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"x")
        entry = TreeEntry(FILE, store.write_blob(b"x"))
        assert extracted(sandbox, store, start).tree == store.edit(start, dict.fromkeys(names, entry))

    def test_submodules_stay_at_their_commit(self, sandbox: FolderSandbox, store: TreeStore, start: str) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec("echo x > ext/lib/x")
        found = extracted(sandbox, store, start)
        assert found == Extraction(
            start, {Omission.IN_SUBMODULE: 1}, (ExtractionNote(Omission.IN_SUBMODULE, b"ext/lib/x"),)
        )
        sandbox.exec("rm -rf ext")
        assert extracted(sandbox, store, start).tree == start
        sandbox.exec("mkdir ext; echo x > ext/lib")
        assert extracted(sandbox, store, start).tree == edited(store, start, {"ext/lib": "x\n"})

    def test_files_and_folders_that_changed_places(self, sandbox: FolderSandbox, store: TreeStore, start: str) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec(
            "rm -rf vendored unix.txt .gitignore; echo x > vendored; mkdir unix.txt .gitignore; "
            "echo x | tee unix.txt/a .gitignore/b > /dev/null"
        )
        changes = {
            "vendored": "x\n",
            "vendored/x": None,
            "unix.txt": None,
            "unix.txt/a": "x\n",
            ".gitignore": None,
            ".gitignore/b": "x\n",
        }
        assert extracted(sandbox, store, start).tree == edited(store, start, changes)

    def test_an_emptied_folder_is_the_empty_tree_but_for_submodules(
        self, sandbox: FolderSandbox, store: TreeStore, start: str
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.exec("rm -rf ./* .git*")
        assert harvest(store, extracted(sandbox, store, start).tree) == {"ext/lib": (SUBMODULE, COMMIT)}

    def test_a_folder_that_is_gone_or_a_link_is_a_failure(
        self, sandbox: FolderSandbox, store: TreeStore, start: str, tmp_path: Path
    ) -> None:
        place_tree(sandbox, store, start)
        sandbox.folder.rename(tmp_path / "away")
        with pytest.raises(SandboxFileError):
            extracted(sandbox, store, start)
        sandbox.folder.symlink_to("/etc")
        with pytest.raises(ExtractionFailed, match="no folder"):
            extracted(sandbox, store, start)


def member(name: str, content: bytes = b"x", **fields: object) -> bytes:
    """One member of a tar, whatever is wrong with it."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for field, value in fields.items():
        setattr(header, field, value)
    return header.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % 512)


def padded(*parts: bytes) -> bytes:
    """A tar of these members, with its folder at the front and its end."""
    return member("testbed", b"", type=tarfile.DIRTYPE) + b"".join(parts) + b"\0" * 1024


class TestHostileArchive:
    @pytest.fixture
    def receive(
        self, sandbox: FolderSandbox, store: TreeStore, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[..., Extraction]:
        def received(archive: bytes, most_bytes: int = 1 << 30, most_members: int = 1000) -> Extraction:
            def get(path: str) -> Iterator[bytes]:
                yield from (archive[at : at + 1000] for at in range(0, len(archive), 1000))

            monkeypatch.setattr(sandbox, "get", get)
            empty = store.write_tree({})
            limits = {"most_bytes": most_bytes, "most_members": most_members}
            return extract_tree(sandbox, store, start_tree=empty, ignore_rules_from=empty, workdir=None, **limits)

        return received

    @pytest.mark.parametrize(
        "name",
        ["/etc/passwd", "../up", "testbed/../up", "testbed/a/../../up", "testbed//x", "elsewhere/x", "testbed/./x"],
    )
    def test_names_that_lead_out_are_left_out(
        self, receive: Callable[..., Extraction], store: TreeStore, name: str
    ) -> None:
        found = receive(padded(member(name), member("testbed/ok")))
        assert harvest(store, found.tree) == {"ok": "x"}

    def test_files_below_a_link_or_a_file_are_left_out(
        self, receive: Callable[..., Extraction], store: TreeStore
    ) -> None:
        link = member("testbed/a", b"", type=tarfile.SYMTYPE, linkname="/etc")
        found = receive(padded(link, member("testbed/a/passwd"), member("testbed/b"), member("testbed/b/c")))
        assert harvest(store, found.tree) == {"a": (LINK, "/etc"), "b": "x"}
        assert found.counts == {Omission.BAD_NAME: 2}

    def test_the_last_of_two_members_of_one_name_counts(
        self, receive: Callable[..., Extraction], store: TreeStore
    ) -> None:
        found = receive(padded(member("testbed/a", b"first"), member("testbed/a", b"second")))
        assert harvest(store, found.tree) == {"a": "second"}

    def test_hard_links_to_nowhere_are_reported(self, receive: Callable[..., Extraction], store: TreeStore) -> None:
        link = member("testbed/a", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")
        found = receive(padded(link))
        assert (harvest(store, found.tree), found.counts) == ({}, {Omission.LOST_LINK: 1})

    def test_devices_are_reported(self, receive: Callable[..., Extraction], store: TreeStore) -> None:
        found = receive(padded(member("testbed/a", b"", type=tarfile.BLKTYPE), member("testbed/b", b"", type=b"S")))
        assert harvest(store, found.tree) == {}
        assert found.counts[Omission.SPECIAL] >= 1

    @pytest.mark.parametrize(
        "archive",
        [
            b"",
            b"\0" * 1024,
            b"not a tar at all" * 100,
            padded(member("testbed/a"))[:-1400],
            padded(member("testbed/a"))[: 512 * 3],
            padded(member("testbed/a", b"x" * 5000))[:3000],
            padded(member("testbed/a"), b"garbage!" * 64, member("testbed/b")),
            padded(member("testbed/a", size=1 << 40)),
            padded(member("testbed/a", size=-512)),
            padded(member("testbed/long", b"", type=tarfile.GNUTYPE_LONGNAME, size=1 << 33)),
            padded(member("testbed/p", b"16 size=-1048576\n", type=tarfile.XHDTYPE), member("testbed/a")),
            member("testbed", b"x") + b"\0" * 1024,
        ],
        ids=[
            "nothing",
            "empty",
            "no tar",
            "cut at the end",
            "no end",
            "cut inside",
            "garbage inside",
            "absurd size",
            "negative size",
            "absurd extension",
            "negative extension",
            "no folder",
        ],
    )
    def test_a_broken_archive_is_a_failure_and_no_deletion_of_files(
        self, receive: Callable[..., Extraction], archive: bytes
    ) -> None:
        with pytest.raises(ExtractionFailed):
            receive(archive)

    def test_a_nul_in_a_name_is_left_out(self, receive: Callable[..., Extraction], store: TreeStore) -> None:
        name = b"testbed/a\x00" + b"100644 " + b"1" * 40 + b"\tevil"
        record = b"%d path=%s\n" % (len(name) + 9, name)
        found = receive(padded(member("testbed/p", record, type=tarfile.XHDTYPE), member("x"), member("testbed/ok")))
        assert harvest(store, found.tree) == {"ok": "x"}
        assert found.counts == {Omission.BAD_NAME: 1}

    def test_more_than_we_take_is_a_failure(self, receive: Callable[..., Extraction]) -> None:
        large = padded(member("testbed/a", b"x" * 100_000))
        with pytest.raises(ExtractionFailed, match="more than 50,000 bytes"):
            receive(large, most_bytes=50_000)
        with pytest.raises(ExtractionFailed, match="more than 3 files"):
            receive(padded(*(member(f"testbed/{n}") for n in range(9))), most_members=3)

    def test_names_longer_than_any_file_system_takes(
        self, receive: Callable[..., Extraction], store: TreeStore
    ) -> None:
        found = receive(padded(member("testbed/" + "x" * 5000), member("testbed/ok")))
        assert harvest(store, found.tree) == {"ok": "x"}


def extracted(sandbox: FolderSandbox, store: TreeStore, start: str) -> Extraction:
    return extract_tree(sandbox, store, start_tree=start, ignore_rules_from=start)


def edited(store: TreeStore, tree: str, changes: Mapping[str, Content | None]) -> str:
    """The tree with some paths changed."""
    entries: dict[bytes, TreeEntry | None] = {}
    for path, content in changes.items():
        mode, text = content if isinstance(content, tuple) else (FILE, content)
        raw = text.encode() if isinstance(text, str) else text
        entries[path.encode()] = None if raw is None else TreeEntry(mode, store.write_blob(raw))
    return store.edit(tree, entries)


def raw_tree(store: TreeStore, mode: bytes, name: bytes, blob: str) -> str:
    """A tree that git would not write."""
    with tempfile.TemporaryFile() as feed:
        feed.write(b"%s %s\0" % (mode, name) + bytes.fromhex(blob))
        with store.stream("hash-object", "-t", "tree", "-w", "--literally", "--stdin", feed=feed) as output:
            return output.read().decode().strip()


def inflated(content: bytes) -> bytes:
    """What a file holds, with everything in it that zlib can open."""
    out = [content]
    for start in range(len(content)):
        if content[start] == 0x78:
            try:
                out.append(zlib.decompressobj().decompress(content[start:]))
            except zlib.error:
                continue
    return b"\n".join(out)
