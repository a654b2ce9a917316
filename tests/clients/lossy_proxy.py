"""A proxy that lets a request take effect and then loses its answer."""

import contextlib
import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

DROP = "connection dropped"
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class LossyProxy:
    """Stands in front of a server. Passes everything on until `lose` names an answer."""

    def __init__(self, server_url: str) -> None:
        self.upstream = urlsplit(server_url).netloc
        self.lost: list[str] = []
        self._plan: tuple[re.Pattern, str | int, Callable[[], None]] | None = None
        self._to_pass = 0
        self._lock = threading.Lock()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._listener.daemon_threads = True

    @property
    def iceberg(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}/iceberg"

    def lose(self, path: str, how: str | int, nth: int = 1, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Loses the answer to the `nth` POST from now on whose path matches `path`, once.

        `how` is `DROP` or the status that stands in for the answer. `meanwhile` runs after the request took effect
        and before the client hears anything.
        """
        self._plan, self._to_pass = (re.compile(path), how, meanwhile), nth - 1

    def loss_of(self, method: str, path: str) -> tuple[str | int, Callable[[], None]] | None:
        """How the answer to this request gets lost, if it does."""
        with self._lock:
            if self._plan is None or method != "POST" or not self._plan[0].search(path):
                return None
            if self._to_pass:
                self._to_pass -= 1
                return None
            (_, how, meanwhile), self._plan = self._plan, None
            self.lost.append(path)
            return how, meanwhile

    @contextlib.contextmanager
    def running(self) -> Iterator["LossyProxy"]:
        thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._listener.shutdown()
            self._listener.server_close()
            thread.join()


def _handler(proxy: LossyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, answer = self.ask_server(body)
            loss = proxy.loss_of(self.command, self.path)
            if loss is None:
                self.answer(status, headers, answer)
                return
            how, meanwhile = loss
            meanwhile()
            if how == DROP:
                self.close_connection = True
            else:
                self.answer(how, {"Content-Type": "application/json"}, error_body(how))

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = forward

        def ask_server(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection(proxy.upstream, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            try:
                connection.request(self.command, self.path, body or None, headers)
                response = connection.getresponse()
                return response.status, dict(response.getheaders()), response.read()
            finally:
                connection.close()

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The server under test keeps the log that counts."""

    return Handler


def error_body(status: int) -> bytes:
    return json.dumps({"error": {"message": "the answer was lost", "type": "LostAnswer", "code": status}}).encode()
