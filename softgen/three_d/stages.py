"""The table of stages: which of them a draw has, in which order, and what does their work.

             4.5                              7, 7.5              8, 9                11
assembly     fixed                            fixed               fixed               fixed
VS           SIMD4x2 threads                  SIMD4x2 threads     SIMD8 threads       SIMD8 threads
HS, TE, DS   none                             SIMD4x2 threads     SIMD8 threads       SIMD8 threads; TE fixed
GS           threads                          SIMD4x2 threads     SIMD8, SIMD4x2      SIMD8 threads
SOL          by GS threads                    fixed               fixed               fixed
CLIP         fixed test, clipping by threads  fixed               fixed               fixed
SETUP        fixed, coefficients by threads   fixed, SBE          fixed, SBE          fixed, SBE
pixels       SIMD8, SIMD16 threads, or a clear: the same in all; plane coefficients on 4.5, barycentrics on others

Within a stage, capabilities (spec/generations.toml) and pages name the differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from softgen.bits.generation import Generation
from softgen.three_d.clip_setup.bins import BinStage
from softgen.three_d.clip_setup.clip import ClipStage
from softgen.three_d.clip_setup.setup import SetupStage
from softgen.three_d.draw.stage import Stage
from softgen.three_d.geometry_shader.geometry_shader import GeometryShaderStage
from softgen.three_d.pixels.fill import FillStage
from softgen.three_d.pixels.pixel_shader import PixelStage
from softgen.three_d.stage_threads.clip_threads import ClipThreadStage
from softgen.three_d.stage_threads.geometry_threads import GeometryThreads
from softgen.three_d.stage_threads.setup_threads import SetupThreadStage
from softgen.three_d.stream_out.stream_output import StreamOutputStage
from softgen.three_d.tessellation.domain_shader import DomainStage
from softgen.three_d.tessellation.hull_shader import HullStage
from softgen.three_d.tessellation.tessellation import TessellationStage
from softgen.three_d.vertices.assembly import AssembleStage
from softgen.three_d.vertices.vertex_shader import VertexStage

FIXED, THREADS = "fixed function", "threads"


class StageRow(NamedTuple):
    """A stage, and what does its work."""

    name: str
    work: str
    stage: Callable[[], Stage]


FRONT = (StageRow("assembly", FIXED, AssembleStage), StageRow("vertex shader", THREADS, VertexStage))
BACK = (StageRow("clear", FIXED, FillStage), StageRow("bins", FIXED, BinStage), StageRow("pixel shader", THREADS, PixelStage))
# By whether units read their state from memory (the capability unit_state).
STAGES: dict[bool, tuple[StageRow, ...]] = {
    True: (
        *FRONT,
        StageRow("geometry shader", THREADS, GeometryThreads),
        StageRow("clip test", FIXED, ClipStage),
        StageRow("clipping", THREADS, ClipThreadStage),
        StageRow("setup", FIXED, SetupStage),
        StageRow("coefficients", THREADS, SetupThreadStage),
        *BACK,
    ),
    False: (
        *FRONT,
        StageRow("hull shader", THREADS, HullStage),
        StageRow("tessellator", FIXED, TessellationStage),
        StageRow("domain shader", THREADS, DomainStage),
        StageRow("geometry shader", THREADS, GeometryShaderStage),
        StageRow("stream output", FIXED, StreamOutputStage),
        StageRow("clip", FIXED, ClipStage),
        StageRow("setup", FIXED, SetupStage),
        *BACK,
    ),
}


def rows(generation: Generation) -> tuple[StageRow, ...]:
    """The stages of a generation's draws, in order."""
    return STAGES[generation.unit_state]
