"""Breakpoints and watches: what a user types, and whether a thread meets it.

ps                          every pixel shader thread, at its first instruction
/ps+0x20, 2:57/cs/g0.t4     a POSITION: an instruction of any thread, or a thread
saxpy.cl:6                  a line of a source
… if pixel == (12, 30)      of a pixel shader: the thread that shades this pixel
… if r12:f == 1.5           some lane of a register has this value
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from softgen.errors import UsageError
from softgen.eu.interpreter import KernelProgram
from softgen.inspect.session.control import OfferedThread
from softgen.inspect.session.thread import ThreadCursor, pixels_of
from softgen.position import STAGES, Position, parse
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch

PIXEL = re.compile(r"pixel\s*==\s*\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)", re.ASCII)
REGISTER = re.compile(r"([a-z]+\d*(?:\.\d+)?(?::\w+)?)\s*==\s*(\S+)", re.ASCII)
LINE = re.compile(r"(.+):(\d+)", re.ASCII)
EXAMPLE = "break ps, break 2:57/ps+0x20, break saxpy.cl:6, break ps if pixel == (12, 30)"
# The offsets of a source line in a kernel.
OffsetsOf = Callable[[KernelProgram, str, int], frozenset[int]]


@dataclass
class Breakpoint:
    """A place, with a condition."""

    number: int
    text: str
    position: Position
    line: tuple[str, int] | None = None
    pixel: tuple[int, int] | None = None
    register: tuple[str, float] | None = None
    hits: int = 0

    def wants(self, offered: OfferedThread) -> bool:
        """Whether a thread that starts may meet it."""
        whole = Position(self.position.submission, self.position.command, self.position.stage, self.position.group, self.position.thread)
        if offered.position not in whole:
            return False
        if self.pixel is None:
            return True
        if offered.position.stage != "ps":
            return False
        held = PixelDispatch.from_buffer_copy(offered.runner.thread.pixel.tobytes())
        return self.pixel in pixels_of(held, offered.dispatch.simd)

    def meets(self, cursor: ThreadCursor, offsets: OffsetsOf) -> bool:
        """Whether a thread is there, before an instruction."""
        here = cursor.position
        if self.line is not None:
            if here not in self.position or here.offset not in offsets(cursor.runner.code, *self.line):
                return False
        elif self.position.offset is None and self.position.instructions is None:
            if here.instructions or here not in self.position:
                return False
        elif here not in self.position:
            return False
        if self.pixel is not None and self.pixel not in cursor.pixels():
            return False
        return self.register is None or self.register[1] in cursor.lanes(self.register[0])


@dataclass
class Watch:
    """A register of the thread, or bytes of memory, whose change stops it."""

    number: int
    text: str
    register: str = ""
    address: int = 0
    size: int = 0


def breakpoint_of(number: int, text: str) -> Breakpoint:
    """A breakpoint as it is typed."""
    place, _, condition = text.partition(" if ")
    place, condition = place.strip(), condition.strip()
    found = Breakpoint(number, text, Position())
    if place in STAGES:
        found.position = Position(stage=place)
    elif (line := LINE.fullmatch(place)) and not re.fullmatch(r"[\d:]+", place):
        found.line = line[1], int(line[2])
    else:
        try:
            found.position = parse(place)
        except UsageError:
            raise UsageError(f"{text!r} is no place to stop at; places look like {EXAMPLE}") from None
    if condition:
        _condition(found, condition)
    return found


def _condition(found: Breakpoint, text: str) -> None:
    if pixel := PIXEL.fullmatch(text):
        found.pixel = int(pixel[1]), int(pixel[2])
        return
    register = REGISTER.fullmatch(text)
    if register is None:
        raise UsageError(f"{text!r} is no condition; conditions are pixel == (X, Y) and REGISTER == VALUE, such as r12:f == 1.5")
    try:
        value = float(int(register[2], 0)) if not re.search(r"[.en]", register[2]) or register[2][:2] == "0x" else float(register[2])
    except ValueError:
        raise UsageError(f"{text!r} is no condition: {register[2]} is no number") from None
    found.register = register[1], value


def watch_of(number: int, text: str) -> Watch:
    """A watch as it is typed: a register, or `mem ADDRESS [SIZE]`."""
    words = text.split()
    if words[:1] == ["mem"] and 2 <= len(words) <= 3:
        try:
            return Watch(number, text, address=int(words[1], 0), size=int(words[2], 0) if len(words) == 3 else 4)
        except ValueError:
            raise UsageError(f"watch {text}: an address and a size are numbers") from None
    if len(words) != 1:
        raise UsageError("watch what? a register (r12:f), or mem ADDRESS [SIZE]")
    return Watch(number, text, register=words[0])
