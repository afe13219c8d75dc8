"""The server: for whoever has the token, and for pages of its own alone."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from prchain.view.options import ViewOptions
from prchain.view.server import ViewServer
from prchain.view.site import Site
from sql.store import Store
from tests.databases import new_database


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ViewServer]:
    with closing(Store.open(str(new_database(tmp_path / "prchain.db")))) as store:
        site = Site(store, ViewOptions(), tmp_path, tmp_path)
        with ViewServer(site, "t0ken") as running:
            threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
            yield running
            running.shutdown()


def ask(server: ViewServer, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_the_first_page_is_behind_the_token(server: ViewServer) -> None:
    answer = ask(server, "/t0ken/index.html")
    assert answer.status == 200
    assert str(answer.headers["Content-Type"]) == "text/html; charset=utf-8"
    assert "default-src 'none'" in str(answer.headers["Content-Security-Policy"])
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ask(server, "/t0ken/").status == 200
    assert ask(server, "/t0ken/assets/view.js", "HEAD").status == 200
    assert server.url.endswith("/t0ken/index.html")


@pytest.mark.parametrize("path", ["/", "/index.html", "/t0ke/index.html", "//index.html", "/%74oken/", "/t0ken/../x"])
def test_without_the_token_there_is_no_page(server: ViewServer, path: str) -> None:
    assert ask(server, path).status == 404


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": ""}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
)
def test_a_request_of_elsewhere_is_refused(server: ViewServer, headers: dict[str, str]) -> None:
    assert ask(server, "/t0ken/index.html", **headers).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(server: ViewServer, method: str) -> None:
    assert ask(server, "/t0ken/index.html", method).status == 501


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_all_addresses_at_once_are_refused(server: ViewServer, host: str) -> None:
    with pytest.raises(UsageError, match="--host takes one address"):
        ViewServer(server.site, "t", host)


def test_a_port_in_use_is_one_line(server: ViewServer) -> None:
    port = server.server_address[1]
    with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 cannot be used .*; --port names another"):
        ViewServer(server.site, "t", port=port)


def test_what_the_first_page_is_made_of_is_read_before_it_is_asked_for(
    server: ViewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.site.warm()
    monkeypatch.delattr("prchain.view.facets.counted_repositories")
    assert ask(server, "/t0ken/index.html").status == 200
