"""Render target write messages (read.py has the reads): the parts of their payload, and the pixels that they write.

A payload has a header of two registers or none, then parts in a fixed order; which ones there are is said by the header, or by the draw's
state where there is none (BDW 7659). The message's length decides where only one combination of parts has it.

Reads   MH_RT EXTENDED_RENDER_TARGET
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import NamedTuple, Protocol

from softgen.bits import catalogue
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, SoftgenError, Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import bool_, f16, f32, u8, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions.message import Message, MessagePlan, answers
from softgen.shared_functions.pixel_backend.write import Sources

NAME = "render_target_write"
HEADER = "MH_RT"
HEADER_BYTES = 2 * GRF_BYTES
COLORS = "colors"
# Parts in their order (KBL 15390-15435, 25423-25463); on Gen4.5 AA alpha and destination stencil share a register.
ORDER = ("destination_stencil", "source0_alpha", "omask", COLORS, "source_depth", "destination_depth", "stencil")
PARTS = tuple(part for part in ORDER if part != COLORS)
IN_TURN = "channels_first"  # attribute: a message of 16 lanes has all channels of the first eight, then those of the others
SIMD8_ONLY = ("stencil",)
AA_ALPHA, WITH_AA_ALPHA = "aa_alpha_present", "destination_stencil"  # the part that has its register


class WriteForm(NamedTuple):
    """What a message subtype means."""

    lanes: int
    first: int = 0  # of the channels of its slot group
    dual: bool = False
    replicated: bool = False
    half: bool = False  # colours and source 0 alpha are 16-bit floats, in one register a channel


FORMS = {
    "simd16": WriteForm(16),
    "simd16_replicated": WriteForm(16, replicated=True),
    "simd16_replicated_tiled": WriteForm(16, replicated=True),
    "simd8_dual_source_low": WriteForm(8, dual=True),
    "simd8_dual_source_high": WriteForm(8, first=8, dual=True),
    "simd8": WriteForm(8),
}
MOST_REGISTERS = 16  # of colours and other parts
GROUP = 16  # channels of a slot group


class Variant(NamedTuple):
    """The code that a message needs of its target."""

    lanes: int
    dual: bool
    alpha: bool
    depth: bool
    stencil: bool
    read: bool = False  # a render target read
    omask: bool = False

    @property
    def number(self) -> int:
        return (self.lanes == GROUP) | sum(bool(on) << bit for bit, on in enumerate(self[1:], 1))

    @classmethod
    def of(cls, number: int) -> Variant:
        return cls(GROUP if number & 1 else 8, *(bool(number >> bit & 1) for bit in range(1, 7)))


class PixelWrite(NamedTuple):
    """A write, its payload taken apart. `target` is the render target index in one lane, `known` as a number unless a header has it."""

    variant: Variant
    surface: int | None  # binding table index; None for the null target
    target: Value
    known: int | None
    sources: Sources
    mask: Value
    first: int
    last: bool
    places: Value | None = None  # of subspans, where a header has them


class PixelRead(NamedTuple):
    """A read: lanes, binding table index, the lanes that read, the channel of lane 0, and the places of subspans if a header has them."""

    lanes: int
    surface: int
    mask: Value
    first: int
    places: Value | None = None

    @property
    def variant(self) -> Variant:
        return Variant(self.lanes, dual=False, alpha=False, depth=False, stencil=False, read=True)


class PixelEnvironment(Protocol):
    """The part of an environment that messages of the pixel backend need."""

    def parts(self, m: Machine) -> Value:
        """The parts that messages without a header have, as bits of PARTS in one lane."""
        ...

    def require(self, condition: Value, error: SoftgenError) -> None:
        """Go on only where the one lane of a condition holds; otherwise the interpreter raises the error."""
        ...

    def write(self, m: Machine, choices: list[tuple[Value, PixelWrite]]) -> None:
        """Execute the write whose condition (one lane) holds; they differ in variant and sources only."""
        ...

    def read(self, m: Machine, read: PixelRead) -> list[Value]:
        """Red, green, blue and alpha of pixels."""
        ...


def part_bits(parts: frozenset[str]) -> int:
    return sum(1 << number for number, part in enumerate(PARTS) if part in parts)


@cache
def _announced(gen: float) -> tuple[str, ...]:
    """The parts that a generation's messages can have."""
    return tuple(part for part in PARTS if _header_has(gen, f"{part}_present"))


def _size(part: str, form: WriteForm) -> int:
    """Registers of a part."""
    if part == COLORS and (form.replicated or form.half):
        return 1 if form.replicated else 4
    if part == COLORS:
        return 4 * (1 + form.dual) * form.lanes // 8
    single = part in ("omask", "stencil", "destination_stencil") or form.half and part == "source0_alpha"
    return 1 if single else form.lanes // 8


def places(form: WriteForm, parts: Iterable[str]) -> dict[str, int]:
    """The register at which colours and parts of a payload begin, after the header."""
    at, found = 0, {}
    for part in ORDER:
        if part == COLORS or part in parts:
            found[part] = at
            at += _size(part, form)
    return found


def form_of(plan: MessagePlan) -> WriteForm:
    return FORMS[plan.words["message_subtype"]]._replace(half=plan.words.get("precision") == "half")


@cache
def combinations_of(gen: float, form: WriteForm, registers: int) -> list[tuple[str, ...]]:
    """The combinations of parts that fill a payload of so many registers."""
    room = registers - _size(COLORS, form)
    there = [part for part in _announced(gen) if form.lanes == 8 or part not in SIMD8_ONLY]
    return [chosen for count in range(len(there) + 1) for chosen in combinations(there, count)
            if sum(_size(part, form) for part in chosen) == room]  # fmt: skip


@cache
def variants(gen: float, form: WriteForm, registers: int) -> frozenset[Variant]:
    """The variants of messages whose first payload has so many registers after the header; a split send may have more."""
    found = set()
    for length in range(registers, MOST_REGISTERS):
        for parts in combinations_of(gen, form, length):
            alpha, depth, stencil, omask = (part in parts for part in ("source0_alpha", "source_depth", "stencil", "omask"))
            found.add(Variant(form.lanes, form.dual, alpha, depth, stencil, omask=omask))
    return frozenset(found)


def _compiled(plan: MessagePlan) -> bool:
    return not _unbuilt(plan)


def _unbuilt(plan: MessagePlan) -> str:
    """Why a message is not simulated; '' for one that is."""
    if plan.words["message_subtype"] not in FORMS:
        return f"message subtype {plan.words['message_subtype']}"
    return next((name for name in ("per_coarse_pixel",) if getattr(plan.fields, name, 0)), "")


class _Payload:
    """The payload of a message."""

    def __init__(self, x: Message[PixelEnvironment], form: WriteForm) -> None:
        self.x, self.form, self.lanes = x, form, form.lanes
        self.start = HEADER_BYTES - GRF_BYTES if x.plan.header else 0  # Message.take skips one register
        self.registers = (x.sent - (HEADER_BYTES if x.plan.header else 0)) // GRF_BYTES

    def sources(self, parts: tuple[str, ...]) -> Sources:
        """What the message has if these are its parts."""
        found = {part: self.start + at * GRF_BYTES for part, at in places(self.form, parts).items()}
        colors = self._colors(found[COLORS])
        second = self._colors(found[COLORS] + (GRF_BYTES // 2 if self.form.half else 4 * GRF_BYTES)) if self.form.dual else None
        alpha = self._value(found["source0_alpha"]) if "source0_alpha" in found else None
        depth = self._lanes(found["source_depth"]) if "source_depth" in found else None
        stencil = self.x.m.convert(self.x.take(u8, found["stencil"], self.lanes), u32) if "stencil" in found else None
        omask = self.x.take(u16, found["omask"] + 2 * self.form.first, self.lanes) if "omask" in found else None
        return Sources(colors, second, alpha, depth, stencil, None if omask is None else self.x.m.convert(omask, u32))

    def _lanes(self, at: int, step: int = 1) -> Value:
        """A value for each lane: a register, or two that are `step` apart."""
        if self.lanes == 8 or step == 1:
            return self.x.take(u32, at, self.lanes)
        return self.x.m.concat(*(self.x.take(u32, at + half * step * GRF_BYTES, 8) for half in (0, 1)))

    def _value(self, at: int) -> Value:
        """A channel that may be of half precision."""
        return self._halves(at, self.lanes) if self.form.half else self._lanes(at)

    def _halves(self, at: int, lanes: int) -> Value:
        m = self.x.m
        return m.bitcast(m.convert(m.bitcast(self.x.take(u16, at, lanes), f16), f32), u32)

    def _colors(self, at: int) -> list[Value]:
        m, form = self.x.m, self.form
        if form.replicated:
            color = [self._halves(at + 2 * channel, 1) if form.half else self.x.take(u32, at + 4 * channel, 1) for channel in range(4)]
            return [m.broadcast(value, self.lanes) for value in color]
        if form.half:
            return [self._halves(at + channel * GRF_BYTES, self.lanes) for channel in range(4)]
        if self.lanes == 16 and IN_TURN in self.x.plan.attributes:
            return [self._lanes(at + channel * GRF_BYTES, 4) for channel in range(4)]
        return [self._lanes(at + channel * self.lanes // 8 * GRF_BYTES) for channel in range(4)]


def _said(x: Message[PixelEnvironment]) -> Value:
    """The parts that the header or the draw's state announces, as bits of PARTS."""
    m, gen = x.m, x.plan.gen
    if not x.plan.header:
        found = x.environment.parts(m)
    else:
        found = m.constant(u32, 0, 1)
        for part in _announced(gen):
            found = found | x.header(HEADER, f"{part}_present") << PARTS.index(part)
        if _header_has(gen, AA_ALPHA):
            found = found | x.header(HEADER, AA_ALPHA) << PARTS.index(WITH_AA_ALPHA)
    extended = catalogue.layout("EXTENDED_RENDER_TARGET", gen).raw([x.extended]) if _has_extended(gen) else None
    return found | part_bits(frozenset({"source0_alpha"})) if getattr(extended, "source0_alpha_present", 0) else found


@cache
def _has_extended(gen: float) -> bool:
    return catalogue.catalogue().get("EXTENDED_RENDER_TARGET", gen) is not None


@cache
def _header_has(gen: float, name: str) -> bool:
    return any(field.name == name for field in catalogue.layout(HEADER, gen).fields)


def _target(x: Message[PixelEnvironment]) -> tuple[int | None, Value, int | None]:
    """Binding table index and render target index; the latter also as a number where the message's instruction says it."""
    m, gen, surface = x.m, x.plan.gen, int(x.plan.fields.binding_table_index)
    extended = catalogue.layout("EXTENDED_RENDER_TARGET", gen).raw([x.extended]) if _has_extended(gen) else None
    null = bool(getattr(extended, "null_render_target", 0))
    number = int(getattr(extended, "render_target_index", 0))
    index = m.constant(u32, number, 1)
    if x.plan.header and _header_has(gen, "render_target_index"):
        return None if null else surface, index | x.header(HEADER, "render_target_index"), None
    return None if null else surface, index, number


def message_mask(x: Message[PixelEnvironment], form: WriteForm) -> Value:
    """The lanes that send and that the header leaves lit. A message of eight lanes from a wider instruction has the lanes of its slots."""
    m = x.m
    mask = x.lanes(form.lanes, form.first if x.width > form.lanes else 0)
    if not x.plan.header:
        return mask
    bits = x.header(HEADER, "pixel_enables")
    return mask & m.mask_from_bits(bits >> form.first if form.first else bits, form.lanes)


def subspan_places(x: Message[PixelEnvironment], form: WriteForm) -> Value | None:
    """Where the subspans of a message are, if it has a header; otherwise the thread's are meant (KBL 20562-20580, 25151-25166)."""
    if not x.plan.header:
        return None
    at = catalogue.layout(HEADER, x.plan.gen).field("subspan_0_x").low // 8 - GRF_BYTES  # Message.take skips one register
    return x.take(u32, at + form.first // 4 * u32.bytes, form.lanes // 4)


@answers(NAME, compiled=_compiled)
def render_target_write(x: Message[PixelEnvironment]) -> None:
    if not hasattr(x.environment, "parts"):
        raise Unsupported(f"{NAME} of a thread that has no render targets: its dispatch has no pixel backend")
    if why := _unbuilt(x.plan):
        raise Unsupported(f"{NAME} with {why}: not yet simulated")
    m, form = x.m, form_of(x.plan)
    payload = _Payload(x, form)
    choices = combinations_of(x.plan.gen, form, payload.registers)
    if not choices:
        raise DecodeError(f"{NAME} {x.plan.words['message_subtype']} has {payload.registers} registers after its header: no combination of "
                          f"colours and {', '.join(_announced(x.plan.gen))} is so long")  # fmt: skip
    mask, (surface, index, known) = message_mask(x, form), _target(x)
    first = form.first + (GROUP if x.plan.words.get("slot_group") == "high_16" else 0)
    last, places = bool(x.plan.fields.last_render_target), subspan_places(x, form)
    yes, said = m.constant(bool_, 1, 1), _said(x) if len(choices) > 1 else None
    found = []
    for parts in choices:
        holds = yes if said is None else (said & part_bits(frozenset(PARTS))) == part_bits(frozenset(parts))
        sources = payload.sources(parts)
        variant = Variant(form.lanes, form.dual, sources.alpha is not None, sources.depth is not None, sources.stencil is not None,
                          omask=sources.omask is not None)  # fmt: skip
        found.append((holds, PixelWrite(variant, surface, index, known, sources, mask, first, last, places)))
    if said is not None:
        fits = found[0][0]
        for holds, _ in found[1:]:
            fits = fits | holds
        x.environment.require(fits, DecodeError(f"{NAME} has {payload.registers} registers after its header, which do not match the parts "
                                                 "announced"))  # fmt: skip
    x.environment.write(m, found)
