"""The addresses under which the web pages of pull requests, issues and commits stand."""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMBER = r"(?P<number>[1-9][0-9]{0,8})(?![0-9])"
COMMIT = r"(?P<sha>[0-9a-f]{7,40})"


@dataclass(frozen=True, slots=True)
class UrlForm:
    """How one host writes these addresses."""

    hints: tuple[str, ...]
    """A text without any of them holds no such address; most texts need no longer look."""
    pattern: re.Pattern[str]
    """Matches an address from its host on, without the scheme.

    Its groups: ``name`` (``owner/name``), ``number`` or ``sha``, and ``redirector``, which matches where the address
    leads there over a redirect.
    """
