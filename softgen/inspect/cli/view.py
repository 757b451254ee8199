"""`softgen view CAPTURE`: a page of a capture in the browser: timeline, state, targets, pixel history, vertices, shaders with counts."""

from __future__ import annotations

import argparse
import re

from softgen.errors import UsageError
from softgen.inspect.cli.output import Progress, counted, print_json, say

EXAMPLE = """examples:
  softgen view kbl-vk-tri                                 prints an address; open it in a browser of this machine
  softgen view kbl-vk-tri@2:124                           begins at a draw
  softgen view kbl-vk-tri --export page                   the same as files, for an artifact of CI
  softgen view kbl-vk-tri --export page --pixel 32,20     with the history of a pixel in each draw
  softgen view kbl-vk-tri --json history-2-124-0-32-20    one part of it as JSON: the history of a pixel

The server listens on 127.0.0.1 alone, under a path that nobody can guess. Ctrl-C ends it.
exit codes: 0 fine, 1 the capture cannot be read, 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("view", description="Show a capture as a page: every draw with state, targets, pixel history, shaders.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("capture", nargs="?",
                        help="capture directory, AUB file, error state or raw batch; @POSITION after it is where to begin")  # fmt: skip
    parser.add_argument("--gpu", help="the GPU it is for, whatever the file says (softgen gpus lists them)")
    parser.add_argument("--port", type=int, default=0, help="of the server on 127.0.0.1 (default: any)")
    parser.add_argument("--export", metavar="DIR", help="write the page into a new folder instead of serving it")
    parser.add_argument("--pixel", metavar="X,Y", action="append", default=[], help="with --export: include the history of a pixel")
    parser.add_argument("--json", metavar="NAME", nargs="?", const="index",
                        help="print what the page shows by this name as JSON, and end: index, outline, counts, commands-2, event-2-124, "
                             "history-2-124-0-32-20, mesh-2-124, kernel-CODE (default: index)")  # fmt: skip
    parser.add_argument("--no-counts", action="store_true", help="count no instructions, which executes the capture once more")


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.session.session import Session
    from softgen.inspect.view.data import ViewData
    from softgen.inspect.view.export import export
    from softgen.inspect.view.server import ViewServer

    if args.capture is None and args.json not in (None, "index"):
        args.capture, args.json = args.json, "index"  # `--json CAPTURE`, as other verbs take it
    if not args.capture:
        raise UsageError("view what? say: softgen view CAPTURE")
    path, at, position = args.capture.partition("@")
    if not 0 <= args.port < 1 << 16:
        raise UsageError(f"--port {args.port}: a port is 0 to 65535")
    pixels = [pixel(text) for text in args.pixel]
    if pixels and not args.export:
        raise UsageError("--pixel is for --export; on the page, click the pixel")
    session = Session(path, args.gpu)
    where = f"#{session.find(position)}" if at else ""
    data = ViewData(session, not args.no_counts)
    if args.json:
        print_json(data.json(args.json), 1)
        return 0
    if args.export:
        with Progress("draws and dispatches") as progress:
            count = export(data, args.export, pixels, progress.step)
        print(f"{counted(count, 'file')} in {args.export}: open {args.export}/index.html{where}")
        return 0
    server = ViewServer(data, args.port)
    print(f"{server.url}{where}", flush=True)
    say("for browsers of this machine; Ctrl-C ends it")
    try:
        server.serve_forever()
    finally:
        server.server_close()
    return 0


def pixel(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6}),(\d{1,6})", text, re.ASCII)
    if found is None:
        raise UsageError(f"--pixel {text}: expected X,Y")
    return int(found[1]), int(found[2])
