"""Commands of the 3D pipeline.

Reads   3DPRIMITIVE CONSTANT_BUFFER 3DPRIM_VERTEX_COUNT 3DPRIM_START_VERTEX 3DPRIM_INSTANCE_COUNT 3DPRIM_START_INSTANCE
        3DPRIM_BASE_VERTEX 3DPRIM_XP0 3DPRIM_XP1 3DPRIM_XP2 3DPRIM_END_OFFSET 3DSTATE_WM_HZ_OP
Writes  draws (draw.py), depth and stencil clears
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from softgen.bits.record import Record
from softgen.command import Actor, ActorRow, Actors, Commands, CommandStreamer, ConstantUrbEntry, nothing_collected, registers_in
from softgen.errors import DecodeError
from softgen.three_d.rules import constant_rules
from softgen.three_d.state import resource_streamer
from softgen.three_d.state.state import DrawCall, DrawingPipeline, DrawState, PipelineContext
from softgen.three_d.state.stream_offsets import load_offset

COMMANDS: Commands = {**resource_streamer.COMMANDS}
handles = registers_in(COMMANDS)

SIGN, WRAP = 1 << 31, 1 << 32
MOST_CALLS = 1024  # kept
ELSEWHERE = ("end_offset_enable", "indirect_parameter_enable", "indirect_vertex_count")  # parameters are not all in the command


def new_state() -> PipelineContext:
    return PipelineContext()


finish = nothing_collected  # a draw is complete when its command is done


@handles("3DPRIMITIVE")
def primitive(cs: CommandStreamer, cmd: Record) -> None:
    if _predicated(cmd) and not cs.predicate():
        return
    other = _other_pipeline(cs)
    if other and cs.generation.media_draws:
        from softgen.three_d.vertices.media_preload import preload

        preload(cs, cmd)
        return
    cs.counters.draws += 1
    if other:
        raise DecodeError(f"3DPRIMITIVE while PIPELINE_SELECT has pipeline_selection {other}, not the 3D pipeline")
    call = draw_call(cs, cmd)
    if cs.traced:
        cs.trace("draws", f"topology {call.topology}, {call.vertices} vertices, {call.instances} instances")
    context = cs.state(PipelineContext)
    if context.gathered:
        constant_rules.check_gathered(cs, context.gathered)
    if context.streamer.tables:
        resource_streamer.write_tables(cs)
    if call.vertices and call.instances:
        _draw(cs, cmd, call)


def _draw(cs: CommandStreamer, cmd: Record, call: DrawCall) -> None:
    """By the render pipe; a draw with posh_enable is recorded by the position-only pipe before, which executes no other (ICL 866-871)."""
    if "posh_enable" not in cmd._fields:
        pipeline(cs).draw(cs, call)
    elif cs.engine == "position_only":
        if cmd.posh_enable:
            position_only_pipeline(cs).record(cs, call)
    elif cmd.posh_enable:
        from softgen.three_d.visibility.skipping import draw_visible

        draw_visible(cs, call, lambda streamer, part: pipeline(streamer).draw(streamer, part))
    else:
        pipeline(cs).draw(cs, call)


def draw_actor(cs: CommandStreamer) -> Actor | None:
    """What draws in a walk over a batch; None where Python has more to do for a draw than the pipeline has."""
    context = cs.state(PipelineContext)
    if context.pipeline is None or cs.engine == "position_only" or context.gathered or context.streamer.tables:
        return None
    return context.pipeline.actor


ACTORS: Actors = {"3DPRIMITIVE": ActorRow(primitive, draw_actor)}


def position_only_pipeline(cs: CommandStreamer) -> Any:
    """The position-only pipe of the hardware context."""
    context = cs.state(PipelineContext)
    if context.position_only is None:
        from softgen.three_d.visibility.recording import PositionOnlyPipeline

        context.position_only = PositionOnlyPipeline()
    return context.position_only


@handles("3DSTATE_PTBR_RENDER_LIST_BASE_ADDRESS")
def render_list(cs: CommandStreamer, cmd: Record) -> None:
    """Latched; draws with visibility are counted from here on."""
    cs.latch()
    cs.state(PipelineContext).visibility_draws = 0


def _other_pipeline(cs: CommandStreamer) -> int:
    """The number of another pipeline that is selected, or 0: one is active at a time (G45 8446). On GM965 the media pipeline has draws."""
    selected = cs.latched.get("PIPELINE_SELECT")
    return 0 if selected is None else int(selected.pipeline_selection)


def pipeline(cs: CommandStreamer) -> DrawingPipeline:
    """The pipeline of the hardware context, made at its first draw: contexts that only compute import nothing of it."""
    context = cs.state(PipelineContext)
    if context.pipeline is None:
        from softgen.three_d.draw.draw import Pipeline3D

        context.pipeline = Pipeline3D(context.stipple)
    return context.pipeline


@handles("3DSTATE_LINE_STIPPLE")
def line_stipple(cs: CommandStreamer, cmd: Record) -> None:
    """Latched; with modify_enable it also sets the counter that lines advance: pixels since the pattern began, by the repeat counter, from
    1 on, and the pattern's index (BDW 6706-6733)."""
    cs.latch()
    if cmd.modify_enable:
        repeated = max(cmd.current_repeat_counter, 1) - 1
        cs.state(PipelineContext).stipple.value = cmd.current_stipple_index * max(cmd.line_stipple_repeat_count, 1) + repeated


@handles("3DSTATE_URB_CLEAR")
def urb_clear(cs: CommandStreamer, cmd: Record) -> None:
    """Clears rows of the URB; here entries are made for each draw, and written before they are read."""


@handles("3DSTATE_SO_BUFFER")
def stream_output_buffer(cs: CommandStreamer, cmd: Record) -> None:
    """Latched; it may also load the buffer's write offset."""
    cs.latch()
    load_offset(cs, cmd)


@handles("CONSTANT_BUFFER")
def constant_buffer(cs: CommandStreamer, cmd: Record) -> None:
    """Load the constant URB entry: threads of later draws see memory as it is now (G45 1321-1330)."""
    start = cs.bases.get("general", 0) + cmd.buffer_starting_address & (1 << cs.space.bits) - 1
    cs.state(ConstantUrbEntry).data = cs.space.read(start, cmd.buffer_size) if cmd.valid else None


def draw_call(cs: CommandStreamer, cmd: Record) -> DrawCall:
    """The parameters of a draw: those of the command, or registers (BDW 107-117). Topology may be a state command (BDW 179-194)."""
    topology = cs.latched.get("3DSTATE_VF_TOPOLOGY") or cmd
    call = _plain_call(cmd, topology.primitive_topology_type)
    if call is not None:
        return call
    if getattr(cmd, "end_offset_enable", 0):
        return _call_to_end(cs, cmd, topology.primitive_topology_type)
    indexed = bool(cmd.vertex_access_type)
    if getattr(cmd, "indirect_parameter_enable", 0):
        base = cs.get("3DPRIM_BASE_VERTEX")
        extended = tuple(cs.get(f"3DPRIM_XP{number}") for number in range(3)) if _is_extended(cmd) else (0, 0, 0)
        return DrawCall(topology.primitive_topology_type, indexed, cs.get("3DPRIM_VERTEX_COUNT"), cs.get("3DPRIM_START_VERTEX"),
                        cs.get("3DPRIM_INSTANCE_COUNT"), cs.get("3DPRIM_START_INSTANCE"), base - WRAP if base & SIGN else base,
                        extended)  # fmt: skip
    return DrawCall(topology.primitive_topology_type, indexed, cs.space.read32(cmd.vertex_count_address), cmd.start_vertex_location,
                    cmd.instance_count, cmd.start_instance_location, cmd.base_vertex_location)  # fmt: skip


def _call_to_end(cs: CommandStreamer, cmd: Record, topology: int) -> DrawCall:
    """A draw of the vertices that are whole before an offset into vertex buffer 0 (BDW 137-159)."""
    if getattr(cmd, "indirect_parameter_enable", 0):
        raise DecodeError("end_offset_enable and indirect_parameter_enable are set: undefined (BDW 116-117, 160-161)")
    buffer = cs.latched.by_index("3DSTATE_VERTEX_BUFFERS").get(0)
    if buffer is None or not buffer.buffer_pitch:
        raise DecodeError("end_offset_enable, and vertex buffer 0 has no vertices one after another")
    for name in ("vertex_access_type", "start_vertex_location", "start_instance_location", "base_vertex_location"):
        if getattr(cmd, name):
            cs.warn(f"end_offset_enable and {name} {getattr(cmd, name)}: it must be 0 (BDW 143-150)")
    vertices = cs.get("3DPRIM_END_OFFSET") // buffer.buffer_pitch
    return DrawCall(topology, False, vertices, 0, cmd.instance_count, 0, 0)


def _is_extended(cmd: Record) -> bool:
    return bool(getattr(cmd, "extended_parameters_present", 0))


@lru_cache(MOST_CALLS)
def _predicated(cmd: Record) -> bool:
    return bool(getattr(cmd, "predicate_enable", 0))


@lru_cache(MOST_CALLS)
def _plain_call(cmd: Record, topology: int) -> DrawCall | None:
    """The parameters of a draw whose command has them all."""
    if any(getattr(cmd, name, 0) for name in ELSEWHERE):
        return None
    return DrawCall(topology, bool(cmd.vertex_access_type), cmd.vertex_count_per_instance, cmd.start_vertex_location, cmd.instance_count,
                    cmd.start_instance_location, cmd.base_vertex_location, _extended_parameters(cmd))  # fmt: skip


def _extended_parameters(cmd: Record) -> tuple[int, ...]:
    """The three dwords at the end of a command that has them."""
    held = [parameter.value for parameter in cmd.extended_parameter] if _is_extended(cmd) else []
    return (*held, 0, 0, 0)[:3]


@handles("3DSTATE_WM_HZ_OP")
def hiz_operation(cs: CommandStreamer, cmd: Record) -> None:
    from softgen.three_d.pixels import clears

    clears.hiz(DrawState.of(cs), cmd)
