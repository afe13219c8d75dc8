"""Git processes, started by GitPython, that do nothing but what they are asked for.

Repositories are hostile input: no hook, pager, filter, external diff or lazy fetch of theirs runs, and replace refs and
grafts are ignored.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterable
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from prchain.children import forget_child, start_child
from prchain.errors import DiskFull, GitError, GitMissing, IncompleteRepository
from prchain.git.output import BLOCK
from prchain.scrub import redact

OLDEST_GIT = (2, 38)
"""`git merge-tree --write-tree`, which later stages stand on, came with 2.38."""

ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "true",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

# A repository's own configuration can name programs to run; these settings outrank it.
SAFE_CONFIG = (
    "-c",
    "safe.directory=*",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.commitGraph=true",
    "-c",
    "core.quotePath=false",
    "-c",
    "diff.external=",
    "-c",
    "diff.renameLimit=1000",
    "-c",
    "diff.suppressBlankEmpty=false",
    "-c",
    "gc.auto=0",
    "-c",
    "log.showSignature=false",
    "-c",
    "log.mailmap=false",
    "-c",
    "protocol.ext.allow=never",
)

# Git before 2.39.4 does not know GIT_NO_LAZY_FETCH; it must not reach the remote that a partial clone names either.
NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none"}


@cache
def git_module() -> Any:
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git  # noqa: PLC0415  GitPython looks for the git program when it is imported

    try:
        version = tuple(int(part) for part in re.findall(r"\d+", git.Git().execute(["git", "version"]))[:2])
    except (git.exc.GitCommandNotFound, git.exc.GitCommandError) as error:
        raise GitMissing("git is not installed, or cannot be run; install git 2.38 or newer") from error
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

    Its standard input is `lines`, or the file `feed` from its beginning, or, where both are None, the pipe `input`.
    """

    input: IO[bytes]
    _process: Any
    """A `subprocess.Popen`, all of whose streams are pipes but perhaps its input."""

    def __init__(
        self,
        git: Any,
        environment: dict[str, str],
        arguments: tuple[str, ...],
        lines: Iterable[str] | None,
        fine: Collection[int] = (0,),
        feed: IO[bytes] | None = None,
    ) -> None:
        self._environment = environment
        self._fine = fine
        self._command = ["git", *SAFE_CONFIG, *arguments]
        self._verb = next((word for word in arguments if word[0] != "-" and "=" not in word), "")
        self._git = git
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
        self._wrapper, self._process = _start(self._git, self._command, self._environment, stdin)
        if self._input is None:
            self.input = self._process.stdin
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        output: BufferedReader = self._process.stdout
        _widen(output)
        return output

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


def git_output(git: Any, command: list[str], environment: dict[str, str]) -> str:
    """What a git command prints, without the last newline. Raises GitPython's ``GitCommandError``."""
    _wrapper, process = _start(git, command, environment, None)
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
    git: Any, command: list[str], environment: dict[str, str], stdin: Any
) -> tuple[Any, subprocess.Popen[bytes]]:
    """GitPython's wrapper of a process, and the process; it ends the process when it is collected."""
    wrappers: list[Any] = []

    def spawn() -> subprocess.Popen[bytes]:
        wrappers.append(git.execute(command, istream=stdin, as_process=True, env=environment))
        process: subprocess.Popen[bytes] = wrappers[0].proc
        return process

    process = start_child(spawn)
    return wrappers[0], process


def git_failure(verb: str, errors: str, status: int) -> GitError:
    """The error for git's standard error and exit status, in one line without credentials."""
    lines = [line for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
    last = redact(telling[0].strip()) if telling else f"exit status {status}"
    if re.search(r"No space left on device|Disk quota exceeded", errors):
        return DiskFullGit(f"git {verb}: no room is left on the disk; make room and run the command again")
    if re.search(
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
