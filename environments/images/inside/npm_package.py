"""Fetches one package from npm's registry into a folder; runs in the container of a build, which has no npm yet.

    python3 npm_package.py PACKAGE VERSION FOLDER
    python3 npm_package.py PACKAGE

VERSION is exact, or the beginning of one (``18``), of which the newest release is taken. Without one the registry is
only asked whether it has the package, and answered is ``undated`` where it does not tell when releases came out. It is
the one that npm would ask: ``npm_config_registry``, or npm's default. What it gives is held against the digest that it
names; only regular files are unpacked.

For Python 3.6 and newer.
"""

import base64
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, List, NoReturn

_DEFAULT = "https://registry.npmjs.org"
_LONGEST = 60.0
_TRIES = 3


def main(arguments: List[str]) -> int:
    """Fetch what the arguments name; says which version that was."""
    package = arguments[0]
    settings = {name.lower(): value for name, value in os.environ.items()}
    registry = (settings.get("npm_config_registry") or _DEFAULT).rstrip("/")
    about = json.loads(_get(f"{registry}/{package.replace('/', '%2f')}").decode("utf-8"))
    if len(arguments) == 1:
        if not is_dated(about):
            print("undated")
        return 0
    version, folder = arguments[1:]
    found = choose(about, version)
    if not found:
        _fail(f"the registry has no {package} {version}")
    dist = about["versions"][found]["dist"]
    content = _get(urllib.parse.urljoin(f"{registry}/", dist["tarball"]))
    if not is_whole(content, dist):
        _fail(f"{package} {found} is not what the registry says that it is")
    unpack(content, folder)
    print(f"{package} {found}")
    return 0


def is_dated(about: Dict[str, Any]) -> bool:
    """Whether the registry tells when releases came out: a copy of another one may tell the days of its own copying, by
    which nothing of before could be had. npm 2 came out in 2014, and is asked for it."""
    said = about.get("time")
    if not isinstance(said, dict):
        return False
    return about.get("name") != "npm" or str(said.get("2.0.0", "")) < "2018"


def choose(about: Dict[str, Any], version: str) -> str:
    """The newest version that begins so; "" without any."""
    known = about.get("versions", {})
    if version in known:
        return version
    released = [it for it in known if it.startswith(f"{version}.") and re.match(r"\d+\.\d+\.\d+$", it)]
    return max(released, key=lambda it: [int(part) for part in it.split(".")], default="")


def is_whole(content: bytes, dist: Dict[str, str]) -> bool:
    """Whether a tarball is the one that the registry describes, by its strongest digest."""
    for word in sorted(str(dist.get("integrity", "")).split(), reverse=True):
        kind, _, digest = word.partition("-")
        if kind in ("sha512", "sha384", "sha256"):
            return base64.b64encode(hashlib.new(kind, content).digest()).decode() == digest
    return hashlib.sha1(content).hexdigest() == dist.get("shasum")  # old packages have no other


def unpack(content: bytes, folder: str) -> None:
    """Write the regular files of a package below a folder, without the folder that all of them lie in."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        for entry in tar:
            parts = [part for part in entry.name.split("/") if part not in ("", ".")][1:]
            if not entry.isreg() or not parts or ".." in parts:
                continue
            path = os.path.join(folder, *parts)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            read = tar.extractfile(entry)
            with open(path, "wb") as file:
                file.write(read.read() if read else b"")
            os.chmod(path, 0o755 if entry.mode & 0o100 else 0o644)


def _get(url: str) -> bytes:
    said = ""
    for _ in range(_TRIES):
        try:
            with urllib.request.urlopen(url, timeout=_LONGEST) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            said = f"HTTP {error.code} {error.reason}"
            if error.code < 500 and error.code != 429:
                break
        except OSError as error:
            said = str(getattr(error, "reason", error))
    _fail(f"the registry of npm refuses {urllib.parse.urlsplit(url).path}: {said}")


def _fail(words: str) -> NoReturn:
    print(f"error: {words}")
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
