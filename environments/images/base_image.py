"""A base image made where no image registry can be reached: Debian by debootstrap, from the mirror that apt knows.

Where a registry can be reached, set `environments_base_image` to one of its images instead.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from environments.images.buildlogs import decisive_lines
from environments.sandboxes.engine import BASE_LABEL, engine_failures, engine_words
from prchain.core.errors import BuildFailed, UsageError
from prchain.core.secrets.scrub import redact

NAME = "prchain-base:bookworm"

SUITE = "bookworm"

PACKAGES = ("git", "python3", "python3-venv", "python3-dev", "build-essential", "procps", "patch", "ca-certificates")
"""What every recipe needs; Debian's essential packages have neither git nor ps."""

USER = "agent"

_LEFT_OUT = (
    "proc/*",
    "sys/*",
    "dev/*",
    "tmp/*",
    "var/cache/apt/*",
    "var/lib/apt/lists/*",
    "var/log/*",
    "var/cache/debconf/*-old",
    "usr/share/doc/*",
    "usr/share/man/*",
    "usr/share/info/*",
    "usr/share/locale/*",
)

_LONGEST = 1800
"""Seconds that debootstrap may take; it takes one to two minutes with a near mirror."""


@dataclass(frozen=True, slots=True)
class AptSource:
    """One suite that apt may install from."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None


def apt_sources(text: str) -> list[AptSource]:
    """The binary package sources of a file below /etc/apt, in either format that sources.list(5) describes."""
    if any(line.split("#")[0].strip().lower().startswith("types:") for line in text.splitlines()):
        return [source for paragraph in _paragraphs(text) for source in _deb822(paragraph)]
    return [source for line in text.splitlines() for source in _one_line(line)]


def read_apt_sources(folder: Path = Path("/etc/apt")) -> list[AptSource]:
    """The sources of the machine's apt configuration, in apt's order; files that cannot be read are left out."""
    files = [folder / "sources.list"]
    with contextlib.suppress(OSError):
        files += sorted(path for path in (folder / "sources.list.d").iterdir() if path.suffix in {".list", ".sources"})
    found = []
    for file in files:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found += apt_sources(file.read_text())
    return found


def choose_sources(sources: Iterable[AptSource], suite: str) -> list[AptSource]:
    """The source of the suite itself, first, and those of its updates and security fixes. Of a suite that apt does not
    use, the mirror of the first one that it does: mirrors hold several releases. Empty where apt uses none."""
    all_sources = [source for source in sources if "main" in source.components]
    own = [source for source in all_sources if source.suite == suite]
    if not own:
        whole = [source for source in all_sources if "-" not in source.suite]
        return [replace(source, suite=suite, components=("main",)) for source in whole[:1]]
    return [*own[:1], *(source for source in all_sources if source.suite in {f"{suite}-updates", f"{suite}-security"})]


def make_base_image(engine: Any, name: str = NAME, *, suite: str = SUITE, mirror: str | None = None) -> str:
    """Make the image `name` and return its id; `engine` is a `docker.DockerClient`.

    `mirror` is the URL of a Debian mirror; without it the one of this machine's apt. Raises `UsageError` without
    root, debootstrap or a mirror, `BuildFailed` where debootstrap fails, `EngineUnavailable`.
    """
    if not re.fullmatch("[a-z]+", suite):
        raise UsageError(f"{suite!r} is no release of Debian, as bullseye is")
    if os.geteuid() != 0:
        raise UsageError("debootstrap needs root; run the command as root")
    if shutil.which("debootstrap") is None:
        raise UsageError("debootstrap is not installed; install Debian's package of that name")
    sources = [AptSource(mirror, suite, ("main",))] if mirror else choose_sources(read_apt_sources(), suite)
    if not sources:
        raise UsageError("apt on this machine knows no mirror; give one with --mirror")
    # Below /var/tmp: /tmp is often in memory, and may be mounted without devices.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="prchain-base-") as folder:
        root = Path(folder) / "root"
        _debootstrap(root, sources[0], suite)
        _finish(root, sources)
        return _import(engine, root, name, suite)


def _debootstrap(root: Path, source: AptSource, suite: str) -> None:
    keyring = [f"--keyring={source.signed_by}"] if source.signed_by and source.signed_by.startswith("/") else []
    include = ",".join(PACKAGES)
    _run("debootstrap", "--variant=minbase", f"--include={include}", *keyring, suite, str(root), source.uri)


def _finish(root: Path, sources: Iterable[AptSource]) -> None:
    lines = [f"deb {source.uri} {source.suite} {' '.join(source.components)}\n" for source in sources]
    (root / "etc/apt/sources.list").write_text("".join(lines))
    (root / "etc/dpkg/dpkg.cfg.d/prchain").write_text(
        "".join(f"path-exclude=/{pattern}\n" for pattern in _LEFT_OUT if pattern.startswith("usr/share/"))
    )
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")  # no service starts in a container
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    _run("chroot", str(root), "useradd", "--create-home", "--uid", "1000", "--shell", "/bin/bash", USER)
    _run("chroot", str(root), "install", "-d", "-o", USER, "-g", USER, "/testbed", "/opt/env")


def _import(engine: Any, root: Path, name: str, suite: str) -> str:
    repository, _, tag = name.partition(":")
    excluded = [f"--exclude=./{pattern}" for pattern in _LEFT_OUT]
    # debootstrap leaves /proc and /sys mounted when it is killed; one file system keeps them out of the archive.
    command = ["tar", "--one-file-system", "--numeric-owner", *excluded, "-C", str(root), "-c", "."]
    with engine_failures(), subprocess.Popen(command, stdout=subprocess.PIPE) as tar:
        answer = engine.api.import_image_from_stream(
            tar.stdout,
            repository=repository,
            tag=tag or "latest",
            changes=['CMD ["/bin/bash"]', f"LABEL {BASE_LABEL}={shlex.quote(suite)}", "ENV LANG=C.UTF-8"],
        )
    if tar.returncode != 0:
        raise BuildFailed("the base image could not be packed; is the disk full?")
    image_ids = [line for line in engine_words(answer) if line.startswith("sha256:")]
    return image_ids[-1] if image_ids else str(engine.images.get(name).id)


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        result = subprocess.run(command, capture_output=True, env=environment, timeout=_LONGEST, check=False)
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{command[0]} took longer than {_LONGEST} s") from None
    if result.returncode != 0:
        log = redact((result.stdout + result.stderr).decode("utf-8", "replace"))
        lines = decisive_lines(log)
        raise BuildFailed(
            f"{command[0]} failed: {lines[-1] if lines else result.returncode}", step=command[0], lines=lines
        )


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    last = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, ""
        elif line[0].isspace():
            fields[last] = f"{fields.get(last, '')} {line.strip()}"
        else:
            last, _, value = line.partition(":")
            last = last.strip().lower()
            fields[last] = value.strip()


def _deb822(fields: dict[str, str]) -> Iterator[AptSource]:
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false"}:
        return
    signed_by = fields.get("signed-by") or None
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield AptSource(uri, suite, tuple(fields.get("components", "").split()), signed_by)


def _one_line(line: str) -> Iterator[AptSource]:
    kind, _, rest = line.split("#", maxsplit=1)[0].strip().partition(" ")
    rest = rest.strip()
    if kind != "deb":
        return
    options = ""
    if rest.startswith("["):
        options, _, rest = rest[1:].partition("]")
    words = rest.split()
    if len(words) >= 2:
        signed = [option.partition("=")[2] for option in options.split() if option.startswith("signed-by=")]
        yield AptSource(words[0], words[1], tuple(words[2:]), signed[0] if signed else None)
