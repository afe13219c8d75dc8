"""What detect-secrets finds in scrubbed texts. It runs in an environment of its own; prchain does not depend on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from research.secrets.texts import Text

_LONGEST_LINE = 2000

_PROGRAM = """
import json, sys
from detect_secrets.core.scan import scan_line
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.settings import transient_settings
names = sorted(kind.__name__ for kind in get_mapping_from_secret_type_to_class().values())
wanted = [name for name in names if not name.endswith("HighEntropyString") and "IPPublic" not in name]
with transient_settings({"plugins_used": [{"name": name} for name in wanted]}):
    for line in sys.stdin:
        for found in scan_line(json.loads(line)):
            print(json.dumps([found.type, found.secret_value, json.loads(line)]), flush=True)
"""
"""All its detectors but those of entropy alone, which take every hash, and that of addresses."""


class Missed(NamedTuple):
    """A line in which the other detector finds what scrubbing has left."""

    kind: str
    secret: str
    line: str


def missed(python: str, texts: Iterable[Text]) -> Iterator[Missed]:
    """What detect-secrets, a package of the interpreter `python`, finds in each different line of the texts.

    Lines of more than 2,000 characters are left out. Raises `OSError` and `subprocess.CalledProcessError`.
    """
    lines = {
        line: None
        for text in texts
        for line in text.text.split("\n")
        if len(line) <= _LONGEST_LINE and line.strip("+-# \t")
    }
    given = "".join(f"{json.dumps(line)}\n" for line in lines)
    done = subprocess.run([python, "-c", _PROGRAM], input=given, stdout=subprocess.PIPE, text=True, check=True)
    for found in done.stdout.splitlines():
        yield Missed(*json.loads(found))
