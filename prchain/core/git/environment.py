"""Under which variables and settings every git of ours runs.

Git takes settings from the system, the user, the environment and the repository's folder (git-config(1), "FILES" and
"ENVIRONMENT"), and attributes from the system, the user and that folder (gitattributes(5)); git(1) lists variables that
change what it prints. None of them decides what we read: that depends on the objects of a repository and on its refs.
Only what talks to a remote keeps what a user has set, since credentials, proxies and other addresses are there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "true",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

_NOBODYS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    # Git before 2.39.4 does not know GIT_NO_LAZY_FETCH; it must not reach the remote that a partial clone names either.
    "GIT_ALLOW_PROTOCOL": "none",
}

SETTINGS = {
    # Outranks $XDG_CONFIG_HOME/git/attributes and git/ignore, which are read without any setting.
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    # A repository's own configuration can name programs to run; these outrank it.
    "safe.directory": "*",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.commitGraph": "true",
    "core.quotePath": "false",
    "diff.external": "",
    "diff.renameLimit": "1000",
    "diff.suppressBlankEmpty": "false",
    "gc.auto": "0",
    "log.showSignature": "false",
    "log.mailmap": "false",
    "protocol.ext.allow": "never",
}

_PROGRAMS = "GIT_EXEC_PATH"
"""Where the programs of a git lie that was not installed for the whole system."""

_FOR_A_REMOTE = (
    "GIT_ALLOW_PROTOCOL",
    "GIT_CONFIG_",
    "GIT_CURL_",
    "GIT_HTTP_",
    "GIT_PROTOCOL",
    "GIT_PROXY_",
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_TRACE",
    _PROGRAMS,
)
"""How the variables begin that say how to reach a remote."""


def local_environment(own: Mapping[str, str | None]) -> dict[str, str]:
    """The whole environment of a git that reads or writes on this machine: nobody's settings, and `own` variables, of
    which those that are None are not set."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name == _PROGRAMS}
    variables = {**inherited, **ENVIRONMENT, **_NOBODYS, **own}
    return {name: value for name, value in variables.items() if value is not None}


def remote_environment(own: Mapping[str, str], secret: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a git that talks to a remote, as the user has set it up.

    `secret` are settings that no list of processes may show; they are added to those that the environment has.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_FOR_A_REMOTE)
    }
    count = kept.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    for place, (name, value) in enumerate(secret.items(), first):
        kept |= {f"GIT_CONFIG_KEY_{place}": name, f"GIT_CONFIG_VALUE_{place}": value}
    if secret:
        kept["GIT_CONFIG_COUNT"] = str(first + len(secret))
    return {**kept, **ENVIRONMENT, **own}


def options(settings: Mapping[str, str]) -> list[str]:
    """Git's options for `SETTINGS` and others, which outrank the former."""
    return [word for name, value in {**SETTINGS, **settings}.items() for word in ("-c", f"{name}={value}")]


def objects_only(objects: Path, object_format: str) -> dict[str, str]:
    """The variables under which git finds the objects in a folder, and nothing of the repository that they are of.

    It takes a folder of ours as the repository, which has no ref, attributes, grafts or settings but `object_format`
    (``sha1`` or ``sha256``). A name of an object is then its id.
    """
    return {"GIT_DIR": str(NOWHERE / object_format), "GIT_OBJECT_DIRECTORY": str(objects)}


NOWHERE = Path(__file__).with_name("objects_only")
"""Folders that git takes for empty repositories, one for each object format."""
