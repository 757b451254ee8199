"""The server of a capture's page: files of the page, data and pictures (local_server.py)."""

from __future__ import annotations

import json
import secrets
from importlib import resources
from typing import Any

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.view.data import ViewData
from softgen.inspect.view.local_server import HTML, SCRIPT, STYLE, Answer, LocalServer, listen, url

FILES = {"index.html": HTML, "page.js": SCRIPT, "style.css": STYLE}


def page_file(name: str) -> bytes:
    """A file of the page."""
    return (resources.files("softgen.inspect.view") / "page" / name).read_bytes()


def script_of(name: str, value: Any) -> bytes:
    """Data as a script, which a page that was opened as a file can load, too."""
    text = json.dumps(value, separators=(",", ":")).replace("</", "<\\/")
    return f"softgenData({json.dumps(name)},{text})\n".encode()


class ViewServer(LocalServer):
    """Serves the page of a capture; `url` is where."""

    def __init__(self, data: ViewData, port: int = 0) -> None:
        super().__init__(listen(port), secrets.token_urlsafe(24))
        self.data = data

    @property
    def url(self) -> str:
        return url(self.socket, self.token, "index.html")

    def content(self, path: str) -> Answer:
        if path in FILES:
            return Answer(FILES[path], page_file(path))
        folder, _, name = path.partition("/")
        if folder == "data" and name.endswith(".js"):
            stem = name.removesuffix(".js")
            try:
                return Answer(SCRIPT, script_of(stem, self.data.json(stem)))
            except SoftgenError as error:
                return Answer(SCRIPT, script_of(stem, {"error": str(error)}))
        if folder == "data" and name.endswith(".png"):
            return Answer("image/png", self.data.picture(name.removesuffix(".png")))
        raise UsageError(f"there is no {path}")
