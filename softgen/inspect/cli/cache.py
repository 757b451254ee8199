"""`softgen cache`: shows or clears the cache of compiled objects."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from softgen.inspect.cli.output import counted, paint, print_json, table

EXAMPLE = """examples:
  softgen cache                its folder, size and age
  softgen cache --clear        remove every object; programs that run meanwhile compile theirs again
  softgen cache --json         the same for machines
  softgen cache --export DIR   copy every object to a folder that a team shares, and print the variable that names it

The cache is under XDG_CACHE_HOME. The least recently used objects are evicted; softgen works without a cache. A shared folder
(SOFTGEN_SHARED_CACHE=DIR@SUM) is read and never written; objects are for the installation of softgen that made them, or an equal image.

exit codes: 0 fine, 1 some of it could not be removed, 2 usage error"""
MEGABYTE = 1e6
AGES = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("cache", description="The cache of compiled objects.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--clear", action="store_true", help="remove every object")
    parser.add_argument("--export", metavar="DIR", help="copy every object to a folder that others may read")
    parser.add_argument("--json", action="store_true", help="one object, for machines")


def age(seconds: float) -> str:
    """'3 days ago'."""
    unit, size = next((unit for unit in AGES if seconds >= unit[1]), AGES[-1])
    return f"{counted(max(int(seconds // size), 0), unit)} ago"


def run(args: argparse.Namespace) -> int:
    from softgen.cache import Cache, default_folder

    cache = Cache(default_folder())
    shared = cache.export(Path(args.export)) if args.export else ""
    removed = cache.clear() if args.clear else 0
    kept, exists = cache.kept(), default_folder().exists()
    size, state = sum(entry.size for entry in kept), "ok" if cache.private() else "unsafe" if exists else "empty"
    found = {"folder": str(default_folder()), "state": state, "objects": len(kept), "bytes": size, "limit": cache.largest,
            "oldest": kept[0].used if kept else None, "newest": kept[-1].used if kept else None, "removed": removed}  # fmt: skip
    found |= {"shared": shared} if shared else {}
    if args.json:
        print_json(found)
    elif shared:
        print(f"SOFTGEN_SHARED_CACHE={shared}")
    else:
        show(found)
    return int(args.clear and bool(kept))


def show(facts: dict[str, Any]) -> None:
    colour, now = paint(), time.time()
    notes = {"ok": "", "empty": "not made yet", "unsafe": "not used: it is not a folder that you alone can write to"}
    note = notes[facts["state"]]
    rows = [("folder", facts["folder"] + (f" ({note})" if note else "")), ("objects", f"{facts['objects']:,}"),
            ("size", f"{facts['bytes'] / MEGABYTE:.1f} MB of {facts['limit'] / MEGABYTE:.0f} MB")]  # fmt: skip
    for name in ("oldest", "newest"):
        if facts[name] is not None:
            rows.append((name, f"last used {age(now - facts[name])}"))
    if facts["removed"]:
        rows.append(("removed", f"{facts['removed']:,}"))
    print("\n".join(table([(colour(name, "name"), value) for name, value in rows])))
