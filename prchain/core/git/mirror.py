"""Mirrors: bare repositories of our own that follow a remote's branches, tags and other refs that are wanted."""

from __future__ import annotations

import base64
import fcntl
import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from prchain.core.errors import CloneFailed, DiskFull, NotARepository, no_room
from prchain.core.git.environment import local_environment, remote_environment
from prchain.core.git.process import git_failure, git_module, git_output
from prchain.core.git.repository import GitRepository
from prchain.core.secrets.scrub import redact

log = logging.getLogger(__name__)

_ALLOWED_URL = re.compile(
    r"(?i)^(?:https?|ssh|git|file)://[^-\s][^\s]*$|^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^-\s]\S*$"
)

_REFS = ("refs/heads/*", "refs/tags/*")

_FETCHED = ("--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")

# A connection over which nothing has come for a minute is dead.
_PATIENCE = {"http.lowSpeedLimit": "1", "http.lowSpeedTime": "60"}

# The branch that a mirror's HEAD names where the remote names none; `miner.git_facts` falls back to it first.
_FALLBACK = {"init.defaultBranch": "main"}

_UNREACHABLE = re.compile(
    r"Could not resolve host|Failed to connect|Connection (?:refused|timed out|reset)|Network is unreachable"
    r"|Could not connect|Operation too slow|Temporary failure in name resolution"
)
_REFUSED = re.compile(
    r"Repository not found|repository '[^']*' not found|could not read Username|Authentication failed"
    r"|returned error: 40[134]|Permission denied|does not appear to be a git repository|not a git repository"
)


def is_clone_url(text: str) -> bool:
    """Whether `text` is a URL (http, https, ssh, git, file, or user@host:path) that may be handed to git."""
    return bool(_ALLOWED_URL.match(text))


def mirror_path(mirrors: Path, host: str, full_name: str) -> Path:
    """The path of a repository's mirror below the folder of mirrors."""
    return mirrors / host / f"{full_name.lower()}.git"


def open_mined(location: str, mirrors: Path, host: str, full_name: str) -> GitRepository:
    """The git repository that was mined: where `location` names a path, that one, else our mirror of it.

    Nothing is fetched. Raises `NotARepository`, which says what to do, or `GitMissing`.
    """
    path = mirror_path(mirrors, host, full_name) if is_clone_url(location) else Path(location)
    if not path.exists():
        raise NotARepository(f"{full_name} was mined from {path}, which is gone; mine it again, or put it back there")
    return GitRepository.open(path)


def update_mirror(url: str, path: Path, *, refs: Sequence[str] = (), credentials: str | None = None) -> GitRepository:
    """Clone `url` into the bare mirror at `path`, or fetch what is new there: branches, tags and `refs`.

    `refs` are patterns of git's, with a ``*``. The credentials of an http(s) URL, or else, over https, `credentials`
    (``user:password``), are sent as a header; they are neither written to the mirror's
    configuration nor visible in the list of processes. The remote is asked as the user has set git up (credentials,
    proxies, ``insteadOf``); the mirror itself has nothing of that. What a killed fetch left behind is cleared away
    first. Raises `CloneFailed`, `DiskFull`, `GitMissing`.
    """
    git = git_module()
    bare_url, own_credentials = _without_credentials(url)
    if own_credentials is None and bare_url.lower().startswith("https://"):
        own_credentials = credentials
    own = {"GIT_DIR": str(path.absolute())}
    local, remote = local_environment(own), remote_environment(own, _header(own_credentials))
    try:
        path.mkdir(parents=True, exist_ok=True)
        wanted = [f"+{pattern}:{pattern}" for pattern in (*_REFS, *refs)]
        started = time.monotonic()
        with _locked(path):
            is_new = not (path / "HEAD").exists()
            log.info("%s %s ...", "cloning" if is_new else "fetching", redact(bare_url))
            # This changes nothing on an existing mirror, and repairs one whose creation was cut off.
            git_output(("init", "--bare", "--quiet", "--template="), local, path, _FALLBACK)
            git_output(("fetch", *_FETCHED, bare_url, *wanted), remote, path, _PATIENCE)
            named = git_output(("ls-remote", "--symref", bare_url, "HEAD"), remote, path, _PATIENCE)
            head = re.match(r"ref: (refs/heads/\S+)\tHEAD", named)
            if head:
                git_output(("symbolic-ref", "HEAD", head.group(1)), local, path)
        log.info("%s is up to date after %.1f s", redact(bare_url), time.monotonic() - started)
    except git.exc.GitCommandError as error:
        secrets = (credentials, (credentials or "").partition(":")[2], own_credentials)
        raise _failure(bare_url, error, tuple(filter(None, secrets))) from None
    except OSError as error:
        if full := no_room(error, path):
            raise full from error
        raise CloneFailed(f"the mirror at {path} cannot be written: {error.strerror}") from error
    return GitRepository.open(path)


def _without_credentials(url: str) -> tuple[str, str | None]:
    """An http(s) URL without its user and password, and these as ``user:password``; other URLs as they are."""
    if not url.lower().startswith(("http://", "https://")):
        return url, None
    parts = urlsplit(url)
    if not parts.username and not parts.password:
        return url, None
    host = parts.netloc.rpartition("@")[2]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return urlunsplit(parts._replace(netloc=host)), f"{user}:{password}"


def _header(credentials: str | None) -> dict[str, str]:
    if credentials is None:
        return {}
    basic = base64.b64encode(credentials.encode()).decode()
    return {"http.extraHeader": f"Authorization: Basic {basic}"}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a mirror against other prchain processes; remove the lock files that a killed git left there."""
    with (path / "prchain.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("waiting for another prchain that works on the mirror %s", path)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for stale_lock in [*path.glob("*.lock"), *path.glob("refs/**/*.lock")]:
            if stale_lock.name != "prchain.lock":
                stale_lock.unlink(missing_ok=True)
        yield


def _failure(url: str, error: Any, secrets: tuple[str, ...]) -> CloneFailed | DiskFull:
    stderr = str(error.stderr).strip().removeprefix("stderr:").strip(" '")
    cause = git_failure("fetch", stderr, error.status)
    if isinstance(cause, DiskFull):
        return cause
    safe_url = redact(url, secrets)
    lines = [line for line in stderr.splitlines() if line.startswith(("fatal:", "error:", "remote:"))] or [stderr]
    last = redact(" ".join(lines), (*secrets, *map(quote, secrets)))[:300]
    if _UNREACHABLE.search(stderr):
        return CloneFailed(f"{safe_url} cannot be reached; is there a network? ({last})")
    if _REFUSED.search(stderr):
        return CloneFailed(f"{safe_url} does not exist, or is private and needs a token ({last})")
    return CloneFailed(f"{safe_url} could not be fetched: {last}")
