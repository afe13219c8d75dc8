"""What runs inside a build's container: whether an index tells upload times, and which packages come from the tree."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from environments.inside import forget_tree, tells_dates

DATED = {"meta": {"api-version": "1.1"}, "files": [{"filename": "pip-1.tar.gz", "upload-time": "2024-01-01T00:00:00Z"}]}
UNDATED = {"meta": {"api-version": "1.0"}, "files": [{"filename": "pip-1.tar.gz"}]}


class Index(BaseHTTPRequestHandler):
    """An index with a folder for each kind of answer."""

    def do_GET(self) -> None:
        body = {"/dated/pip/": json.dumps(DATED), "/undated/pip/": json.dumps(UNDATED), "/broken/pip/": "{"}.get(
            self.path
        )
        kind = "text/html" if body is None else "application/vnd.pypi.simple.v1+json"
        content = (body or "<html></html>").encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("folder", "status"), [("dated", 0), ("undated", 1), ("html", 1), ("broken", 1)])
def test_only_an_index_that_tells_the_upload_time_of_every_file_is_asked_by_date(
    index: str, folder: str, status: int
) -> None:
    ran = subprocess.run([sys.executable, tells_dates.__file__, f"{index}/{folder}/"], capture_output=True, check=False)
    assert ran.returncode == status
    assert (ran.stderr != b"") == (status != 0)
    assert b"Traceback" not in ran.stderr


def test_packages_of_the_tree_are_told_from_those_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    for name, origin in (("ours", "file:///testbed"), ("below", "file:///testbed/packages/b"), ("other", "file:///testbed2"),
                         ("remote", "https://h.example/x.whl"), ("plain", None)):  # fmt: skip
        folder = site / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        if origin:
            (folder / "direct_url.json").write_text(json.dumps({"url": origin}))
    monkeypatch.setattr(sys, "path", [str(site)])
    assert forget_tree.packages_below("/testbed") == ["below", "ours"]
