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
    """All that is measured. Each is told as it comes: some take minutes, and what was found is not lost where one is ended."""
    for name in names:
        print(f"measuring {name} …", file=sys.stderr)
        for measurement in importlib.import_module(f"bench.{name}").measure():
            print("  ".join(text for text in ("", *row(name, measurement)[1:]) if text), file=sys.stderr, flush=True)
            yield name, measurement


def row(name: str, measurement: Measurement) -> tuple[str, ...]:
    ratio = f"{measurement.ratio:.2f} x {measurement.peer}" if measurement.ratio is not None else ""
    rate = (f"{measurement.rate:,.0f}", f"{measurement.unit}/s") if measurement.unit else ("", "")
    return paint()(name, "name"), measurement.what, *rate, ratio, *([measurement.note] if measurement.note else [])


def as_json(name: str, measurement: Measurement) -> dict[str, object]:
    return {"benchmark": name, "what": measurement.what, "rate": measurement.rate, "unit": measurement.unit or None,
            measurement.quantity: measurement.seconds, "peer": measurement.peer or None, "ratio": measurement.ratio,
            "note": measurement.note or None}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(available()) or 'none yet'}; default: all")
    parser.add_argument("--json", action="store_true", help="a list, for machines")
    args = parser.parse_args()
    unknown = set(args.names) - set(available())
    if unknown:
        parser.error(f"no benchmark {sorted(unknown)[0]!r}")
    found = list(measurements(args.names or available()))
    if args.json:
        print_json([as_json(name, measurement) for name, measurement in found])
    elif found:
        print("\n".join(table([row(name, measurement) for name, measurement in found], right=(2,))))
    else:
        print("no benchmarks yet")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SoftgenError as error:
        complain(error)
        sys.exit(1)
