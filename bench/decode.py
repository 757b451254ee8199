"""Commands decoded to names, fields and pointed-to state, per second, from a capture that comes with softgen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import Measurement, best_time
from softgen.bits import describe
from softgen.bits.catalogue import Catalogue, spec_files
from softgen.inspect.decode.decoding import Decoder
from softgen.streamer.parser import Command
from softgen.trace.file import open_trace

CAPTURE = Path(__file__).parent.parent / "tests" / "data" / "kbl-vk-compute"


def walk() -> int:
    return sum(isinstance(item.what, Command) for _, items in Decoder(open_trace(CAPTURE)).work() for item in items)


def fields() -> int:
    done = 0
    for _, items in Decoder(open_trace(CAPTURE)).work():
        for item in items:
            if isinstance(item.what, Command) and item.what.layout:
                describe.to_json(item.what.layout, item.what.dwords)
                done += 1
    return done


def pages() -> int:
    """Every page read anew, as a first run does when it needs them all."""
    return sum(1 for _ in Catalogue((name, file.read_text("utf-8")) for name, file in spec_files(".layout")).layouts())


def measure() -> Iterator[Measurement]:
    table = (("capture walked and pointers followed", walk, "commands"), ("the same with every field named", fields, "commands"),
             ("pages read", pages, "layouts"))  # fmt: skip
    for what, work, unit in table:
        yield Measurement(what, work(), unit, best_time(work))
