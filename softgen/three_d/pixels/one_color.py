"""Rectangles of one colour, as drivers clear surfaces: one block of each has a thread, the rest is filled (one_color.c).

    if writes_one_color(program, payload):      # a shader whose colour is the same for all of an object
        plan = one_color(state, raster, targets)

Reads   RENDER_SURFACE_STATE

Such a shader moves constants, or attributes of the object (Mesa's clears), into a message that has one colour for all of its pixels, and
ends with it. Nothing else must decide about a pixel: no tests, no blending, no dithering, one sample. Then what a thread writes to its
first pixel is what threads write to all others.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Protocol

from softgen.bits.units import GRF_BYTES
from softgen.errors import SoftgenError
from softgen.eu.interpreter import DecodedInstruction
from softgen.eu.isa import types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.shared_functions import message
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.pixel_backend import BackendState
from softgen.shared_functions.pixel_backend.messages import NAME, form_of
from softgen.shared_functions.pixel_backend.surface import own_state, target_surface
from softgen.shared_functions.pixel_backend.write import dithered_bits, words, written_bits
from softgen.three_d.pixels import fill
from softgen.three_d.pixels.pixel_payload import PayloadPlan
from softgen.three_d.pixels.pixel_targets import PixelTargets
from softgen.three_d.pixels.rasterizer import RasterPlan
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table

MOST_BOXES = 16
MOST_INSTRUCTIONS = 8  # of a shader that is looked at
COLOR_BYTES = 16  # that a message has of one colour
FIRST = 0  # render target


class FilledBox(ctypes.Structure):
    """A record whose box is filled, and where that ends."""

    _fields_ = [("record", ctypes.c_uint32), ("x1", ctypes.c_int32), ("y1", ctypes.c_int32)]


class OneColor(ctypes.Structure):
    """struct one_color of one_color.h."""

    _fields_ = [("fill", fill.FillPlan), ("on", ctypes.c_uint32), ("filling", ctypes.c_uint32), ("count", ctypes.c_uint64),
                ("pixels", ctypes.c_uint64), ("box", FilledBox * MOST_BOXES)]  # fmt: skip


class Program(Protocol):
    """The part of a kernel's program that is needed here."""

    gen: float
    start: int

    def line(self, ip: int) -> DecodedInstruction: ...


def writes_one_color(program: Program, payload: PayloadPlan) -> bool:
    """Whether all that threads do is to write a colour to the first render target that depends on nothing but constants and attributes of
    their object, which are not interpolated."""
    parts = (payload.constants, payload.constant_bytes), (payload.attributes, payload.attribute_bytes)
    known = {at for start, size in parts for at in range(start, start + size)}
    try:
        for inst in islice(_lines(program), MOST_INSTRUCTIONS):
            if inst.eot:
                return _is_write(inst, known)
            if not _moves(inst, known):
                return False
    except SoftgenError:  # a thread that gets there says what is wrong
        pass
    return False


def _lines(program: Program) -> Iterator[Instruction]:
    ip = program.start
    while True:
        line = program.line(ip)
        yield line.instruction
        ip += line.size


def _moves(inst: Instruction, known: set[int]) -> bool:
    """Whether an instruction moves what is known, whichever channels are on; the bytes of registers that it writes are known then."""
    dst = inst.dst
    if inst.opcode != "mov" or not inst.no_mask or inst.predicate or inst.condition or inst.align16 or dst is None or dst.file != "grf":
        return False
    source, to = inst.sources[0], set(_bytes(inst, dst, inst.exec_size))
    if dst.indirect or source.indirect or source.file not in ("imm", "grf"):
        return False
    if source.file == "grf" and not known.issuperset(_bytes(inst, source)):
        return False
    known |= to
    return True


def _bytes(inst: Instruction, operand: Operand, width: int = 0) -> Iterator[int]:
    """The bytes of the register file that an operand has; `width`: all elements are one row, as those of a destination are."""
    size, start = types.size(operand.type), operand.number * GRF_BYTES + operand.sub
    across = width or operand.width
    for channel in range(inst.exec_size):
        element = channel // across * operand.vertical + channel % across * operand.horizontal
        yield from range(start + element * size, start + (element + 1) * size)


def _is_write(inst: Instruction, known: set[int]) -> bool:
    """Whether a message writes one colour to all pixels of the first render target, and the colour is known."""
    if inst.predicate or not isinstance(inst.descriptor, int) or isinstance(inst.extended, Operand) or not inst.sources:
        return False
    plan, payload = message.plan(inst.sfid, inst.descriptor, inst.gen), inst.sources[0]
    if plan.name != NAME or payload.file != "grf" or payload.indirect or inst.form != "send":
        return False
    start, one_register = payload.number * GRF_BYTES, plan.fields.message_length == 1 and not plan.header
    return one_register and form_of(plan).replicated and plan.indices[0] == FIRST and known.issuperset(range(start, start + COLOR_BYTES))


def one_color(state: DrawState, raster: RasterPlan, targets: PixelTargets) -> OneColor:
    """How rectangles of the first render target are filled; not at all where more than the shader decides about pixels."""
    made = OneColor()
    backend = next(held for _, held in targets.unit_states if isinstance(held, BackendState))
    tested = targets.depth_function or targets.held_function or targets.late or backend.late or backend.parts
    if tested or raster.samples or raster.stored or raster.stippled or raster.antialiased or not backend.targets:
        return made
    try:
        found = _target(state, backend)
    except SoftgenError:  # the message that uses it says what is wrong
        return made
    if found is not None:
        made.fill, made.on = found, 1
    return made


def _target(state: DrawState, backend: BackendState) -> fill.FillPlan | None:
    """How texels of the render target are filled, but for their value; None where what threads write depends on more than that."""
    surfaces = Surfaces(state.generation, state.table_space("PS"), state.bases, binding_table(state, "PS"))
    image, surface = surfaces.picture(FIRST, False), surfaces.state(FIRST)
    target, place = target_surface(image, surface, "render target 0")
    blend, format = own_state(backend.targets[FIRST], surface), target.format
    if format is None or target.rotation or target.samples > 1 or place.columns or target.control:
        return None
    tests = blend.alpha_test != "always" or blend.alpha_to_coverage or blend.antialiased or blend.samples > 1
    if tests or blend.color is not None or blend.logic_op is not None or dithered_bits(format, blend):
        return None
    masks = zip(words(format), written_bits(format, target, blend), strict=True)
    mask = b"".join(bits.to_bytes(kind.bytes, "little") for (_, kind), bits in masks)
    return fill.plan(replace(place, base=state.address("", place.base)), image.tiling, bytes(len(mask)), mask)
