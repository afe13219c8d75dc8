"""Values to the bytes of pages: cleaned, then written."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

from prchain.view import html
from prchain.view.places import slug
from prchain.view.texts import Cleaner


class PageWriter:
    """Writes the pages of one view. `forms`: they may hold a form; `exported`: there are pages of an export."""

    def __init__(self, clean: Cleaner, *, forms: bool, exported: bool) -> None:
        self._clean = clean
        self._forms = forms
        self._exported = exported

    def page(self, template: str, path: str, **values: Any) -> bytes:
        """The page at `path` of a template."""
        clean = {name: self._clean.value(value) for name, value in values.items()}
        return html.page(template, path, clean, forms=self._forms, exported=self._exported)

    def text(self, text: str | None) -> bytes | None:
        """A text to read."""
        return None if text is None else self._clean.text(text).encode("utf-8", "replace")

    def script(self, data: Any) -> bytes:
        """Data as a script: JSON, packed, as a text that needs no escapes. The same data gives the same bytes."""
        text = json.dumps(self._clean.value(data), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        packed = base64.b64encode(gzip.compress(text, 6, mtime=0))
        return b'prchainData("' + packed + b'");\n'


def after_page(key: str) -> str:
    """The page of a list that begins after this key."""
    return f"after-{slug(key)}.html"


def key_of(name: str) -> str | None:
    """The key, or its slug, of a name of `after_page`; None for any other name."""
    found = re.fullmatch(r"after-([A-Za-z0-9_-]+)\.html", name)
    return found[1] if found else None
