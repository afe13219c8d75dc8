"""The list of repositories to mine: one a line, `#` starts a comment.

owner/name
https://github.com/owner/name.git
owner/name = ../mirrors/name.git
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from prchain.core.errors import RepositoryListError
from prchain.core.git import is_clone_url
from prchain.core.secrets.scrub import redact

_SLUG = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,98})/([A-Za-z0-9_.-]{1,100})")
_HOST = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*)"
_URL = re.compile(rf"(?i:https?|ssh|git)://(?:[^/@\s\"'<>\\]+@)?{_HOST}(?::\d{{1,5}})?(?P<path>/[^\s?#\\]+)")
_FILE_URL = re.compile(rf"(?i:file)://{_HOST}?(?P<path>/[^\s?#\\]+)")
_SCP = re.compile(rf"[A-Za-z0-9_.-]+@{_HOST}:(?P<path>[^\s\\]+)")
_CREDENTIALS = re.compile(r"(?<=://).*@|[^\s/=]+:(?!//)\S*@|(?<=\?).*")
"""Where credentials may be in a line that cannot be parsed: rather too much of it than too little."""
_SHOWN = 200
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class RepositorySpec:
    """One line of the list."""

    host: str
    owner: str
    name: str
    location: str
    """A path to a repository on this machine, or a clone URL."""
    is_path: bool
    text: str
    """The line, without credentials."""

    @property
    def full_name(self) -> str:
        """``owner/name``."""
        return f"{self.owner}/{self.name}"

    @property
    def key(self) -> str:
        """``owner/name``, as what a run works on (`prchain.core.runs.Unit`)."""
        return self.full_name

    @property
    def group(self) -> str:
        """Host and name: repositories share no fault of their own."""
        return f"{self.host}/{self.full_name}"


def read_list(path: Path, host: str) -> list[RepositorySpec]:
    """The repositories of the list at `path`; relative paths in it are relative to its folder.

    `host` is where a bare ``owner/name`` lives. Raises `RepositoryListError` with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RepositoryListError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RepositoryListError(f"{path} is not UTF-8 text") from error
    specs: dict[tuple[str, str], RepositorySpec] = {}
    for number, line in enumerate(text.split("\n"), 1):
        entry = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        if not entry:
            continue
        try:
            spec = parse_entry(entry, host, path.parent)
        except ValueError as error:
            raise RepositoryListError(f"{path}:{number}: {error}") from None
        listed = specs.setdefault((spec.host, spec.full_name.lower()), spec)
        if _plain(listed.location) != _plain(spec.location):
            raise RepositoryListError(f"{path}:{number}: {spec.full_name} is listed twice, with different sources")
    if not specs:
        raise RepositoryListError(f"{path} lists no repository; write one owner/name a line")
    return list(specs.values())


def parse_entry(entry: str, host: str, folder: Path) -> RepositorySpec:
    """One entry as a spec; raises ValueError that says what is wrong with it."""
    excerpt = redact(_CREDENTIALS.sub("", entry[:_SHOWN]))
    if _CONTROL.search(entry):
        raise ValueError(f"{excerpt!r} holds control characters")
    slug, equals, source = (part.strip() for part in entry.partition("="))
    if equals and (match := _slug(slug)):
        owner, name = match
        if not source:
            raise ValueError(f"{excerpt!r} names no path or URL after the '='")
        if url := _clone_url(source):
            return RepositorySpec(_host_of(url) or host, owner, name, source, False, redact(entry))
        if "://" in source or "::" in source:
            raise ValueError(f"{excerpt!r} is no URL that git may fetch (http, https, ssh, git, file)")
        return RepositorySpec(host, owner, name, str(_path(source, folder)), True, redact(entry))
    if match := _slug(entry):
        owner, name = match
        return RepositorySpec(host, owner, name, f"https://{host}/{owner}/{name}.git", False, redact(entry))
    if url := _clone_url(entry):
        parts = [part for part in url["path"].split("/") if part]
        # Below the own host there are pages too, such as owner/name/pull/1; elsewhere groups may be nested.
        is_page = _host_of(url) == host and len(parts) > 2
        if not is_page and (match := _slug("/".join(parts[-2:]))):
            owner, name = match
            return RepositorySpec(_host_of(url) or host, owner, name, entry, False, redact(entry))
    raise ValueError(f"{excerpt!r} is not owner/name, a clone URL, or owner/name = path or URL")


def _plain(location: str) -> str:
    return location.removesuffix("/").removesuffix(".git").lower()


def _slug(text: str) -> tuple[str, str] | None:
    match = _SLUG.fullmatch(text.removesuffix(".git"))
    if match is None or match[2] in {".", ".."}:
        return None
    return match[1], match[2]


def _clone_url(text: str) -> re.Match[str] | None:
    """The parts of a URL that git may fetch and whose host can name a folder; None for anything else."""
    if not is_clone_url(text):
        return None
    return _URL.fullmatch(text) or _FILE_URL.fullmatch(text) or _SCP.fullmatch(text)


def _host_of(url: re.Match[str]) -> str | None:
    return url["host"].lower() if url["host"] else None


def _path(source: str, folder: Path) -> Path:
    try:
        path = Path(source).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no user for the ~ of {source!r}") from None
    return path if path.is_absolute() else folder / path
