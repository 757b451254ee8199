"""Draws of captures: their commands executed up to each 3DPRIMITIVE, which goes to a hook instead of the pipeline.

    walk("kbl-gles-tri", lambda cs, cmd: seen.append(DrawState.of(cs).command("3DSTATE_CLIP").clip_enable))

State and memory are those of the moment; a hook that runs threads changes memory as the draw would.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.threads.dispatcher_protocol import Dispatcher
from softgen.three_d.state.state import DrawCall
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.conftest import SHARED

DrawHook = Callable[[CommandStreamer, Record], None]
OTHERS = ("3DSTATE_WM_HZ_OP",)  # that draw too, and mean nothing here


def walk(name: str, hook: DrawHook, dispatcher: Dispatcher | None = None) -> list[str]:
    """Executes a capture of shared/traces with `hook` in the place of draws that draw something; the errors of its submissions."""
    return walk_capture(SHARED / "traces" / name, hook, dispatcher)


def walk_capture(path: Path, hook: DrawHook, dispatcher: Dispatcher | None = None) -> list[str]:
    """The same of any capture."""
    trace = open_trace(path)
    gpu = GpuDevice(trace.device, dispatcher=dispatcher)
    others = dict.fromkeys(OTHERS, lambda cs, cmd: None)
    gpu.interface = dataclasses.replace(gpu.interface, commands={**gpu.interface.commands, **others, "3DPRIMITIVE": _drawing(hook)})
    errors = []
    for event in events(trace):
        if isinstance(event, Work):
            try:
                gpu.execute(event)
            except SoftgenError as error:
                errors.append(str(error))
    return errors


def _drawing(hook: DrawHook) -> DrawHook:
    def draw(cs: CommandStreamer, cmd: Record) -> None:
        if cmd.vertex_count_per_instance and cmd.instance_count:  # Mesa starts contexts on gen 7 with a draw of nothing
            hook(cs, cmd)

    return draw


def draw_call(cs: CommandStreamer, cmd: Record) -> DrawCall:
    """The parameters of a draw whose command holds them all."""
    topology = cs.latched.get("3DSTATE_VF_TOPOLOGY")
    code = cmd.primitive_topology_type if topology is None else topology.primitive_topology_type
    return DrawCall(code, bool(cmd.vertex_access_type), cmd.vertex_count_per_instance, cmd.start_vertex_location, cmd.instance_count,
                    cmd.start_instance_location, cmd.base_vertex_location)  # fmt: skip
