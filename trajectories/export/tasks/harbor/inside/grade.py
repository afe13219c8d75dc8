"""The grader of an exported stage: it grades what an agent left as we do, and writes the rewards.

    python3 -I -S grader.pyz FOLDER ARCHIVE REWARDS

FOLDER holds what `said.StageSaid` and the pack say, ARCHIVE is what `collect.py` wrote (if it is not there, the
repository's folder is the agent's own), and REWARDS is the folder for ``reward.json`` and ``ctrf.json``. Work that
cannot be read is worth 0: a trainer leaves steps without a reward out of its mean, and an agent may have wanted that.
Where the image or the machine is why the grader could not run it writes neither, and ends with 1.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from environments.duelling import GradingSuite
from environments.graded_runs import graded_run
from environments.suites.outcomes import Grade, StateCheck, grade
from environments.workplace import StageSuite, Workplace
from prchain.core.errors import ExtractionFailed, ImageError, PrchainError
from trajectories.export.tasks.harbor.inside.environment import switch
from trajectories.export.tasks.harbor.inside.fingerprint import fingerprint, forget_compiled
from trajectories.export.tasks.harbor.inside.machine import Machine, MachinePlan, Provided, User, end_others
from trajectories.export.tasks.harbor.inside.plain_git import PlainStore
from trajectories.export.tasks.harbor.inside.rewards import ctrf, rewards
from trajectories.export.tasks.harbor.inside.said import OBJECTS, STAGE, StageSaid, paths_of
from trajectories.export.tasks.harbor.inside.work_tree import FolderRules, files_below, read_changes, tree_of_folder

_PR_SET_DUMPABLE = 4

_ENDLESS = "processes that nobody could end were left"

REWARD, REPORT = "reward.json", "ctrf.json"


def agents_tree(store: PlainStore, said: StageSaid, archive: Path) -> str:
    """A_t. With an archive the folder is the image's own; without, this is the container that the agent worked in, and
    its folder is what it left. Raises `ExtractionFailed` where what the agent left cannot be read, `ImageError` where
    the image is another one, `GitError`."""
    folder = os.fsencode(said.workdir)
    rules = FolderRules(store.entries(said.image_tree), said.base, paths_of(said.outputs))
    if not os.path.lexists(archive):
        return tree_of_folder(store, folder, rules)
    try:
        if store.tree_of(said.base) != said.image_tree:
            # What the first stage's rules hide a later one's may not: what lies there beside the tree is the image's.
            made = {path for path, _ in files_below(folder) if path not in rules.start}
            rules = replace(rules, outputs={*rules.outputs, *made})
        left = tree_of_folder(store, folder, rules)
    except ExtractionFailed as error:
        raise ImageError(f"the image's {said.workdir} cannot be read: {error}") from None
    if left != said.image_tree:
        raise ImageError(f"{said.workdir} of the image holds another tree than the task was made for: {left}")
    with _opened(archive) as packed:
        return tree_of_folder(store, folder, rules, read_changes(packed))


def _opened(archive: Path) -> IO[bytes]:
    """The archive, which may be a folder, a link or a pipe if the agent owns its place. Raises `ExtractionFailed`."""
    try:
        file = os.open(archive, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return os.fdopen(file, "rb")
        os.close(file)
    except OSError as error:
        raise ExtractionFailed(f"the archive of the agent's work cannot be opened: {error.strerror}") from None
    raise ExtractionFailed("what is in the place of the archive of the agent's work is no file")


def graded(store: PlainStore, said: StageSaid, tree: str, user: User) -> Grade:
    """The grade of a tree; work that ends the tests' processes in a second run too passes none. Raises `PrchainError`
    where the machine is why there is none."""
    plan = MachinePlan(
        said.runner, said.tag, said.workdir, said.refresh, said.command, {"HOME": user.home, **said.environment}
    )
    workplace = Workplace(_as_any(Provided(plan)), store, backend=_as_any(Machine(user)), test_timeout=said.seconds)
    suite = StageSuite(
        workplace,
        said.base,
        said.landed,
        paths_of(said.test_paths),
        paths_of(said.earlier_test_paths),
        said.files,
        baseline=said.baseline,
    )
    run = graded_run(GradingSuite(suite), tree, {*said.classes.f2p, *said.classes.p2p})
    return grade(
        said.classes,
        StateCheck(),
        run.statuses,
        earlier_f2p=said.earlier_f2p,
        cheats=run.cheats,
        taken_back=run.taken_back,
    )


def _as_any(value: Any) -> Any:
    """These have the parts that are used, and not the types: those of the package import engines and databases."""
    return value


def switch_environment(said: StageSaid) -> None:
    """Make the stage's environment of the image's own. Raises `ImageError`."""
    if not said.switched_to:
        return
    try:
        with open(said.switched_to, "rb") as packed:
            failed = switch(packed)
    except (OSError, EOFError, ValueError) as error:
        raise ImageError(f"the image does not hold the stage's environment: {error}") from None
    if failed:
        raise ImageError(f"the stage's environment cannot be made: {failed[0]}")


def changed_programs(said: StageSaid) -> tuple[str, ...]:
    """Whether the image's programs are others, as they can be in the agent's own container."""
    now = fingerprint(said.watched)
    if now["compiled"] != said.fingerprint["compiled"]:
        forget_compiled(said.watched)
    return ("the programs of the image were changed",) if now["files"] != said.fingerprint["files"] else ()


def main(arguments: Sequence[str]) -> int:
    """Grade, and write the rewards; 1 where nothing can be said."""
    folder, archive, out = map(Path, arguments)
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(message)s")
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # the key of the reports is in our memory
    os.environ.clear()
    os.environ.update({"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    start = time.time()
    for name in (REWARD, REPORT, "reward.txt"):
        _clear(out / name)
    try:
        said = StageSaid.read(folder / STAGE)
        found = grade_alone(folder, archive, said)
    except PrchainError as error:
        sys.stdout.write(f"not graded, {error.name}: {error}\n")
        return 1
    _write(out / REPORT, ctrf(found, said.runner, start, time.time()))
    values = rewards(found, said.earlier_f2p)
    _write(out / REWARD, json.dumps(values, sort_keys=True) + "\n")
    sys.stdout.write(f"{found.outcome}: {values}\n")
    return 0


def grade_alone(folder: Path, archive: Path, said: StageSaid) -> Grade:
    """`grade_of_work`, with nothing of the user's running before and after it; what cannot be ended is a cheat."""
    user = User.of(said.user)
    if not end_others(user):
        return _caught(said, _ENDLESS)
    if os.geteuid() == 0:
        folder.chmod(0o700)  # the code under test reads neither the tests that it is not to know, nor their marks
    found = grade_of_work(folder, archive, said, user)
    return found if end_others(user) else _caught(said, _ENDLESS)


def grade_of_work(folder: Path, archive: Path, said: StageSaid, user: User) -> Grade:
    """The grade of what an agent left; that of nothing where it cannot be read. Raises `PrchainError` where the image
    or the machine is why there is none."""
    if os.geteuid() == 0 or os.path.lexists(archive):
        switch_environment(said)
    changed = changed_programs(said)
    if changed and os.path.lexists(archive):
        raise ImageError("the programs of the image are others than the task was made for")
    if changed:
        return _caught(said, *changed)
    with tempfile.TemporaryDirectory(prefix="grader-", dir="/var/tmp") as place:
        store = PlainStore.made(Path(place) / "trees.git")
        with (folder / OBJECTS).open("rb") as pack:
            store.take_pack(pack)
        try:
            tree = agents_tree(store, said, archive)
        except ExtractionFailed as error:
            sys.stdout.write(f"no work to grade, {error.name}: {error}\n")
            return grade(said.classes, StateCheck(), {}, earlier_f2p=said.earlier_f2p)
        return graded(store, said, tree, user)


def _caught(said: StageSaid, *cheats: str) -> Grade:
    return grade(said.classes, StateCheck(), {}, earlier_f2p=said.earlier_f2p, cheats=cheats)


def _clear(path: Path) -> None:
    """Make room: a folder is put aside, since one that is closed to us cannot be removed."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}-{secrets.token_hex(6)}"))
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """A file that was not there before: what others put in its place goes."""
    _clear(path)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
