"""A container of an exported task, made by bubblewrap of this machine's programs: what an agent does in it, and what
the folder's own ``test.sh`` then says.

It has the places that Harbor gives a container, processes and a network of its own, and two users where we are root:
the agent is nobody. Else agent and grader are one user, as they are where tests run in the agent's container.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from environments.suites.outcomes import ClassifiedTests
from prchain.core.git.trees import TreeStore
from tests.environments.gradeworld import BASE, F2P, LANDED, TESTS, grade_tree
from tests.environments.test_testruns import PYTEST
from tests.trajectories.harborworld import lay, tree_of
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.export import GRADER
from trajectories.export.tasks.harbor.folder import Files, FolderStep, HarborTask, files_of
from trajectories.export.tasks.harbor.image import PLACE
from trajectories.export.tasks.harbor.inside import collect, fingerprint
from trajectories.export.tasks.harbor.inside.said import OBJECTS, STAGE, StageSaid
from trajectories.export.tasks.harbor.objects import graders_pack

WORKDIR, PROGRAMS, REWARDS = "/testbed", "/opt/env", "/logs/verifier"
_PATH = f"{PROGRAMS}/bin:/usr/bin:/bin"
_NOBODY = 65534
IS_ROOT = os.geteuid() == 0
_AS_AGENT = f"/usr/bin/setpriv --reuid {_NOBODY} --regid {_NOBODY} --clear-groups -- " if IS_ROOT else ""
_OWN_SESSION = "/usr/bin/setsid -w /usr/bin/env -i"
_MACHINES = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc")
_FOLDERS = ("testbed", "logs/verifier", "logs/artifacts", "opt/env", "opt/prchain", "tests", "tmp", "var/tmp", "home")


class Verified(NamedTuple):
    """What a verifier left: its rewards, None where there are none, and what it said."""

    rewards: Mapping[str, float] | None
    said: str


@dataclass(frozen=True, slots=True)
class HarborBox:
    """A task's folder, and its image: folders below `place`."""

    place: Path
    files: Files

    @classmethod
    def made(cls, place: Path) -> HarborBox:
        """The task of `tests.environments.gradeworld`, whose hidden tests are all F2P."""
        own = TreeStore.open(place / "own.git")
        base, landed = (own.commit(tree_of(own, dict(files))) for files in (BASE, LANDED))
        baseline = grade_tree(place / "reference", LANDED, places=landed).run.observed
        box = cls(place, {})
        image = box.lay_image(own, dict(BASE))
        marks = json.loads(box.run(image, f"/usr/bin/python3 -I -S {PLACE}/fingerprint.py {PROGRAMS}"))
        said = StageSaid(
            base=base,
            landed=landed,
            image_tree=own.tree_of(base),
            test_paths=(TESTS,),
            earlier_test_paths=(),
            files=(TESTS,),
            classes=ClassifiedTests(f2p=F2P, p2p=()),
            earlier_f2p=(),
            baseline=baseline,
            runner="pytest",
            command=PYTEST,
            refresh=(),
            tag="",
            workdir=WORKDIR,
            user=str(_NOBODY),
            environment={"PATH": _PATH, "LANG": "C.UTF-8", "HOME": "/home"},
            outputs=(),
            watched=(PROGRAMS,),
            fingerprint=marks,
            seconds=60.0,
        )
        pack = graders_pack(own, [base, landed], [said.image_tree], ())
        step = FolderStep(name="", instruction="", tests={STAGE: said.text().encode(), OBJECTS: pack}, solution={})
        task = HarborTask(
            name="prchain/box",
            description="",
            keywords=(),
            metadata={},
            image="box",
            workdir=WORKDIR,
            network="compose",
            steps=[step],
            grader=bundle(GRADER),
            seconds=said.seconds,
        )
        return cls(place, files_of(task))

    def lay_image(self, trees: TreeStore, files: dict[str, str]) -> Path:
        """The files of the image, with these in the repository's folder."""
        image = self.place / "image"
        entries = trees.entries(tree_of(trees, files))
        listing = "".join(f"{it.mode} {it.blob} {path.decode()}\0" for path, it in entries.items())
        scripts = {Path(str(it.__file__)).name: Path(str(it.__file__)).read_text() for it in (collect, fingerprint)}
        for folder in _FOLDERS:
            (image / folder).mkdir(parents=True)
        lay(image / "testbed", files)
        lay(image / "opt/prchain", {**scripts, "listing": listing})
        lay(image / "opt/env", {"bin/tool": "#!/bin/sh\n"})
        for folder in ("testbed", "opt/env", "home") if IS_ROOT else ():
            subprocess.run(["chown", "-R", f"{_NOBODY}:{_NOBODY}", str(image / folder)], check=True)
        for folder in ("tmp", "var/tmp", "logs/verifier", "logs/artifacts"):
            (image / folder).chmod(0o1777 if "tmp" in folder else 0o777)
        return image

    def oracle(self, steps: Sequence[str], name: str) -> list[Verified]:
        """What verifiers of their own say of an oracle's steps in one container."""
        worked, found = self._container(name), []
        for step in steps:
            for path, content in self.files.items():
                kind, _, file = path.removeprefix(f"steps/{step}/").partition("/")
                place = {"solution": worked / "solution", "workdir": worked / "testbed"}.get(kind)
                if path.startswith(f"steps/{step}/") and place is not None:
                    place.mkdir(exist_ok=True)
                    (place / file).write_bytes(content)
            bash = f"{_AS_AGENT}/bin/bash"
            begins = f"cd {WORKDIR}; [ ! -e setup.sh ] || {bash} setup.sh; {bash} /solution/solve.sh"
            self.run(worked, f"{begins}\n{self._collects(step)}")
            found.append(self._fresh(worked, f"{name}-{step}", step))
        return found

    def shared(self, work: str, name: str) -> Verified:
        """What is said where the agent worked: as the agent's user, since TRL knows no other (1.16, `HarborEnv`)."""
        container = self._container(name)
        said = self.run(container, f"{self._agent(work)}\n{self._verify(_AS_AGENT)}")
        return _verified(container, said)

    def separate(self, work: str, name: str, *, as_root: bool = False) -> Verified:
        """What is said in a fresh container, to which the first one's artifacts come."""
        worked = self._container(f"{name}-worked")
        self.run(worked, f"{self._agent(work, as_root=as_root)}\n{self._collects()}")
        return self._fresh(worked, f"{name}-fresh")

    def _collects(self, step: str = "") -> str:
        values = tomllib.loads(self.files["task.toml"].decode())
        own = [it["verifier"].get("collect", []) for it in values.get("steps", ()) if it["name"] == step]
        collects = [*values["verifier"]["collect"], *(it for found in own for it in found)]
        command = "\n".join(f"( {it['command']} )" for it in collects)
        return f"{_OWN_SESSION} PATH={_PATH} /bin/sh -c {quote(command)}"

    def _fresh(self, worked: Path, name: str, step: str = "") -> Verified:
        fresh = self._container(name, step)
        shutil.rmtree(fresh / "logs/artifacts")
        shutil.copytree(worked / "logs/artifacts", fresh / "logs/artifacts", symlinks=True)
        return _verified(fresh, self.run(fresh, self._verify("")))

    def run(self, container: Path, script: str) -> str:
        """What a script prints, run by the container's first processes."""
        bubble = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"]
        for name in _MACHINES:
            path = Path("/", name)
            if path.is_symlink():
                bubble += ["--symlink", os.readlink(path), str(path)]
            elif path.exists():
                bubble += ["--ro-bind", str(path), str(path)]
        bubble += ["--proc", "/proc", "--dev", "/dev"]
        for path in sorted(container.iterdir()):
            bubble += ["--bind", str(path), f"/{path.name}"]
        for prefix in {sys.prefix, sys.base_prefix} - {"/usr"}:
            for above in reversed(Path(prefix).parents[:-1]):
                bubble += ["--perms", "0755", "--dir", str(above)]
            bubble += ["--ro-bind", prefix, prefix]
        done = subprocess.run(
            [*bubble, "--clearenv", "--chdir", "/", "/bin/bash", "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        return done.stdout.decode("utf-8", "replace")

    def _container(self, name: str, step: str = "") -> Path:
        container = self.place / name
        subprocess.run(["cp", "-a", str(self.place / "image"), str(container)], check=True)
        upload = container / "upload"
        upload.mkdir(mode=0o700)
        for path, content in self.files.items():
            if path.startswith(("tests/", f"steps/{step}/tests/")):
                (upload / Path(path).name).write_bytes(content)
        return container

    def _agent(self, work: str, *, as_root: bool = False) -> str:
        user = "" if as_root else _AS_AGENT
        return f"cd {WORKDIR}\n{user}{_OWN_SESSION} PATH={_PATH} HOME=/home /bin/bash -c {quote(work)}\ncd /"

    def _verify(self, user: str) -> str:
        """As Harbor does it (0.26, `Verifier.verify`): what lies at the place of rewards goes, and tests come."""
        return (
            f"find {REWARDS} /tests -mindepth 1 -delete; cp -r /upload/. /tests; chmod 755 /tests; cd {WORKDIR}\n"
            f"{user}{_OWN_SESSION} PATH={_PATH} /bin/bash /tests/test.sh\nsleep 0.3"
        )


def _verified(container: Path, said: str) -> Verified:
    rewards = container / REWARDS[1:] / "reward.json"
    return Verified(json.loads(rewards.read_text()) if rewards.is_file() else None, said)
