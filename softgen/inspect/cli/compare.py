"""`softgen compare EXPECTED GOT`: two pictures, or two folders of them, pixel by pixel."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.errors import DecodeError, UsageError
from softgen.inspect.cli.output import counted, paint, print_json

if TYPE_CHECKING:
    from PIL.Image import Image

EXAMPLE = """examples:
  softgen compare expected.png got.png             exact
  softgen compare expected/ out/                   every picture of the first folder
  softgen compare a.png b.png --most 10 --by 2     10 pixels may differ by anything, all others by 2 in each channel
  softgen compare a.png b.png --difference d.png   where they differ, as a picture

softgen is deterministic: golden pictures need no tolerance from one machine to another.
exit codes: 0 the same, 1 different, 2 usage error"""
SUFFIXES = (".png", ".ppm", ".bmp", ".tga", ".webp", ".tif", ".tiff")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("compare", description="Compare two pictures, or two folders of pictures, pixel by pixel.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("expected", help="a picture, or a folder of pictures")
    parser.add_argument("got", help="another one")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="as many pixels may differ (default: 0)")
    parser.add_argument("--by", type=int, default=0, metavar="K", help="a channel of any pixel may differ by K of 255 (default: 0)")
    parser.add_argument("--difference", metavar="FILE", help="write where two pictures differ, as a PNG file")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.diff.pictures import compare, difference
    from softgen.inspect.output_file import write_file
    from softgen.inspect.report.pictures import png

    if args.most < 0 or args.by < 0:
        raise UsageError("--most and --by are numbers from 0 on")
    rows: list[dict[str, Any]] = []
    for name, expected, got in pairs(Path(args.expected), Path(args.got)):
        if got is None:
            rows.append({"name": name, "same": False, "text": "there is no such picture"})
            continue
        found = compare(opened(expected), opened(got), args.most, args.by)
        rows.append({"name": name, "text": str(found)} | found.as_json())
        if args.difference and found.sizes[0] == found.sizes[1]:
            write_file(args.difference, png(difference(opened(expected), opened(got))))
    wrong = [row for row in rows if not row["same"]]
    if args.json:
        print_json({"same": not wrong, "pictures": rows}, 1)
    else:
        colour = paint()
        for row in wrong or rows[:1]:
            print(f"{colour(row['name'], 'name')}: {colour(row['text'], 'bad' if not row['same'] else 'good')}")
        if len(rows) > 1:
            print(f"{counted(len(rows), 'picture')}, {len(wrong)} different")
    return 1 if wrong else 0


def pairs(expected: Path, got: Path) -> list[tuple[str, Path, Path | None]]:
    """The pictures to compare; None: there is none of that name."""
    for path in (expected, got):
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    if expected.is_dir() != got.is_dir():
        raise UsageError("compare a picture with a picture, or a folder with a folder")
    if not expected.is_dir():
        return [(str(got), expected, got)]
    names = sorted(str(path.relative_to(expected)) for path in expected.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not names:
        raise UsageError(f"{expected}: has no pictures")
    return [(name, expected / name, got / name if (got / name).is_file() else None) for name in names]


def opened(path: Path) -> Image:
    """A picture from a file."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(path)
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DecodeError(f"{path}: is no picture: {error}") from None
    return image
