"""The data port as a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softgen.shared_functions.context import ContextField, Scope
from softgen.shared_functions.dataport import atomic, block, media, scattered, typed
from softgen.shared_functions.dataport.interpreter import DataPort
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import LocalMemory
from softgen.shared_functions.surface_binding import bind_surfaces
from softgen.shared_functions.unit import GroupBindings, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode

PROGRAMS = (atomic, block, media, scattered, typed)  # modules that register the lane programs of messages


def data_port(group: GroupBindings) -> DataPort:
    return DataPort(group.dispatch.state(Surfaces.of), LocalMemory(group.local), group.watch)


def compiled(code: MessageCode) -> object:
    from softgen.shared_functions.dataport.compiled import CompiledDataPort

    return CompiledDataPort(code)


UNIT = Unit(
    name="data port",
    functions=("data_port_read", "data_port_write", "render_cache", "sampler_cache", "data_port_2", "constant_cache", "read_only",
               "data_cache_0", "data_cache_1"),
    interpreter=data_port,
    compiled=compiled,
    bind=bind_surfaces,
    indexed=True,
    fields=(ContextField("table", Scope.DISPATCH), ContextField("surfaces", Scope.DISPATCH), ContextField("general", Scope.DISPATCH),
            ContextField("local", Scope.WORKER), ContextField("local_size", Scope.DISPATCH)),
)  # fmt: skip
