"""What each capture of real drivers still lacks: every one is replayed, and the first thing that is not simulated is written down.

    python -m tests.pictures.captures [NAME…]        prints the lines of captures.txt; all captures unless named

A capture that replays to its end has the word `replays`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, SHARED

TRACES = SHARED / "traces"
LIST = Path(__file__).with_name("captures.txt")
PATIENCE = 300  # seconds for a capture
ADDRESS = re.compile(r" at 0x[0-9a-f]+ \(batch 0x[0-9a-f]+, gen [\d.]+\)|0x[0-9a-f]{5,}")
REPLAYS = "replays"


def names() -> list[str]:
    return sorted(path.name for path in TRACES.iterdir() if path.is_dir()) if TRACES.is_dir() else []


def lacks(name: str, *options: str) -> str:
    """What a capture lacks, without addresses; `replays` for nothing."""
    command = [sys.executable, "-m", "softgen", "replay", str(TRACES / name), "--json", "--time-limit", str(PATIENCE), *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not ran.stdout:
        return f"ends with code {ran.returncode}: {ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else 'nothing said'}"
    found = json.loads(ran.stdout)
    problems = [item["what"] for kind in ("unsupported", "faults") for item in found[kind]]
    return " ".join(ADDRESS.sub("", problems[0]).split()) if problems else REPLAYS


def listed() -> dict[str, str]:
    rows = [line.split("\t") for line in LIST.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return dict(rows)


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        print(name, lacks(name), sep="\t", flush=True)
