"""How answers come over the wire: within one time limit as a whole, and from where a redirect leads, query included.

The limit of requests is for one packet: a body that drips is never late for it. PyGithub follows a redirect of a
renamed repository without the query, and so reads another list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from github import Github
from requests.adapters import HTTPAdapter

PIECE = 2**16
MOVED = frozenset({301, 307, 308})
MAX_REDIRECTS = 3


def mend(client: Github, seconds: float, on_redirect: Callable[[], None]) -> None:
    """Let this client follow redirects rightly, and any answer fail as ``requests.ReadTimeout`` that is not whole after
    so many seconds. `on_redirect` is told of each request that a redirect adds.

    PyGithub makes its connection when it first sends, and takes no adapter; hence its private name for the class of
    connections (`Requester.injectConnectionClasses` would change all clients, and end keep-alive).
    """
    requester: Any = client.requester
    make = requester._Requester__connectionClass

    def connect(*arguments: Any, **options: Any) -> Any:
        connection = make(*arguments, **options)
        connection.session.mount(f"{connection.protocol}://", GitHubAdapter(seconds, on_redirect))
        return connection

    requester._Requester__connectionClass = connect


class GitHubAdapter(HTTPAdapter):
    """Sends as requests does; from the first byte sent to the last received, each answer has one limit."""

    def __init__(self, seconds: float, on_redirect: Callable[[], None]) -> None:
        super().__init__()
        self._seconds = seconds
        self._on_redirect = on_redirect
        self._ends = 0.0

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        """See `HTTPAdapter.send`. Redirects are followed on the same host only: elsewhere the token would leak."""
        self._ends = time.monotonic() + self._seconds
        response = super().send(request, *arguments, **options)
        for _ in range(MAX_REDIRECTS):
            target = urljoin(str(request.url), response.headers.get("location", ""))
            if response.status_code not in MOVED or urlsplit(target)[:2] != urlsplit(str(request.url))[:2]:
                break
            response.close()
            request = request.copy()
            request.url = target
            self._on_redirect()
            response = super().send(request, *arguments, **options)
        return response

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """See `HTTPAdapter.build_response`; the body is then read piece by piece as it comes."""
        response = super().build_response(req, resp)
        resp.stream = lambda amt=PIECE, decode_content=None: self._pieces(resp, decode_content)
        return response

    def _pieces(self, raw: Any, decode_content: bool | None) -> Iterator[bytes]:
        while True:
            left = self._ends - time.monotonic()
            if left <= 0:
                raise requests.exceptions.ReadTimeout(f"the answer was not whole after {self._seconds:g} s")
            sock = getattr(raw.connection, "sock", None)
            if sock is not None:
                sock.settimeout(left)
            piece = raw.read1(PIECE, decode_content=decode_content)
            if not piece:
                return
            yield piece
