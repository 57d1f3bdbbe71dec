"""Shards at URLs: memory and files by fsspec, and a web server that serves ranges, or fails."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from shard_files import write_arrow, write_parquet, write_tar

from trueloop.errors import ConfigError, DataError, MissingDependencyError
from trueloop.feed import Feed, Shards


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUELOOP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "data" / "p", [40, 3, 61])
    write_arrow(tmp_path / "data" / "a", [40, 3, 61])
    write_tar(tmp_path / "data" / "t" / "0.tar", [{"cls": b"1", "txt": b"x"}] * 30)
    return tmp_path / "data"


class Server(ThreadingHTTPServer):
    """Serves the files of a folder; the next `failing` requests end without an answer, and
    `status` answers every request."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.failing = 0
        self.status = 0
        self.knows_ranges = True
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        server = self.server
        path = server.folder / self.path.strip("/")
        if server.failing:
            server.failing -= 1
            self.close_connection = True
            return
        if server.status or not path.is_file():
            self.send_error(server.status or 404)
            return
        content = path.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted and server.knows_ranges:
            self.send_response(206)
            content = content[int(wanted[1]) : int(wanted[2]) + 1]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        self.end_headers()
        if self.command == "GET":
            server.sent += len(content)
            self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ids(shards: Shards, **options: Any) -> list[int]:
    return [
        int(x) for batch in Feed(shards, 16, shuffle=True, **options).epoch(0) for x in batch[0]
    ]


@pytest.mark.parametrize("kind", ["p", "a", "t"])
def test_any_file_system_gives_what_the_disk_gives(folder: Path, kind: str) -> None:
    options: dict[str, Any] = {"fields": ("cls",) if kind == "t" else ("x",), "window": 64}
    local = ids(Shards(folder / kind, **options))
    memory = fsspec.filesystem("memory")
    memory.put(str(folder / kind), f"/{folder.name}{kind}", recursive=True)
    for url in (f"file://{folder / kind}", f"memory://{folder.name}{kind}"):
        shards = Shards(url, **options)
        assert ids(shards) == local
        assert ids(Shards(url, **options)) == local
    assert ids(Shards(f"memory://{folder.name}{kind}/*", **options)) == local
    assert ids(shards, workers=1) == local
    memory.rm(f"/{folder.name}{kind}", recursive=True)


def test_a_web_server_is_read_by_ranges(server: Server, folder: Path) -> None:
    write_parquet(folder / "big", [30_000] * 2, group=1000)
    size = sum(path.stat().st_size for path in (folder / "big").glob("*"))
    shards = Shards(server.url + "/big/{000..001}.parquet", fields=("x",))
    next(Feed(shards, 4).epoch(0))
    assert server.sent < 0.6 * size
    local = ids(Shards(folder / "p", fields=("x",)))
    shards = Shards(server.url + "/p/{000..002}.parquet", fields=("x",))
    assert ids(shards) == local
    assert ids(shards, workers=1) == local


def test_a_chain_of_file_systems_keeps_the_files(folder: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(folder / "a"), "/chain", recursive=True)
    options = {"filecache": {"cache_storage": str(folder / "kept")}}
    shards = Shards("filecache::memory://chain/*.arrow", fields=("x",), storage_options=options)
    local = ids(Shards(folder / "a", fields=("x",)))
    assert ids(shards) == local
    memory.rm("/chain", recursive=True)
    assert ids(shards) == local


def test_a_dropped_connection_is_tried_again(server: Server) -> None:
    shards = Shards(server.url + "/p/000.parquet")
    server.failing = 2
    assert shards[3]["x"] == 3
    server.failing = 2
    assert len(Shards(server.url + "/p/002.parquet")) == 61


def test_a_server_that_stays_away_gives_one_line(server: Server) -> None:
    shards = Shards(server.url + "/p/000.parquet", retries=1)
    server.failing = 10**6
    with pytest.raises(
        DataError, match=r"cannot read the bytes \d+ to \d+ of http.*, tried 2 times"
    ):
        shards[3]
    server.failing, server.status = 0, 403
    with pytest.raises(DataError, match=r"tried 1 times \(.*403.*check the network"):
        shards[3]
    with pytest.raises(DataError, match=r"cannot list http.*tried 1 times \(.*403.*check the"):
        Shards(server.url + "/p/000.parquet")
    server.status = 0
    assert shards[3]["x"] == 3


def test_a_server_without_ranges_and_a_shard_that_is_gone_are_said(
    server: Server, folder: Path
) -> None:
    shards = Shards(server.url + "/t/0.tar", fields=("cls",))
    server.knows_ranges = False
    with pytest.raises(DataError, match="sends more than the bytes"):
        Shards(server.url + "/p/002.parquet")[0]
    server.knows_ranges = True
    (folder / "t" / "0.tar").unlink()
    with pytest.raises(DataError, match=r"0\.tar is not there: put it back"):
        shards[0]
    with pytest.raises(DataError, match=r"nothing\.tar is not there"):
        Shards(server.url + "/nothing.tar")


def test_addresses_that_cannot_work() -> None:
    with pytest.raises(ConfigError, match=r"cannot open nosuch://x/a\.tar \(ValueError: Protocol"):
        Shards("nosuch://x/a.tar")
    with pytest.raises(ConfigError, match="on a disk and some at URLs"):
        Shards(["a.tar", "memory://a.tar"])
    with pytest.raises((MissingDependencyError, DataError), match=r"pip install|sftp"):
        Shards("sftp://127.0.0.1:9/a.tar", retries=0)
