"""The pages over HTTP, for one person on this machine: behind a token, and only for pages of our own."""

from __future__ import annotations

import hmac
import logging
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from prchain.core.errors import PrchainError, UsageError
from prchain.view.html import POLICY
from prchain.view.places import FUNNEL
from prchain.view.site import Site

log = logging.getLogger(__name__)

_ANY = {"", "0.0.0.0", "::"}
"""Stand for all addresses of a machine."""

_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewServer(ThreadingHTTPServer):
    """Serves a site at ``http://HOST:PORT/TOKEN/``."""

    daemon_threads = True

    def __init__(self, site: Site, token: str, host: str = "127.0.0.1", port: int = 0) -> None:
        """Bind; port 0 takes a free one. Raises `UsageError` where that cannot be."""
        if host in _ANY:
            raise UsageError("--host takes one address of this machine: requests under any other name are refused")
        self.site = site
        self.token = token
        self._host = host
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port} of {host} cannot be used ({why}); --port names another, 0 a free one"
            ) from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves a page early is no fault; what else is one goes to the log."""
        log.debug("a connection ended", exc_info=True)

    @property
    def url(self) -> str:
        """Where the first page is."""
        return f"http://{self._host}:{self.server_address[1]}/{self.token}/{FUNNEL}"

    @property
    def names(self) -> frozenset[str]:
        """What a request may call this server: a page of elsewhere that leads a browser here calls it otherwise."""
        port = self.server_address[1]
        own = {self._host, "127.0.0.1", "localhost"} if self._host == "127.0.0.1" else {self._host}
        return frozenset(f"{name}:{port}" for name in own)


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version = "prchain"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host.lower() not in self.server.names or (origin is not None and origin.lower() != f"http://{host.lower()}"):
            self._send(HTTPStatus.FORBIDDEN, b"this server answers pages of its own only\n")
            return
        token, _, path = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, b"no such page; open the address that prchain view printed\n")
            return
        path = path or FUNNEL
        try:
            body = self.server.site.render(path)
        except PrchainError as error:
            log.warning("%s: %s", path, error)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, f"this page cannot be made: {error.name}\n".encode())
            return
        if body is None:
            self._send(HTTPStatus.NOT_FOUND, b"no such page; it may be gone since the one that led here was made\n")
        else:
            self._send(HTTPStatus.OK, body, kind_of(path))

    def _send(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not the path of a request: it holds the token."""
        log.debug("%s %s", self.command, args[1] if len(args) > 1 else "")


def kind_of(path: str) -> str:
    """The media type of a page."""
    known = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
    return f"{known.get(path.rpartition('.')[2], 'text/plain')}; charset=utf-8"
