"""`softgen doctor`: what this machine has, what is missing, and what to do about it.

The verb prints what `softgen.inspect.machine` finds; it changes nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from itertools import groupby

from softgen.inspect.cli.output import paint, print_json, table

EXAMPLE = """examples:
  softgen doctor               every line: ok, missing, or what to do
  softgen doctor --json        the same for machines

exit codes: 0 all that softgen needs is there (drivers and oracles may be missing), 1 something it needs is not
"""
ROLE = {"ok": "good", "missing": "bad", "low": "warn", "absent": "note"}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "doctor", help="what this machine has", description="What this machine has, what is missing, and what to do about it.",
        epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object, for machines")


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.machine import examine
    findings = list(examine())
    failed = any(finding.needed and finding.status == "missing" for finding in findings)
    if args.json:
        print_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
        return int(failed)
    colour = paint()
    for area, members in groupby(findings, key=lambda finding: finding.area):
        print(colour(area, "heading"))
        rows = [("  " + colour(f.status, ROLE[f.status]), f.name, f.detail + (f"  {colour('→ ' + f.advice, 'value')}" if f.advice else ""))
                for f in members]
        print("\n".join(table(rows)))
    print("something softgen needs is missing" if failed else "all that softgen needs is here")
    return int(failed)
