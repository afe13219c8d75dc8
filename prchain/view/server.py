"""The pages over HTTP, for one person on this machine: behind a token, and only for pages of our own."""

from __future__ import annotations

import hmac
import logging
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from prchain.core.errors import PrchainError, UsageError
from prchain.view.html import FORM_POLICY, POLICY
from prchain.view.places import FUNNEL
from prchain.view.site import Site

log = logging.getLogger(__name__)

_ANY = {"", "0.0.0.0", "::"}
"""Stand for all addresses of a machine."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


_FORM = "application/x-www-form-urlencoded"
_LONGEST_FORM = 32_768
"""Bytes; a note of as many characters as one may have takes less."""


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

    def do_POST(self) -> None:
        """A form of a chain's page: who sends it, from a page of ours, knows the token."""
        self.close_connection = True  # what is left of a body that is refused is not read
        if self.server.site.labeller is None:
            self._send(HTTPStatus.NOT_IMPLEMENTED, b"nothing is written here; prchain view --label NAME takes labels\n")
            return
        path = self._asked()
        if path is None:
            return
        fields = self._form()
        if fields is None:
            self._send(HTTPStatus.BAD_REQUEST, b"this is no form of a chain's page\n")
            return
        try:
            stored = self.server.site.label(path, fields["label"], fields["note"])
        except UsageError as error:
            self._send(HTTPStatus.BAD_REQUEST, f"{error}\n".encode("utf-8", "replace"))
        except PrchainError as error:
            log.warning("%s: %s", path, error)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, f"the label was not stored: {error.name}\n".encode())
        else:
            if stored:
                self._send(HTTPStatus.SEE_OTHER, b"stored\n", location=f"{FUNNEL}#labels")
            else:
                self._send(HTTPStatus.NOT_FOUND, b"no such chain\n")

    def _form(self) -> dict[str, str] | None:
        """The fields of a form; None where the body is none."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != _FORM or not re.fullmatch("[0-9]{1,6}", length):
            return None
        if int(length) > _LONGEST_FORM:
            return None
        body = self.rfile.read(int(length)).decode("ascii", "replace")
        try:
            found = parse_qs(body, keep_blank_values=True, max_num_fields=8, errors="replace")
        except ValueError:
            return None
        return {name: values[0] for name, values in found.items()} if set(found) == {"label", "note"} else None

    def _asked(self) -> str | None:
        """The path of the page that is asked for; None where the request was refused."""
        host, origin = self.headers.get("Host", "").lower(), self.headers.get("Origin")
        is_ours = origin.lower() == f"http://{host}" if origin is not None else self.command != "POST"
        if host not in self.server.names or not is_ours:
            self._send(HTTPStatus.FORBIDDEN, b"this server answers pages of its own only\n")
            return None
        token, _, path = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, b"no such page; open the address that prchain view printed\n")
            return None
        return path or FUNNEL

    def _answer(self) -> None:
        path = self._asked()
        if path is None:
            return
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

    def _send(
        self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8", location: str | None = None
    ) -> None:
        self.send_response(status)
        forms = self.server.site.labeller is not None
        headers = {
            **_HEADERS,
            "Content-Security-Policy": f"{FORM_POLICY if forms else POLICY}; frame-ancestors 'none'",
            "Referrer-Policy": "same-origin" if forms else "no-referrer",
            "Content-Type": kind,
            "Content-Length": str(len(body)),
        }
        if location is not None:
            headers["Location"] = location
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
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
