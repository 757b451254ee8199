"""`softgen view`: its data, its server, its files, and its page where there is a browser; `softgen compare`."""

import http.client
import io
import itertools
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softgen.errors import UsageError
from softgen.inspect.cli.main import main
from softgen.inspect.session import Session
from softgen.inspect.view.data import ViewData
from softgen.inspect.view.server import ViewServer
from tests.conftest import ROOT

COMPUTE, TRIANGLE, OLD = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri", "g45-gles-tri"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def triangle() -> ViewData:
    return ViewData(Session(TRIANGLE))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("view") / "page"
    assert main(["view", str(TRIANGLE), "--export", str(into), "--pixel", "32,20"]) == 0
    return into


def test_the_index_has_every_command_with_counts_of_draws(triangle: ViewData) -> None:
    index = triangle.json("index")
    events = [event for submission in index["submissions"] for event in submission["events"]]
    assert len(events) == 260 and index["gpu"] == "kbl"
    assert {event["p"]: event["i"] for event in events if event["k"] == "draw"} == {"2:70": 0, "2:124": 488, "2:190": 0, "2:245": 3072}


def test_a_draw_has_state_changes_kernels_and_targets(triangle: ViewData) -> None:
    event = triangle.json("event-2-124")
    assert event["fields"]["vertex_count_per_instance"] == 3 and set(event["kernels"]) == {"vs", "ps"}
    assert "3DSTATE_VS" in event["changes"] and event["state"]["3DSTATE_VS"]["enable"] == 1
    assert [(target["width"], target["format"]) for target in event["targets"]] == [(64, "R8G8B8A8_UNORM")]
    before, after, differs = (np.asarray(Image.open(io.BytesIO(triangle.picture(f"picture-2-124-{kind}-0"))).convert("RGB"))
                              for kind in ("before", "after", "difference"))  # fmt: skip
    assert (before == before[0, 0]).all() and ((before != after).any(axis=2) == differs.any(axis=2)).all() and differs.any()


@pytest.mark.parametrize(("x", "y"), [(32, 20), (0, 0), (31, 40), (63, 63), (20, 30), (8, 56)])
def test_history_ends_with_what_the_target_holds(triangle: ViewData, x: int, y: int) -> None:
    rows = triangle.json(f"history-2-124-0-{x}-{y}")
    image = Image.open(io.BytesIO(triangle.picture("picture-2-124-after-0"))).convert("RGBA")
    assert tuple(rows[-1]["color"]) == image.getpixel((x, y)) and rows[-1]["after"] == np.asarray(image)[y, x].tobytes().hex()
    assert all(second["before"] == first["after"] for first, second in itertools.pairwise(rows))
    for row in rows:
        writes = [write for fragment in row["fragments"] for write in fragment["writes"]]
        assert not writes or (writes[0]["before"], writes[-1]["after"]) == (row["before"], row["after"])
    shaded = any(row["position"] == "2:124" and row["fragments"] for row in rows)
    assert shaded == (image.getpixel((x, y)) != (51, 102, 153, 255))


def test_a_fragment_of_the_history_is_where_the_debugger_begins(triangle: ViewData) -> None:
    rows = triangle.json("history-2-124-0-32-20")
    (fragment,) = rows[-1]["fragments"]
    thread = Session(TRIANGLE).thread(fragment["thread"])
    assert thread.pixels()[fragment["lane"]] == (32, 20)


def test_vertices_in_and_out(triangle: ViewData) -> None:
    mesh = triangle.json("mesh-2-124")
    assert [vertex["out"]["1"] for vertex in mesh["vertices"]] == [[-0.8, -0.8, 0, 1], [0.8, -0.8, 0, 1], [0, 0.8, 0, 1]]
    assert "no thread of a vertex shader" in triangle.json("mesh-2-245")["why"] or triangle.json("mesh-2-245")["why"]
    old = ViewData(Session(OLD), count=False).json("mesh-3-25")  # threads of two vertices; device coordinates come first
    corners = [[-0.8, -0.8, 0, 1], [0.8, -0.8, 0, 1], [0, 0.8, 0, 1]]
    texels = [[0, 0, 0, 1], [1, 0, 0, 1], [0.5, 1, 0, 1]]
    assert [vertex["in"] for vertex in old["vertices"]] == [list(pair) for pair in zip(corners, texels, strict=True)]
    assert [vertex["out"][str(old["position"])] for vertex in old["vertices"]] == corners and old["position"] == 2
    assert [(vertex["thread"][-2:], vertex["lane"]) for vertex in old["vertices"]] == [("t0", 0), ("t0", 4), ("t1", 0)]


def test_shaders_have_counts_in_the_margin(triangle: ViewData) -> None:
    kernel = triangle.json(f"kernel-{triangle.json('event-2-124')['kernels']['ps']}")
    rows = [row for row in kernel["lines"] if row["offset"] is not None]
    assert kernel["threads"] == 93 and all(row["counts"] == [93, 1456] for row in rows) and len(rows) == 5


@pytest.mark.parametrize("name", ["event-2-1", "event-9-1", "event-x", "nothing-1", "history-2-124-0-99-0", "history-2-124-7-0-0",
                                  "kernel-0", "..", "history-2-124", "commands-77"])  # fmt: skip
def test_names_of_nothing_are_refused(triangle: ViewData, name: str) -> None:
    with pytest.raises(UsageError):
        triangle.json(name)


# -- the server --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(triangle: ViewData) -> Iterator[ViewServer]:
    made = ViewServer(triangle)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def get(server: ViewServer, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def test_the_server_serves_the_page_and_its_data_under_its_token(server: ViewServer) -> None:
    status, headers, page = get(server, f"/{server.token}/index.html")
    assert status == 200 and b"<title>softgen view</title>" in page and "default-src 'self'" in headers["Content-Security-Policy"]
    status, headers, script = get(server, f"/{server.token}/data/index.js")
    assert status == 200 and script.startswith(b'softgenData("index",') and headers["Content-Type"].startswith("text/javascript")
    status, headers, data = get(server, f"/{server.token}/data/picture-2-124-after-0.png")
    assert status == 200 and headers["Content-Type"] == "image/png" and data[:4] == b"\x89PNG"
    assert b"is outside" in get(server, f"/{server.token}/data/history-2-124-0-64-0.js")[2]
    assert server.server_address[0] == "127.0.0.1" and server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(("path", "headers", "status"), [
    ("/", {}, 403), ("/index.html", {}, 403), ("/wrong/index.html", {}, 403), ("TOKEN/index.html", {"Host": "evil.example"}, 403),
    ("TOKEN/index.html", {"Origin": "http://evil.example"}, 403), ("TOKEN/index.html", {"Origin": "null"}, 403),
    ("TOKEN/../../etc/passwd", {}, 404), ("TOKEN/data/nothing.png", {}, 404), ("TOKEN/page.py", {}, 404)])  # fmt: skip
def test_other_requests_are_refused(server: ViewServer, path: str, headers: dict[str, str], status: int) -> None:
    assert get(server, path.replace("TOKEN", f"/{server.token}"), **headers)[0] == status


def test_only_gets_are_answered(server: ViewServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", f"/{server.token}/index.html", body=b"x")
    assert connection.getresponse().status == 501


# -- files and the page ------------------------------------------------------------------------------------------------


def test_an_exported_page_has_everything_it_loads(exported: Path) -> None:
    names = {path.name for path in (exported / "data").iterdir()}
    assert {"outline.js", "counts.js", "commands-2.js", "event-2-124.js", "mesh-2-124.js", "history-2-124-0-32-20.js"} <= names
    assert "picture-2-124-after-0.png" in names
    for path in (exported / "data").glob("*.js"):
        text = path.read_text()
        assert text.startswith(f'softgenData("{path.stem}",') and text.endswith(")\n") and "</" not in text
        json.loads(text.partition(",")[2].removesuffix(")\n"))
    page = "".join((exported / name).read_text() for name in ("index.html", "page.js", "style.css"))
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page


def test_the_script_of_the_page_shows_it(exported: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js (Debian: nodejs): the page's script is not run")
    script = ROOT / "tests/inspect/view/page_check.js"
    ran = subprocess.run([node, str(script), str(exported), "32", "20"], text=True, capture_output=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["problems"] == [] and found["buttons"] == 4 and found["title"].endswith("kbl-vk-tri (kbl)")
    for text in ("2:124 3DPRIMITIVE", "history of pixel (32, 20)", "336699ff", "5a5f46ff", "2:124/ps/g0.t", "lane 0", "93", "pln (16|M0)",
                 "vertex_count_per_instance", "R8G8B8A8_UNORM", "3DSTATE_VS", "-0.8 -0.8 0 1"):  # fmt: skip
        assert text in found["detail"], text
    assert [row for row in found["rows"] if "3DPRIMITIVE" in row] and all(row.startswith(("2:", "submission")) for row in found["rows"])


def test_the_page_in_a_browser(exported: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium (Debian: chromium): the page is not opened in a browser")
    ran = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom",
                          f"file://{exported}/index.html#2:124"], text=True, capture_output=True, timeout=180, check=False)  # fmt: skip
    assert 'data-ready="yes"' in ran.stdout and "R8G8B8A8_UNORM" in ran.stdout and "CONSOLE" not in ran.stderr


@pytest.mark.parametrize(("arguments", "says"), [
    ([str(COMPUTE), "--port", "99999"], "a port is"), ([str(COMPUTE), "--pixel", "1,2"], "--pixel is for --export"),
    ([str(COMPUTE), "--export", "x", "--pixel", "1"], "expected X,Y"),
    ([f"{COMPUTE}@9:1"], "there is no submission 9"),
    ([str(COMPUTE), "--export", str(ROOT)], "has files in it already")])  # fmt: skip
def test_mistakes_are_named(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", *arguments, "--no-counts"]) == 2
    assert says in capsys.readouterr().err


def test_parts_of_the_page_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(TRIANGLE), "--json", "history-2-124-0-32-20"]) == 0
    assert [row["after"] for row in json.loads(capsys.readouterr().out)] == ["00000000", "336699ff", "5a5f46ff"]
    for words in ([str(TRIANGLE), "--json", "--no-counts"], ["--no-counts", "--json", str(TRIANGLE)]):
        assert main(["view", *words]) == 0
        assert json.loads(capsys.readouterr().out)["gpu"] == "kbl"


def test_going_from_draw_to_draw_executes_the_capture_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data, begun, again = ViewData(Session(TRIANGLE), count=False), list[Session](), Session._begin_again

    def counted(session: Session) -> None:
        begun.append(session)
        again(session)

    monkeypatch.setattr(Session, "_begin_again", counted)
    drawn = [data.json(f"event-{event.position.submission}-{event.position.command}") for event in data.session.work()]
    assert [len(event["targets"]) for event in drawn] == [1, 1, 0, 1] and len(begun) == 1


# -- compare -----------------------------------------------------------------------------------------------------------


def test_compare_names_the_first_pixel_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, value in (("expected", 7), ("got", 9)):
        (tmp_path / folder).mkdir()
        image = Image.new("RGB", (5, 4), (1, 2, 3))
        image.putpixel((3, 2), (1, value, 3))
        image.save(tmp_path / folder / "a.png")
        Image.new("L", (3, 3), 80).save(tmp_path / folder / "b.png")
    Image.new("L", (3, 3), 80).save(tmp_path / "expected" / "c.png")
    files = [str(tmp_path / folder / "a.png") for folder in ("expected", "got")]
    assert main(["compare", *files, "--difference", str(tmp_path / "d.png")]) == 1
    assert "1 of 20 pixels differ, by 2 at most; the first at (3, 2): expected 1 7 3 255, got 1 9 3 255" in capsys.readouterr().out
    assert np.argwhere(np.asarray(Image.open(tmp_path / "d.png")).any(axis=2)).tolist() == [[2, 3]]
    assert main(["compare", *files, "--by", "2"]) == 0 and main(["compare", *files, "--most", "1"]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "expected"), str(tmp_path / "got"), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["pictures"]
    assert [(row["name"], row["same"]) for row in rows] == [("a.png", False), ("b.png", True), ("c.png", False)]


@pytest.mark.parametrize("arguments", [["nowhere", "nowhere"], [str(ROOT), str(ROOT / "README.md")], [str(ROOT / "softgen/api"), str(ROOT)],
                                       [str(ROOT / "README.md"), str(ROOT / "README.md")]])  # fmt: skip
def test_what_is_no_picture_is_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *arguments]) in (1, 2)
    assert capsys.readouterr().err.startswith("softgen:")
