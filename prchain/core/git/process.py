"""Git processes that do nothing but what they are asked for: the one place that starts git.

Repositories are hostile input: no hook, pager, filter, external diff or lazy fetch of theirs runs, and replace refs and
grafts are ignored. `prchain.core.git.environment` says what of the user's counts: for all that is read, nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from prchain.core.errors import DiskFull, GitError, GitKilled, GitMissing, IncompleteRepository
from prchain.core.git.environment import NOWHERE, local_environment, options
from prchain.core.git.output import BLOCK
from prchain.core.processes.children import forget_child, start_child
from prchain.core.secrets.scrub import redact

OLDEST_GIT = (2, 38)
"""`git merge-tree --write-tree`, which later stages stand on, came with 2.38."""

_MISSING = "git is not installed, or cannot be run; install git 2.38 or newer"


@cache
def git_module() -> Any:
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    try:
        import git  # noqa: PLC0415  GitPython looks for the git program when it is imported
    except ImportError as error:  # git starts under the user's settings here, and some cannot be read
        said = re.search(r"(?:fatal|error): [^\n']*", str(error))
        raise GitMissing(f"{_MISSING}{f'; it says: {redact(said[0])}' if said else ''}") from error
    try:
        version = tuple(int(part) for part in re.findall(r"\d+", git.Git().execute(["git", "version"]))[:2])
    except (git.exc.GitCommandNotFound, git.exc.GitCommandError) as error:
        raise GitMissing(_MISSING) from error
    if version < OLDEST_GIT:
        version_text = ".".join(map(str, version))
        raise GitMissing(f"git {version_text} is too old; install git {'.'.join(map(str, OLDEST_GIT))} or newer")
    return git


def only(path: Path) -> dict[str, str]:
    """The environment in which git takes the repository at `path` and no other.

    Without it git searches the folders above where there is none, and a git hook that calls prchain names its own.
    """
    inside = path.absolute() / ".git"
    return {"GIT_DIR": str(inside if inside.exists() else inside.parent)}


_DYING_SECONDS = 2.0
"""Seconds that a git whose output has ended may take to end."""


class GitStream:
    """A running git process as a context manager; leaving it checks how the process ended, or ends it.

    Its standard input is `lines`, or the file `feed` from its beginning, or, where both are None, the pipe `input`. It
    has `local_environment` with the variables `own`, and `SETTINGS` with the settings `config`; it runs in the folder
    `place`, or where nothing is.
    """

    input: IO[bytes]
    _process: Any
    """A `subprocess.Popen`, all of whose streams are pipes but perhaps its input."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        lines: Iterable[str] | None = (),
        *,
        own: Mapping[str, str | None],
        config: Mapping[str, str] | None = None,
        fine: Collection[int] = (0,),
        feed: IO[bytes] | None = None,
        place: Path = NOWHERE,
    ) -> None:
        self._own = own
        self._fine = fine
        self._command = ["git", *options(config or {}), *arguments]
        self._verb = arguments[0]
        self._place = place
        self._input = feed
        if feed is None and lines is not None:
            self._input = tempfile.TemporaryFile()  # noqa: SIM115  closed on exit
            for line in lines:
                self._input.write(line.encode() + b"\n")
        if self._input is not None:
            self._input.seek(0)
        self._errors: list[bytes] = []

    def __enter__(self) -> BufferedReader:
        # GitPython ends the process when its wrapper is collected, so the wrapper is kept.
        stdin = subprocess.PIPE if self._input is None else self._input
        environment = local_environment(self._own)
        try:
            self._wrapper, self._process = self._spawn(environment, stdin)
        except BaseException:
            if self._input is not None:
                self._input.close()
            raise
        if self._input is None:
            self.input = self._process.stdin
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        output: BufferedReader = self._process.stdout
        _widen(output)
        return output

    def _spawn(self, environment: dict[str, str], stdin: Any) -> tuple[Any, Any]:
        """What keeps the process, and the process."""
        return _start(self._command, environment, self._place, stdin)

    def __exit__(self, kind: Any, _error: Any, _trace: Any) -> None:
        # A git that died leaves output that cannot be read: then its own words tell why, not the reader's.
        unread = kind is not None and issubclass(kind, GitError)
        if unread:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_DYING_SECONDS)
        alive = self._process.poll() is None
        if kind is not None:
            self._process.kill()
        if self._input is None:
            with contextlib.suppress(BrokenPipeError):
                self.input.close()
        self._process.stdout.close()
        status = self._process.wait()
        forget_child(self._process)
        self._drain.join()
        self._process.stderr.close()
        if self._input is not None:
            self._input.close()
        if (kind is None or (unread and not alive)) and status not in self._fine:
            raise git_failure(self._verb, b"".join(self._errors).decode("utf-8", "replace"), status)

    def _read_errors(self) -> None:
        kept_bytes = 0
        for line in self._process.stderr:
            if kept_bytes < 64_000:
                self._errors.append(line)
                kept_bytes += len(line)


def run_git(*arguments: str, place: Path, own: Mapping[str, str | None] | None = None, given: bytes = b"") -> bytes:
    """What git prints in the folder `place`, on standard input `given`; `own` as in `GitStream`. Raises `GitError`."""
    with tempfile.TemporaryFile() as feed:
        feed.write(given)
        with GitStream(arguments, own=own or {}, feed=feed, place=place) as output:
            return output.read()


def git_output(
    arguments: tuple[str, ...], environment: dict[str, str], place: Path, config: Mapping[str, str] | None = None
) -> str:
    """What a git command prints, without the last newline; `environment` is the whole of it.

    Raises GitPython's ``GitCommandError``, and `GitMissing`.
    """
    command = ["git", *options(config or {}), *arguments]
    _wrapper, process = _start(command, environment, place, subprocess.DEVNULL)
    try:
        output, errors = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        forget_child(process)
    text = output.decode("utf-8", "replace").removesuffix("\n")
    if process.returncode:
        raise git_module().exc.GitCommandError(command, process.returncode, errors, text)
    return text


def _start(
    command: list[str], environment: dict[str, str], place: Path, stdin: Any
) -> tuple[Any, subprocess.Popen[bytes]]:
    """GitPython's wrapper of a process, and the process; it ends the process when it is collected.

    GitPython does not start it itself: it can only add to the variables of our own process, and git heeds dozens.
    """
    wrapper = git_module().Git.AutoInterrupt

    def spawn() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=place, env=environment, stdin=stdin, stdout=pipe, stderr=pipe)

    try:
        process = start_child(spawn)
    except FileNotFoundError as error:
        if error.filename == command[0]:
            raise GitMissing(_MISSING) from error
        raise
    return wrapper(process, command), process


_NO_ROOM = "No space left on device|Disk quota exceeded"
_KILLED = (-signal.SIGKILL, -signal.SIGTERM)
"""Statuses of a process that somebody else ended; other signals are git's own failures."""


def git_failure(verb: str, errors: str, status: int) -> GitError:
    """The error for git's standard error and exit status, in one line without credentials.

    What ``git apply`` says is about the patch, which may name its paths after any failure: only a full disk is read
    from it, where the system's words end a line. Whether objects are missing is for `TreeStore.apply` to look up.
    """
    lines = [line for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    last = redact(telling[0].strip()) if telling else f"exit status {status}"
    patches = verb == "apply"
    if status in _KILLED:
        return GitKilled(f"git {verb} was killed by signal {-status}; run the command again")
    if re.search(rf": (?:{_NO_ROOM})$" if patches else _NO_ROOM, errors, re.M):
        return DiskFullGit(f"git {verb}: no room is left on the disk; make room and run the command again")
    if not patches and re.search(
        r"unable to read|(?:bad|invalid) object|missing|[cC]ould not read|not found|corrupt|bad tree",
        errors,
    ):
        return IncompleteRepository(f"git {verb}: {last}; objects are missing or damaged, fetch the repository anew")
    return GitError(f"git {verb}: {last}")


class DiskFullGit(GitError, DiskFull):
    """No room is left where a mirror lies; reported like a full disk anywhere else."""

    @property
    def name(self) -> str:
        """``disk_full``."""
        return "disk_full"


def _widen(output: BufferedReader) -> None:
    """Let git run ahead of us by a block instead of the usual 64 kB, where the system can do that."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # the system's allowance for wide pipes is used up
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, BLOCK)
