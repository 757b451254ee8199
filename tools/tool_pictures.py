"""Draws the pictures of README.md and docs: a stop of the debugger, the history of a pixel, a race, each from real output.

    .venv/bin/python tools/tool_pictures.py [FOLDER]        default: docs/pictures

Needs no driver, no GPU and no browser: the captures are those of the tests, and the pictures are SVG files.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from softgen.inspect.cli.main import main  # noqa: E402
from softgen.inspect.session import Session  # noqa: E402
from softgen.inspect.view.data import ViewData  # noqa: E402
from tests.inspect.check.planted import PLANTED, file  # noqa: E402

TRIANGLE = ROOT / "tests/data/kbl-vk-tri"
PIXEL = 32, 20
SHADES = {"$": "#8ec07c", "(": "#fabd2f", "e": "#fb4934"}  # of lines that begin so, after blanks: commands, prompts, errors
WIDE, HIGH, MARGIN, ZOOM = 8.4, 19, 14, 4  # pixels of a character, of a line, around all, and of a pixel of the target


def output(*words: str) -> list[str]:
    """What a verb prints."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main(list(words))
    return text.getvalue().rstrip("\n").split("\n")


def drawn(lines: list[str], left: int = 0, more: str = "", least: int = 0) -> str:
    """Lines of a terminal as SVG, and more at the left of them."""
    width = left + round(max(map(len, lines)) * WIDE) + 2 * MARGIN
    height = max(len(lines) * HIGH + 2 * MARGIN, least)
    rows = [f'<text x="{left + MARGIN}" y="{MARGIN + HIGH * row + 14}" fill="{SHADES.get(line.lstrip()[:1], "#ebdbb2")}" '
            f'xml:space="preserve">{escape(line)}</text>' for row, line in enumerate(lines)]  # fmt: skip
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="monospace" font-size="14">\n<rect width="100%" height="100%" rx="8" fill="#282828"/>\n'
            + "\n".join([more, *rows] if more else rows) + "\n</svg>\n")  # fmt: skip


def debugger() -> str:
    """A breakpoint at a pixel, steps, and a step back."""
    commands = ["break ps if pixel == (32, 20)", "continue", "step 2", "print r123:f", "back"]
    lines = ["$ softgen debug tests/data/kbl-vk-tri"]
    for count, command in enumerate(commands, 1):
        said = output("debug", str(TRIANGLE), *(word for text in commands[:count] for word in ("-c", text)))
        before = output("debug", str(TRIANGLE), *(word for text in commands[: count - 1] for word in ("-c", text))) if count > 1 else []
        lines += [f"(sg) {command}", *said[len(before) :]]
    return drawn([line[:118] for line in lines])


def history() -> str:
    """A draw's target, and all that has changed one of its pixels."""
    data = ViewData(Session(TRIANGLE), count=False)
    x, y = PIXEL
    rows = json.loads(json.dumps(data.json(f"history-2-124-0-{x}-{y}")))
    lines = [f"history of pixel ({x}, {y})", ""]
    for row in rows:
        lines.append(f"{row['position']:14}{row['before'] or '':8} -> {row['after']}")
        lines += [f"              thread {fragment['thread']}, lane {fragment['lane']}" for fragment in row["fragments"]]
    lines += ["", f"$ softgen debug tests/data/kbl-vk-tri --at {rows[-1]['fragments'][0]['thread']}"]
    picture = base64.b64encode(data.picture("picture-2-124-after-0")).decode()
    side = 64 * ZOOM
    more = (f'<image x="{MARGIN}" y="{MARGIN}" width="{side}" height="{side}" style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{picture}"/>\n<rect x="{MARGIN + x * ZOOM - 3}" y="{MARGIN + y * ZOOM - 3}" width="{ZOOM + 6}" '
            f'height="{ZOOM + 6}" fill="none" stroke="#ffffff" stroke-width="2"/>')  # fmt: skip
    return drawn(lines, side + MARGIN, more, side + 2 * MARGIN)


def race() -> str:
    """A kernel without its barrier."""
    with tempfile.TemporaryDirectory() as folder:
        path = file(Path(folder) / "race.aub", PLANTED["local race"][0])
        lines = output("check", path, "--worlds", "order")
    return drawn(["$ softgen check race.aub --worlds order", *(line.replace(path, "race.aub")[:130] for line in lines)])


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for picture in (debugger, history, race):
        (folder / f"{picture.__name__}.svg").write_text(picture(), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/pictures")
