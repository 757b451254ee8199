#!/usr/bin/env python3
"""Real programs on softgen: runs the table of programs and writes docs/programs.md.

    tools/programs                      every program that is installed
    tools/programs kmscube glxgears     some, by name or by the beginning of a name
    tools/programs --llvmpipe …         each once more on llvmpipe (lavapipe, pocl), for the ratio of their own frames a second
    tools/programs --soak weston        two minutes of each; memory, descriptors and processes of the simulator are watched
    tools/programs --witness            the subset of `make witness`
    tools/programs --merge FILE …       results of runs beside each other (--results FILE), onto the page

Results are kept (--results) and merged, so that the page can be made of several runs; where none are kept, the page's own rows are.
Pictures are the last frames; look at them. A display that stays blank is compared with llvmpipe's. Programs of PyPI are looked for in
.venv/programs: `python3 -m venv .venv/programs && .venv/programs/bin/pip install …`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))  # run as a folder, it is there already

from page import Result, page, rows_of  # noqa: E402
from soak import Growth, Watch  # noqa: E402

PAGE = ROOT / "docs" / "programs.md"
WAYLAND = {"LIBSEAT_BACKEND": "builtin", "SEATD_VTBOUND": "0", "WLR_LIBINPUT_NO_DEVICES": "1"}
PYPI = ROOT / ".venv" / "programs"
PATH = f"{os.environ.get('PATH', '')}:/usr/games:/usr/libexec"
LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
LLVMPIPE = {"LIBGL_ALWAYS_SOFTWARE": "1", "VK_ICD_FILENAMES": LAVAPIPE, "VK_DRIVER_FILES": LAVAPIPE,
            "OCL_ICD_VENDORS": "/etc/OpenCL/vendors/pocl.icd"}  # fmt: skip
KMS_SWRAST, PIXMAN = {"MESA_LOADER_DRIVER_OVERRIDE": "kms_swrast"}, {"WLR_RENDERER": "pixman"}
NO_MODULE = re.compile(r"^ModuleNotFoundError: (.*)$", re.MULTILINE)
TIME_IS_UP = re.compile(r"softgen: time is up after")
QUIET = re.compile(r"softgen: (\d+ frames? presented|live at|\d+ pictures? in|time is up|the run ended while work was running|"
                   r"a program has turned the display off|still running after|[-\w ]+: no driver supports|[-\w ]+: \w+ is not installed)")
MOST_SAID = 160  # characters of an error
SEEN = -1  # in place of the exit code of a program that was ended because enough was seen
BLANK = "nothing is on the display"
ENDED = "it ended, and nothing is on the display"
SOAK = 120  # seconds
EVERY, ENOUGH = 5, 8  # every so manyth frame is saved; a program that has shown so many of them has been seen
SLACK = 60.0  # seconds beyond a program's own until a run counts as hung
DISPLAY = "640x480"


@dataclass
class Program:
    """A row of the table."""

    name: str
    package: str
    command: str
    on: str = "none"
    gpu: str = "kbl"
    seconds: float = 20
    rate: str = ""
    expect: str = ""
    witness: bool = False

    @property
    def binary(self) -> str:
        """The program whose presence shows that the package is installed."""
        words = [word for word in self.command.replace("|", " ").split() if "=" not in word]
        skipped = {"cage", "--", "env", "sleep", "1", "dbus-run-session", "cd", "mkdir", "$RUN", "$RUN/profile", "&&"}
        return next(word.rstrip(";") for word in words if word not in skipped)


def table() -> Iterator[Program]:
    """The programs; a set of rows has one for each of its names."""
    for name, row in tomllib.loads((HERE / "table.toml").read_text("utf-8")).items():
        names, gpus = row.pop("names", None), row.pop("gpus", [row.get("gpu", "kbl")])
        for each, gpu in zip(names or [""], cycle(gpus)):  # the GPUs have no end
            label = f"{name}-{each.split()[0]}" if each else name
            own = {key: row[key].replace("NAME", each) for key in ("package", "command")}
            yield Program(label, **(row | own | {"gpu": gpu}))


def softgen_command(program: Program, folder: Path, seconds: float) -> list[str]:
    command = program.command.replace("$HERE", str(HERE)).replace("$RUN", str(folder))
    command = command.replace("$PYPI", str(PYPI / "bin" / "python"))
    inner = [str(HERE / "xorg.sh"), command] if program.on == "x" else ["sh", "-c", command]
    if program.on == "wayland" and os.geteuid() == 0:  # compositors of wlroots refuse root; they have a user of their own namespace
        inner = ["unshare", "--user", "--map-user=1000", "--map-group=1000", *inner]
    pictures = [] if program.on == "none" else ["--frames", str(folder / "frames"), "--every", str(EVERY), "--last"]
    options = ["--gpu", program.gpu, "--display", DISPLAY, "--time-limit", str(seconds), "--report", str(folder / "report.json")]
    return [sys.executable, "-m", "softgen", "run", *options, "--keep-going", *pictures, "--", *inner]


def environment(program: Program, folder: Path, llvmpipe: bool) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    cache = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # compiled kernels stay
    own = {"XDG_RUNTIME_DIR": str(runtime), "HOME": str(folder), "XDG_CACHE_HOME": cache, "SOFTGEN_FAILURES": str(folder / "failures"),
           "SDL_AUDIODRIVER": "dummy", "ALSOFT_DRIVERS": "null", "PATH": PATH}  # fmt: skip
    if program.on == "wayland":  # kms_swrast wants dumb buffers, which render nodes do not have
        return env | own | WAYLAND | (LLVMPIPE | PIXMAN if llvmpipe else {})
    return env | own | (LLVMPIPE | KMS_SWRAST if llvmpipe else {})


@dataclass
class Ran:
    """One run of a program."""

    code: int | None  # None: it was not over in time
    output: str
    report: dict[str, Any]
    pixels: np.ndarray[Any, Any] | None
    growth: dict[str, Any]


def opened(picture: Path) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(picture).convert("RGB"))


def wait(child: subprocess.Popen[bytes], frames: Path | None, program: Program, limit: float) -> int:
    """Wait for a program, up to a limit (TimeoutExpired as of Popen.wait). Where `frames` is given, it is ended when enough of them are
    there; without an X server, whose first frames are empty, also so many seconds after the first, as the table says."""
    until = time.monotonic() + limit
    seen: float | None = None
    while True:
        try:
            return child.wait(min(1.0, max(until - time.monotonic(), 0.01)))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until:
                raise
        found = sorted(frames.glob("*.png")) if frames else []
        seen = seen or (time.monotonic() if found and program.on != "x" else None)
        if len(found) >= ENOUGH and look(opened(found[-1])) != "blank" or seen and time.monotonic() >= seen + program.seconds:
            child.terminate()
            child.wait(SLACK)
            return SEEN


def execute(program: Program, args: argparse.Namespace, llvmpipe: bool = False) -> Ran:
    """Run a program; its last frame is kept in a folder."""
    seconds, keep = SOAK if args.soak else program.seconds * args.patience, args.pictures
    with tempfile.TemporaryDirectory(prefix="programs-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        reading, writing = os.pipe()  # standard input stays open and empty: kmscube ends at its end
        output = (folder / "output").open("w+b")
        command, env = softgen_command(program, folder, seconds), environment(program, folder, llvmpipe)
        child = subprocess.Popen(command, cwd=ROOT, stdin=reading, stdout=output, stderr=subprocess.STDOUT, env=env)
        watch = Watch(child.pid) if args.soak else None
        frames = folder / "frames" if not program.rate and not program.expect else None
        try:
            code: int | None = watch.wait(child, seconds + SLACK) if watch else wait(child, frames, program, seconds + SLACK)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            code = None
        finally:
            os.close(reading)
            os.close(writing)
        output.seek(0)
        text = output.read().decode(errors="replace")
        output.close()
        report = folder / "report.json"
        found = sorted((folder / "frames").glob("*.png"))
        pixels = opened(found[-1]) if found else None
        if keep:
            label = f"{program.name}{'-llvmpipe' if llvmpipe else ''}"
            (keep / f"{label}.txt").write_text(text, "utf-8")
            if found:
                shutil.copy(found[-1], keep / f"{label}.png")
        return Ran(code, text, json.loads(report.read_text("utf-8")) if report.exists() else {}, pixels, watch.growth() if watch else {})


def own_rate(program: Program, output: str) -> float | None:
    """The program's own frames a second, the last it told; of milliseconds a frame (a group of that name, ms), so many a second."""
    found = list(re.finditer(program.rate, output, re.MULTILINE)) if program.rate else []
    try:
        number = float(found[-1][1].replace(",", "")) if found else None
    except ValueError:
        return None
    return 1000 / number if number and "ms" in found[-1].re.groupindex else number


def stayed(ran: Ran) -> bool:
    """Whether a program did not end by itself."""
    return ran.code == SEEN or bool(TIME_IS_UP.search(ran.output))


def first_error(program: Program, ran: Ran) -> str:
    """The first message of softgen that is no summary; else, where the program failed, its last line."""
    lines = [line.strip() for line in ran.output.replace("softgen: ", "\nsoftgen: ").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("softgen: ") and not QUIET.match(line)), "")
    if said:
        return said.removeprefix("softgen: ")
    if not stayed(ran) and ran.code != 0 and ran.code is not None:
        said = next((line for line in reversed(lines) if not line.startswith("softgen: ")), "it said nothing")
        return f"exit code {ran.code}: {said[:MOST_SAID]}"
    if program.expect and not re.search(program.expect, ran.output):
        return f"its output has no {program.expect!r}"
    return ""


def look(pixels: np.ndarray[Any, Any] | None) -> str:
    """What is on a picture, as far as a script can tell."""
    if pixels is None:
        return "none"
    colours = len(np.unique(pixels.astype(np.uint32) @ np.array([1, 1 << 8, 1 << 16], np.uint32)))
    return "blank" if colours == 1 else f"{colours} colours"


def judge(program: Program, ran: Ran) -> Result:
    error, picture = first_error(program, ran), look(ran.pixels) if program.on != "none" else ""
    verdict = "hangs" if ran.code is None else "fails" if error or picture in ("none", "blank") else "runs"
    if not error and verdict == "fails":
        error = "nothing was presented" if picture == "none" else BLANK if program.expect or stayed(ran) else ENDED
    frames = ran.report.get("frames", {}).get("presented", 0)
    rate = own_rate(program, ran.output)
    return Result(program.name, program.package, program.command, program.gpu, verdict, picture, frames, rate, None, error)


def absent(program: Program, reason: str) -> Result:
    return Result(program.name, program.package, program.command, program.gpu, "absent", error=reason)


def run(program: Program, args: argparse.Namespace) -> Result:
    """A program's row."""
    if shutil.which(program.binary.replace("$PYPI", str(PYPI / "bin" / "python")), path=PATH) is None:
        return absent(program, f"{program.binary} is not installed")
    ran = execute(program, args)
    if missing := NO_MODULE.search(ran.output):
        return absent(program, missing[1])
    result = judge(program, ran)
    result.soak = ran.growth
    if args.soak and (grown := Growth(**ran.growth).complaint()):
        result.verdict, result.error = "fails", result.error or grown
    if result.picture == "blank" and result.error == BLANK or args.llvmpipe and result.rate:
        beside_llvmpipe(program, result, execute(program, args, llvmpipe=True))
    return result


def beside_llvmpipe(program: Program, result: Result, other: Ran) -> None:
    """What a run on llvmpipe adds to a row: a ratio, or that its display stays blank, too."""
    rate = own_rate(program, other.output)
    result.ratio = round(result.rate / rate, 3) if result.rate and rate else None
    if result.error == BLANK and look(other.pixels) == "blank":
        result.verdict, result.picture, result.error = "runs", "blank, as on llvmpipe", ""


def merged(path: Path, results: list[Result], before: Path | None = None) -> list[dict[str, Any]]:
    """Results of this run over those that were kept, else over the rows of the page before; in the order of the table."""
    if path.exists():
        rows = json.loads(path.read_text("utf-8"))
    else:
        rows = rows_of(before.read_text("utf-8")) if before and before.exists() else []
    kept = {row["name"]: row for row in rows}
    for result in results:
        last = kept.get(result.name, {})
        kept[result.name] = asdict(result) | {key: last[key] for key in ("ratio", "soak") if last.get(key) and not getattr(result, key)}
    order = {program.name: at for at, program in enumerate(table())}
    found = sorted((row for row in kept.values() if row["name"] in order), key=lambda row: order[row["name"]])
    path.write_text(json.dumps(found, indent=1), "utf-8")
    return found


def chosen(args: argparse.Namespace) -> list[Program]:
    return [program for program in table() if (program.witness or not args.witness)
            and (not args.names or any(program.name == name or program.name.startswith(f"{name}-") for name in args.names))]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/programs", description="Run a table of real programs on softgen.")
    parser.add_argument("names", nargs="*", help="programs, or sets of them (default: all)")
    parser.add_argument("--soak", action="store_true", help="two minutes of each, with a look at memory, descriptors and processes")
    parser.add_argument("--llvmpipe", action="store_true", help="also on llvmpipe, for the ratio")
    parser.add_argument("--witness", action="store_true", help="only those of make witness")
    parser.add_argument("--patience", type=float, default=1, help="times the limits of the table (default 1), on a machine with other work")
    parser.add_argument("--pictures", type=Path, help="keep last frames and output in this folder")
    parser.add_argument("--results", type=Path, default=HERE / "results.json", help="kept and merged here (default %(default)s)")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], metavar="FILE", help="run nothing: add results of other runs")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write (default %(default)s)")
    args = parser.parse_args()
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
    if args.merge:
        found = [Result(**row) for path in args.merge for row in json.loads(path.read_text("utf-8"))]
        args.page.write_text(page(merged(args.results, found, args.page)), "utf-8")
        return 0
    results = []
    for program in chosen(args):
        results.append(run(program, args))
        print(f"{program.name}: {results[-1].verdict} {results[-1].picture} {results[-1].error}", flush=True)
        rows = merged(args.results, results[-1:], args.page)
    if results:
        args.page.write_text(page(rows), "utf-8")
    return int(any(result.verdict in ("fails", "hangs") for result in results))


if __name__ == "__main__":
    sys.exit(main())
