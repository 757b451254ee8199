"""Probes: what a stage's threads find in their registers, written to memory by lines in front of their kernel.

    drawn = probed("DS", ["cr0.0<0,1,0>", "sr0.0<0,1,0>"], {"thread_dispatch_priority": 1})
    drawn.found                             # eight dwords for each source

A probe is an untyped write without a header through entry 1 of the stage's own binding table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softgen.eu.text import dialect
from tests.three_d.geometry_shader.shading import SIMD8, Shading
from tests.three_d.own_draw import (
    CODE,
    DATA,
    PS_CODE,
    SIZE,
    SURFACES,
    TABLE,
    VS_CODE,
    Drawn,
    Fields,
    OwnDraw,
    pixel_shader,
    rectangle,
    send,
)
from tests.three_d.tessellation.patches import DS_CODE, HS_CODE, Patch, Patches, domain8, hull
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

STAGES = ("VS", "HS", "DS", "GS")
WRITE = 0x09 << 14 | 2 << 12 | 14 << 8  # untyped, SIMD8, red alone
DATA_PORT_1 = 12
FOUND = DATA + 0xF800  # behind what stream output writes
STATES = {stage: 0x8000 + 0x80 * number for number, stage in enumerate((*STAGES, "PS"))}  # surface states of the probes
TABLES = {stage: TABLE + 0x100 * (number + 1) for number, stage in enumerate((*STAGES, "PS"))}
ROW = 32  # bytes


def always(opcode: str, to: str, sources: str) -> str:
    return f"{opcode}(8) {to} {sources} {{ align1 WE_all 1Q }};"


def probe(sources: Sequence[str], index: int = 1, number: int = 60) -> str:
    """Lines that write eight dwords of each source; they use five registers."""
    offset, data = f"g{number + 1}", f"g{number + 2}"
    lines = [always("mov", f"g{number}<1>UW", "0x76543210V"), always("mov", f"{offset}<1>UD", f"g{number}<8,8,1>UW"),
             always("shl", f"{offset}<1>UD", f"{offset}<8,8,1>UD 0x00000002UD")]  # fmt: skip
    for source in sources:
        lines += [always("mov", f"{data}<1>UD", f"{source}UD"),
                  send(WRITE | index, 2, source=number + 1, eot=False, target=DATA_PORT_1, opcode="send").replace("1Q", "WE_all 1Q"),
                  always("add", f"{offset}<1>UD", f"{offset}<8,8,1>UD {ROW:#010x}UD")]  # fmt: skip
    return "\n".join(lines)


def binding(made: OwnDraw, stage: str) -> tuple[dict[str, Fields], dict[int, bytes]]:
    """The command and the memory of a stage's own binding table, whose entry 1 is a buffer; entry 0 is the render target."""
    state = made.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, surface_base_address=FOUND, width=0x7F, height=7)
    memory = {SURFACES + STATES[stage]: struct.pack(f"<{len(state)}I", *state),
              SURFACES + TABLES[stage]: struct.pack("<2I", 0, STATES[stage])}  # fmt: skip
    return {f"3DSTATE_BINDING_TABLE_POINTERS_{stage}": {"pointer_to_binding_table": TABLES[stage]}}, memory


@dataclass
class Probed:
    """What probes have left."""

    drawn: Drawn
    count: int

    @property
    def found(self) -> list[list[int]]:
        words = struct.unpack(f"<{8 * self.count}I", self.drawn.space.read(FOUND, ROW * self.count))
        return [list(words[8 * n : 8 * n + 8]) for n in range(self.count)]

    @property
    def first(self) -> list[int]:
        """The first dword of each."""
        return [row[0] for row in self.found]


def probed(stage: str, sources: Sequence[str], unit: Mapping[str, Any] | None = None, gpu: str = "icl", engine: str = "t0",
           state: Mapping[str, Fields] | None = None, memory: Mapping[int, bytes] | None = None, before: Sequence[Sequence[int]] = (),
           at: int | None = None, first: str = "", after: Sequence[str] = (), draws: int = 1,
           threads: int = 1) -> Probed:  # fmt: skip
    """A draw whose threads of one stage have a probe in front of what they do besides; `unit` are more fields of its command.

    `at`: another offset from CODE at which the kernel stands as well; `first` and `after`: lines around the probe.
    """
    lines = "\n".join([*([first] if first else []), probe(sources), *after])
    command, held = binding(OwnDraw(gpu, []), stage)
    made, kernel = MADE[stage](gpu, lines, dict(unit or {}), {**command, **(state or {})}, {**held, **(memory or {})})
    made.before, made.primitives = [*made.before, *before], [{}] * draws
    if at is not None:
        made.patch = {**made.patch, **code(kernel, made.gen, at)}
    return Probed(made.run(engine, threads), len(sources))


def _vertex(gpu: str, lines: str, unit: Fields, state: dict[str, Fields], memory: dict[int, bytes]) -> tuple[OwnDraw, str]:
    kernel = f"{lines}\n{PASS_VERTICES}"
    return OwnDraw(gpu, rectangle(0, 0, 4, 4), {"3DSTATE_VS": {**VERTEX_SHADER, **unit}, **state}, vs=kernel, patch=memory), kernel


def _hull(gpu: str, lines: str, unit: Fields, state: dict[str, Fields], memory: dict[int, bytes]) -> tuple[OwnDraw, str]:
    made = Patches(gpu, [Patch()], hs=unit, state=state, patch=memory)
    made.hull = f"{lines}\n{hull(made.gen, made.corners)}"
    return made.streaming().draw(), made.hull


def _domain(gpu: str, lines: str, unit: Fields, state: dict[str, Fields], memory: dict[int, bytes]) -> tuple[OwnDraw, str]:
    made = Patches(gpu, [Patch()], ds=unit, state=state, patch=memory)
    made.evaluation = f"{lines}\n{domain8(made.gen)}"
    return made.streaming().draw(), made.evaluation


def _geometry(gpu: str, lines: str, unit: Fields, state: dict[str, Fields], memory: dict[int, bytes]) -> tuple[OwnDraw, str]:
    made = Shading(gpu, SIMD8, unit=unit, state=state)
    kernel = f"{lines}\n{made.kernel().text()}"
    draw = made.streaming().draw()
    draw.gs, draw.patch = kernel, {**draw.patch, **memory}
    return draw, kernel


def _pixel(gpu: str, lines: str, unit: Fields, state: dict[str, Fields], memory: dict[int, bytes]) -> tuple[OwnDraw, str]:
    pixels, kernel = {**OwnDraw.defaults["3DSTATE_PS"], **unit}, pixel_shader(before=lines)
    return OwnDraw(gpu, rectangle(0, 0, 4, 4), {"3DSTATE_PS": pixels, **state}, ps=kernel, patch=memory), kernel


MADE: dict[str, Callable[[str, str, Fields, dict[str, Fields], dict[int, bytes]], tuple[OwnDraw, str]]] = {
    "VS": _vertex, "HS": _hull, "DS": _domain, "GS": _geometry, "PS": _pixel}  # fmt: skip
KERNELS = {"VS": VS_CODE, "HS": HS_CODE, "DS": DS_CODE, "GS": 0x2000, "PS": PS_CODE}


def code(text: str, gen: float, at: int) -> dict[int, bytes]:
    """A kernel at an offset from the instruction base."""
    return {CODE + at: dialect.read(text, gen, "mesa")}


assert SIZE > FOUND - DATA
