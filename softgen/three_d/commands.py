"""Commands of the 3D pipeline.

Reads   3DPRIMITIVE CONSTANT_BUFFER 3DPRIM_VERTEX_COUNT 3DPRIM_START_VERTEX 3DPRIM_INSTANCE_COUNT 3DPRIM_START_INSTANCE
        3DPRIM_BASE_VERTEX 3DSTATE_WM_HZ_OP
Writes  draws (draw.py), depth and stencil clears
"""

from __future__ import annotations

from softgen.bits.record import Record
from softgen.command import Commands, CommandStreamer, registers_in
from softgen.errors import Unsupported
from softgen.three_d import clears, draw
from softgen.three_d.state import DrawCall, DrawState, PipelineContext

COMMANDS: Commands = {}
handles = registers_in(COMMANDS)

SIGN, WRAP = 1 << 31, 1 << 32


def new_state() -> PipelineContext:
    return PipelineContext(draw.Pipeline3D())


def finish(cs: CommandStreamer) -> None:
    """Nothing to do: a draw is complete when its command is done."""


@handles("3DPRIMITIVE")
def primitive(cs: CommandStreamer, cmd: Record) -> None:
    if getattr(cmd, "predicate_enable", 0) and not cs.predicate():
        return
    cs.counters.draws += 1
    call = draw_call(cs, cmd)
    cs.trace("draws", f"topology {call.topology}, {call.vertices} vertices, {call.instances} instances")
    if call.vertices and call.instances:
        cs.state(PipelineContext).pipeline.draw(cs, call)


@handles("CONSTANT_BUFFER")
def constant_buffer(cs: CommandStreamer, cmd: Record) -> None:
    """Load the constant URB entry: threads of later draws see memory as it is now (G45 1321-1330)."""
    start = cs.bases.get("general", 0) + cmd.buffer_starting_address & (1 << cs.space.bits) - 1
    cs.state(PipelineContext).curbe = cs.space.read(start, cmd.buffer_size) if cmd.valid else None


def draw_call(cs: CommandStreamer, cmd: Record) -> DrawCall:
    """The parameters of a draw: those of the command, or registers (BDW 107-117). Topology may be a state command (BDW 179-194)."""
    if getattr(cmd, "end_offset_enable", 0):
        raise Unsupported("end_offset_enable: not yet simulated")
    topology = cs.latched.get("3DSTATE_VF_TOPOLOGY") or cmd
    indexed = bool(cmd.vertex_access_type)
    if getattr(cmd, "indirect_parameter_enable", 0):
        base = cs.get("3DPRIM_BASE_VERTEX")
        return DrawCall(topology.primitive_topology_type, indexed, cs.get("3DPRIM_VERTEX_COUNT"), cs.get("3DPRIM_START_VERTEX"),
                        cs.get("3DPRIM_INSTANCE_COUNT"), cs.get("3DPRIM_START_INSTANCE"), base - WRAP if base & SIGN else base)  # fmt: skip
    vertices = cmd.vertex_count_per_instance
    if getattr(cmd, "indirect_vertex_count", 0):
        vertices = cs.space.read32(cmd.vertex_count_address)
    return DrawCall(topology.primitive_topology_type, indexed, vertices, cmd.start_vertex_location, cmd.instance_count,
                    cmd.start_instance_location, cmd.base_vertex_location)  # fmt: skip


@handles("3DSTATE_WM_HZ_OP")
def hiz_operation(cs: CommandStreamer, cmd: Record) -> None:
    clears.hiz(DrawState.of(cs), cmd)
