"""`softgen run --show`: frames, numbers and input between a running program and the browsers that watch it."""

from __future__ import annotations

import argparse
import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from softgen.driver.run.input_devices import Event
from softgen.errors import UsageError
from softgen.inspect.cli.run_observers import page
from softgen.inspect.frames.show import LiveSink, ShowOptions
from softgen.inspect.view.local_server import listen
from tests.inspect.frames.test_sink import coloured
from tests.inspect.report.test_frames import OFFSET, shown


@pytest.fixture(scope="module")
def live() -> Iterator[tuple[LiveSink, ShowOptions]]:
    options = ShowOptions(0)
    sink = LiveSink(options, lambda text: None)
    sink.status = lambda: {"gpu": "a GPU", "kernels": [{"kernel": "k"}]}
    sink.start()
    yield sink, options
    sink.close()
    assert not sink.sender.process.returncode


def ask(options: ShowOptions, path: str, method: str = "GET", body: str | None = None,
        **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", options.listener.getsockname()[1], timeout=30)
    connection.request(method, path.replace("TOKEN", f"/{options.token}"), body=body, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.msg, answer.read()


def origin(options: ShowOptions) -> str:
    return f"http://127.0.0.1:{options.listener.getsockname()[1]}"


def test_a_browser_sees_the_frame_after_the_one_it_has(live: tuple[LiveSink, ShowOptions]) -> None:
    sink, options = live
    crtc, buffer = shown()
    buffer.view[OFFSET:] = bytes([30, 100, 200, 0]) * ((len(buffer.view) - OFFSET) // 4)
    sink.presented(crtc, 1)
    status, headers, picture = ask(options, "TOKEN/frame/0")
    assert (status, headers["X-Frame"]) == (200, "1")
    assert np.abs(np.asarray(Image.open(io.BytesIO(picture))).astype(int) - (200, 100, 30)).max() <= 4
    for number in range(2, 9):  # faster than they are shown: the last one is seen all the same
        sink.presented(coloured(), number)
    assert ask(options, "TOKEN/frame/1")[1]["X-Frame"] == "2"


def test_what_is_drawn_into_a_shown_frame_is_seen(live: tuple[LiveSink, ShowOptions]) -> None:
    """X servers present no frame of it."""
    sink, options = live
    crtc, buffer = shown()
    sink.presented(crtc, 10)
    colours, after, until = list[int](), 0, time.monotonic() + 30
    while colours[-1:] != [200] and time.monotonic() < until:
        buffer.view[OFFSET:] = bytes([30, 100, 200 if colours else 90, 0]) * ((len(buffer.view) - OFFSET) // 4)
        _, headers, picture = ask(options, f"TOKEN/frame/{after}")
        after = int(headers["X-Frame"])
        if picture:
            red = int(np.asarray(Image.open(io.BytesIO(picture)))[5, 5, 0])
            colours += [value for value in (90, 200) if abs(red - value) < 5]
    assert set(colours) == {90, 200}


def test_the_page_tells_kernels_and_messages(live: tuple[LiveSink, ShowOptions]) -> None:
    sink, options = live
    sink.log("something happened")
    sink.tell({})
    until = time.monotonic() + 20
    while not (found := json.loads(ask(options, "TOKEN/status.json")[2])).get("messages") and time.monotonic() < until:
        time.sleep(0.05)
    assert found["gpu"] == "a GPU" and found["kernels"] == [{"kernel": "k"}] and found["messages"] == ["something happened"]
    assert all(ask(options, f"TOKEN/{name}")[0] == 200 for name in ("index.html", "live.js", "live.css"))


def test_input_comes_back(live: tuple[LiveSink, ShowOptions]) -> None:
    sink, options = live
    typed, arrived = list[object](), threading.Event()

    def take(device: str, events: list[Event]) -> None:
        typed.append((device, events))
        arrived.set()

    sink.send = take
    assert ask(options, "TOKEN/input", "POST", '[{"kind": "key", "code": "KeyA", "down": true}]', Origin=origin(options))[0] == 200
    assert arrived.wait(20) and typed == [("event0", [(1, 30, 1)])]
    assert ask(options, "TOKEN/input", "POST", "{", Origin=origin(options))[0] == 404


@pytest.mark.parametrize(("path", "method", "headers", "status"), [
    ("/index.html", "GET", {}, 403), ("TOKEN/frame/0", "GET", {"Host": "evil.example"}, 403), ("TOKEN/input", "POST", {}, 403),
    ("TOKEN/input", "POST", {"Origin": "http://evil.example"}, 403), ("/x/input", "POST", {"Origin": "OWN"}, 403),
    ("TOKEN/frame/x", "GET", {}, 404), ("TOKEN/../live.py", "GET", {}, 404), ("TOKEN/else", "POST", {"Origin": "OWN"}, 404)])  # fmt: skip
def test_other_requests_are_refused(live: tuple[LiveSink, ShowOptions], path: str, method: str, headers: dict[str, str],
                                    status: int) -> None:  # fmt: skip
    own = {name: value.replace("OWN", origin(live[1])) for name, value in headers.items()}
    assert ask(live[1], path, method, "[]" if method == "POST" else None, **own)[0] == status


def test_a_taken_port_ends_the_run_before_it_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="--port"):
        page(argparse.Namespace(show=True, port=taken.getsockname()[1]))
    with pytest.raises(UsageError, match="0 to 65535"):
        listen(65536)
    with pytest.raises(UsageError, match="--show"):
        page(argparse.Namespace(show=False, port=1))
