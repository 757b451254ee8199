"""Two engines for the targets: atheris (libFuzzer, guided by coverage) where it is installed, and mutation of the corpus everywhere.

    python -m tests.fuzz.engine decode --seconds 60 --finds build/fuzz/decode

Before each input that mutation makes, the input is in the file `current` of the finds: a process that a signal ends leaves it there.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

CORPUS = Path(__file__).resolve().parent / "corpus"
FOUND = Path(__file__).resolve().parent / "found"
EDGES = (0, 1, 7, 0x7F, 0x80, 0xFF, 0xFFF, 0x1000, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFF000, 0xFFFFFFFC, 0xFFFFFFFF)


class TooSlow(Exception):
    """An input took longer than it may."""


class Mutator:
    """Inputs like those of a corpus."""

    def __init__(self, corpus: list[bytes], rng: random.Random, most: int = 1 << 16) -> None:
        self.corpus, self.rng, self.most = corpus, rng, most

    def next(self) -> bytes:
        data = bytearray(self.rng.choice(self.corpus))
        for _ in range(self.rng.choice((1, 1, 2, 4, 8))):
            self.change(data)
        return bytes(data[: self.most])

    def change(self, data: bytearray) -> None:
        rng, at = self.rng, self.rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 0 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 1 if data:
                data[at % len(data)] = rng.choice((0, 1, 0xFF, rng.randrange(256)))
            case 2:
                data[at & ~3 : (at & ~3) + 4] = struct.pack("<I", rng.choice((*EDGES, rng.getrandbits(32))))
            case 3:
                del data[at : at + rng.choice((1, 4, 7, 16, 64))]
            case 4:
                data[at:at] = rng.randbytes(rng.choice((1, 4, 7, 16)))
            case 5:
                size = rng.choice((4, 7, 16, 28, 64))
                data[at:at] = data[at : at + size]
            case 6:
                other = rng.choice(self.corpus)
                start = rng.randrange(len(other) + 1)
                data[at : at + 32] = other[start : start + 32]
            case _ if data:
                data[at % len(data)] = (data[at % len(data)] + rng.choice((-1, 1))) & 0xFF


def corpus(target: str, *more: Path) -> list[tuple[str, bytes]]:
    """Name and bytes of every input that is kept for a target."""
    paths = [path for folder in (CORPUS / target, FOUND / target, *more) if folder.is_dir() for path in sorted(folder.iterdir())]
    return [(path.name, path.read_bytes()) for path in paths if path.is_file()]


def inputs(target: str, rng: random.Random, *more: Path) -> Iterator[bytes]:
    """The corpus, then inputs like it."""
    known = [data for _, data in corpus(target, *more)]
    yield from known
    mutator = Mutator(known, rng)
    while True:
        yield mutator.next()


def limited(target: str, data: bytes) -> None:
    """Run one input; TooSlow after LIMIT seconds."""
    from tests.fuzz.targets import LIMIT, TARGETS

    def late(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {LIMIT:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        TARGETS[target](data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def mutate(target: str, seconds: float, finds: Path, seed: int) -> int:
    """Mutation for so long; the result is the number of finds."""
    end, tried, found, seen = time.monotonic() + seconds, 0, 0, set[str]()
    current = finds / "current"
    for data in inputs(target, random.Random(seed)):
        if time.monotonic() > end:
            break
        current.write_bytes(data)
        tried += 1
        try:
            limited(target, data)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            if (key := f"{type(error).__name__} at {place.filename}:{place.lineno}") not in seen:
                seen.add(key)
                found += 1
                path = finds / f"find-{len(seen)}-{os.getpid()}"
                path.write_bytes(data)
                print(f"{target}: {key}: {error}\n  {path}", flush=True)
    current.unlink(missing_ok=True)
    print(f"{target}: {tried:,} inputs by mutation, {found} finds", flush=True)
    return found


def guide(target: str, seconds: float, finds: Path) -> int:
    """libFuzzer for so long; it ends the process itself at the first find."""
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with atheris.instrument_imports(include=["softgen"]):
        from tests.fuzz.targets import LIMIT, MOST_BYTES, TARGETS

    def fuzz_one_input(data: bytes) -> None:
        TARGETS[target](data)

    made = finds / "corpus"
    made.mkdir(exist_ok=True)
    kept = [str(folder / target) for folder in (CORPUS, FOUND) if (folder / target).is_dir()]
    options = [f"-max_total_time={int(seconds)}", f"-timeout={int(LIMIT)}", f"-max_len={MOST_BYTES}", f"-artifact_prefix={finds}/",
               "-rss_limit_mb=6000", "-print_final_stats=1", "-verbosity=0"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(made), *kept], fuzz_one_input)
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz one target")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of mutation; default: another each time")
    parser.add_argument("--finds", type=Path, required=True, help="folder for inputs that fail, and what coverage led to")
    parser.add_argument("--engine", choices=("coverage", "mutation"), default="mutation")
    given = parser.parse_args()
    given.finds.mkdir(parents=True, exist_ok=True)
    if given.engine == "coverage":
        return guide(given.target, given.seconds, given.finds)
    return min(mutate(given.target, given.seconds, given.finds, given.seed if given.seed is not None else time.time_ns()), 1)


if __name__ == "__main__":
    sys.exit(main())
