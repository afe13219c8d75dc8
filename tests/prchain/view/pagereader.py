"""Reads pages as a browser does: their links, their texts, and what they would load or run."""

from __future__ import annotations

import base64
import gzip
import json
import posixpath
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class ReadPage(HTMLParser):
    """One page."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        self.attributes.update(given)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a":
            self.links.append(str(given.get("href")))
        if tag in {"script", "img"}:
            self.loads.append(str(given.get("src")))
        if tag == "link":
            self.loads.append(str(given.get("href")))

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(body: bytes) -> ReadPage:
    """A page from its bytes."""
    page = ReadPage()
    page.feed(body.decode())
    page.close()
    return page


def target(page: str, link: str) -> str:
    """The path that a relative link of a page leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(urlsplit(link).path)))


def data_of(script: bytes) -> Any:
    """What the script with a trajectory's data holds."""
    packed = script.decode().removeprefix('prchainData("').removesuffix('");\n')
    return json.loads(gzip.decompress(base64.b64decode(packed)))
