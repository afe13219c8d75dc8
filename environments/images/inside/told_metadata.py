"""Tells uv what a package needs whose metadata it cannot read (``pytz (>=2011k)``), as pip of the time could:
``told_metadata.py OUTPUT CONFIG...`` takes the packages from what uv printed, downloads each with pip, and adds them to
uv's configurations. Exit status 1 where there is nothing to tell.

https://docs.astral.sh/uv/reference/settings/#dependency-metadata
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from typing import List, Tuple

_UNREAD = re.compile(r"Metadata for `([A-Za-z0-9._-]{1,100})` \(v([A-Za-z0-9.+!_-]{1,60})\) could not be parsed")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?$")
_CLAUSE = re.compile(r"^(?:==|!=|<=|>=|~=|<|>)\s*v?\d+(?:\.\d+)*(?:\.\*|(?:[._-]?(?:a|b|c|rc|post|dev)\d*)*)$")


def unread(output: str) -> List[Tuple[str, str]]:
    """The names and versions of the packages whose metadata uv could not read."""
    return sorted(set(_UNREAD.findall(output)))


def mended(requirement: str) -> str:
    """A requirement without those of its clauses that are no versions of PEP 440; empty for what is none at all."""
    found = _REQUIREMENT.match(requirement.strip())
    if found is None:
        return ""
    name, extras, clauses, marker = found.groups()
    kept = [clause.strip() for clause in clauses.split(",") if _CLAUSE.match(clause.strip())]
    return "{}{}{}{}".format(name, extras or "", ",".join(kept), " " + marker if marker else "")


def requirements(metadata: str) -> List[str]:
    """What a text of metadata requires, mended."""
    head = metadata.replace("\r\n", "\n").partition("\n\n")[0]
    lines = [line for line in head.splitlines() if line.lower().startswith("requires-dist:")]
    return [line for line in (mended(line.partition(":")[2]) for line in lines) if line]


def entry(name: str, version: str, lines: List[str]) -> str:
    """The part of a configuration that tells it."""
    listed = ", ".join(json.dumps(line) for line in lines)
    return f'\n[[dependency-metadata]]\nname = "{name}"\nversion = "{version}"\nrequires-dist = [{listed}]\n'


def _metadata(name: str, version: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.call([*pip, "--dest", folder, f"{name}=={version}"])
        for wheel in glob.glob(os.path.join(glob.escape(folder), "*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for path in archive.namelist():
                    if re.match(r"^[^/]+\.dist-info/METADATA$", path):
                        return archive.read(path).decode("utf-8", "replace")
    return ""


def main(output: str, configurations: List[str]) -> bool:
    """Tell uv what it could not read; whether there was anything."""
    with open(output, encoding="utf-8", errors="replace") as file:
        texts = [(name, version, _metadata(name, version)) for name, version in unread(file.read())]
    told = [entry(name, version, requirements(text)) for name, version, text in texts if text]
    for path in configurations:
        with open(path, encoding="utf-8") as file:
            known = file.read()
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(known + "".join(told))
        os.replace(path + ".new", path)  # the folder is everybody's, the file is root's
    return bool(told)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1], sys.argv[2:]) else 1)
