"""A store of S3's kind on this machine, and a server before it that fails as stores and networks do."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

BUCKET = "shop"
KEY, SECRET = "AKIAFORETESTKEY00001", "verysecretforetestkey0000000000000000001"


class Store:
    """A bucket of a server, written without the package."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files = fs.S3FileSystem(
            endpoint_override=url, region="us-east-1", access_key=KEY, secret_key=SECRET, allow_bucket_creation=True
        )
        self.files.create_dir(BUCKET)

    def put(self, key: str, content: bytes | Path) -> str:
        """Write an object; its address."""
        with self.files.open_output_stream(f"{BUCKET}/{key}", compression=None) as stream:
            stream.write(content.read_bytes() if isinstance(content, Path) else content)
        return f"s3://{BUCKET}/{key}"

    def put_table(self, key: str, table: pa.Table, **options: Any) -> str:
        """Write a table as Parquet; its address."""
        pq.write_table(table, f"{BUCKET}/{key}", filesystem=self.files, **options)
        return f"s3://{BUCKET}/{key}"

    def get(self, key: str) -> bytes:
        with self.files.open_input_file(f"{BUCKET}/{key}") as file:
            return bytes(file.read())

    def keys(self, prefix: str = "") -> list[str]:
        """The keys of all objects below a folder."""
        selector = fs.FileSelector(f"{BUCKET}/{prefix}".rstrip("/"), recursive=True, allow_not_found=True)
        return sorted(i.path.removeprefix(f"{BUCKET}/") for i in self.files.get_file_info(selector) if i.is_file)


@contextmanager
def moto_store() -> Iterator[Store]:
    """moto's server on a free port."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield Store(f"http://127.0.0.1:{port}")
    finally:
        server.stop()


Fault = Callable[[str, str], str | None]  # from the method and the path of a request to what goes wrong
DENIED, BUSY, CUT, SILENT = "denied", "busy", "cut", "silent"
_CODES = {DENIED: (403, "AccessDenied"), BUSY: (503, "SlowDown")}


@contextmanager
def failing_server(store: Store, fault: Fault, *, signed: bool = False) -> Iterator[str]:
    """The address of a server that hands requests on to the store, but for those that fail; and, where it takes only
    `signed` ones, for those without a credential."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            body = self._body()
            unknown = signed and "Authorization" not in self.headers
            what = DENIED if unknown else fault(self.command, self.path)
            if what == SILENT:
                over.wait(30)
                self.close_connection = True
            elif what in _CODES:
                self._refuse(*_CODES[what])
            else:
                self._hand_on(body, cut=what == CUT)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content

        def _refuse(self, code: int, name: str) -> None:
            text = f"<?xml version='1.0'?><Error><Code>{name}</Code><Message>{name}</Message></Error>".encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(0 if self.command == "HEAD" else len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def _hand_on(self, body: bytes, *, cut: bool) -> None:
            connection = http.client.HTTPConnection(store.url.removeprefix("http://"), timeout=10)
            kept = {k: v for k, v in self.headers.items() if k.lower() not in ("transfer-encoding", "content-length")}
            connection.request(self.command, self.path, body, {**kept, "Content-Length": str(len(body))})
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            if answer.getheader("Content-Length") is None:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            connection.close()
            self.close_connection = self.close_connection or cut

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
