"""HTTP servers of pages: for this machine alone, on 127.0.0.1, under a path that nobody can guess.

Requests with another Host (a name that a web page has resolved to this address) or another Origin are refused. What a page sends back is
taken from that page alone: a POST names its Origin.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from softgen.errors import SoftgenError, UsageError

ADDRESS = "127.0.0.1"
HTML, SCRIPT, STYLE, TEXT = (f"text/{kind}; charset=utf-8" for kind in ("html", "javascript", "css", "plain"))
JSON = "application/json"
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'"
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
           "Cache-Control": "no-store", "X-Frame-Options": "DENY"}  # fmt: skip
MOST_POSTED = 1 << 16  # bytes


class Answer(NamedTuple):
    """What a path has."""

    kind: str
    content: bytes
    headers: dict[str, str] = {}


def listen(port: int = 0) -> socket.socket:
    """A socket of a server; UsageError where the port is taken."""
    if not 0 <= port < 1 << 16:
        raise UsageError(f"--port {port}: a port is 0 to 65535")
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}") from None


def url(listener: socket.socket, token: str, page: str) -> str:
    return f"http://{ADDRESS}:{listener.getsockname()[1]}/{token}/{page}"


class LocalServer(ThreadingHTTPServer):
    """Answers requests with the token in their path."""

    daemon_threads = True
    takes_posts = False

    def __init__(self, listener: socket.socket, token: str) -> None:
        super().__init__((ADDRESS, 0), LocalHandler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.token = listener, token
        self.server_address = listener.getsockname()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def content(self, path: str) -> Answer:
        """What a path has; UsageError where there is no such path."""
        raise UsageError(f"there is no {path}")

    def posted(self, path: str, body: bytes) -> None:
        """The page has sent something."""
        raise UsageError(f"there is no {path}")


class LocalHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: LocalServer
    server_version, sys_version = "softgen", ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if (path := self._path(origin_needed=False)) is not None:
            self._answer_with(lambda: self.server.content(path or "index.html"))

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self.server.takes_posts or not length.isdigit() or int(length) > MOST_POSTED:
            self.send_error(HTTPStatus.NOT_IMPLEMENTED)
            return
        body = self.rfile.read(int(length))
        if (path := self._path(origin_needed=True)) is not None:

            def take() -> Answer:
                self.server.posted(path, body)
                return Answer(TEXT, b"")

            self._answer_with(take)

    def _path(self, origin_needed: bool) -> str | None:
        """The path after the token; None where the request was refused."""
        hosts = {f"{ADDRESS}:{self.server.port}", f"localhost:{self.server.port}"}
        origin = self.headers.get("Origin")
        foreign = origin_needed if origin is None else origin.removeprefix("http://") not in hosts
        if self.headers.get("Host") not in hosts or foreign:
            self._answer(HTTPStatus.FORBIDDEN, Answer(TEXT, b"this page is for this machine alone\n"))
            return None
        _, token, *rest = self.path.partition("?")[0].split("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._answer(HTTPStatus.FORBIDDEN, Answer(TEXT, b"the address that softgen has printed has more in it\n"))
            return None
        return "/".join(rest)

    def _answer_with(self, content: Callable[[], Answer]) -> None:
        try:
            self._answer(HTTPStatus.OK, content())
        except UsageError as error:
            self._answer(HTTPStatus.NOT_FOUND, Answer(TEXT, f"{error}\n".encode()))
        except SoftgenError as error:
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, Answer(TEXT, f"{error}\n".encode()))

    def _answer(self, status: HTTPStatus, answer: Answer) -> None:
        self.send_response(status)
        fields = {"Content-Type": answer.kind, "Content-Length": str(len(answer.content))} | HEADERS | answer.headers
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address has the token in it."""
