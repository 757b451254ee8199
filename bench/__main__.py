"""`python -m bench`: run the benchmarks and print rates and ratios."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement
from softgen.errors import SoftgenError
from softgen.inspect.cli.output import complain, paint, print_json, table

FOLDER = Path(__file__).parent


def available() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def measurements(names: list[str]) -> Iterator[tuple[str, Measurement]]:
    for name in names:
        print(f"measuring {name} …", file=sys.stderr)
        for one in importlib.import_module(f"bench.{name}").measure():
            yield name, one


def row(name: str, one: Measurement) -> tuple[str, ...]:
    ratio = f"{one.ratio:.2f} x {one.peer}" if one.ratio is not None else ""
    rate = (f"{one.rate:,.0f}", f"{one.unit}/s") if one.unit else ("", "")
    return paint()(name, "name"), one.what, *rate, ratio, *([one.note] if one.note else [])


def as_json(name: str, one: Measurement) -> dict[str, object]:
    return {"benchmark": name, "what": one.what, "rate": one.rate, "unit": one.unit or None, one.quantity: one.seconds,
            "peer": one.peer or None, "ratio": one.ratio, "note": one.note or None}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(available()) or 'none yet'}; all unless told")
    parser.add_argument("--json", action="store_true", help="a list, for machines")
    args = parser.parse_args()
    unknown = set(args.names) - set(available())
    if unknown:
        parser.error(f"no benchmark {sorted(unknown)[0]!r}")
    found = list(measurements(args.names or available()))
    if args.json:
        print_json([as_json(name, one) for name, one in found])
    elif found:
        print("\n".join(table([row(name, one) for name, one in found], right=(2,))))
    else:
        print("no benchmarks yet")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SoftgenError as error:
        complain(error)
        sys.exit(1)
