"""The sampler as a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softgen.shared_functions.avs import messages as scaler_messages
from softgen.shared_functions.context import ContextField, Scope
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.sampler import messages, unorm
from softgen.shared_functions.sampler.interpreter import SamplerPort
from softgen.shared_functions.sampler.state import Samplers
from softgen.shared_functions.surface_binding import bind_surfaces
from softgen.shared_functions.unit import GroupBindings, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode

PROGRAMS = (messages, unorm, scaler_messages)  # modules that register the lane programs of messages


def sampler(group: GroupBindings) -> SamplerPort:
    return SamplerPort(group.dispatch.state(Surfaces.of), group.dispatch.state(Samplers.of))


def compiled(code: MessageCode) -> object:
    from softgen.shared_functions.sampler.compiled import CompiledSampler

    return CompiledSampler(code)


UNIT = Unit(
    name="sampler",
    functions=("sampler",),
    interpreter=sampler,
    compiled=compiled,
    bind=bind_surfaces,
    indexed=True,
    fields=(ContextField("table", Scope.DISPATCH), ContextField("surfaces", Scope.DISPATCH)),
)
