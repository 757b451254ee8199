"""The sampler as a unit."""

from __future__ import annotations

from softgen.shared_functions.bound_surfaces import BoundSurfaces
from softgen.shared_functions.context import ContextField, Scope
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.sampler import messages
from softgen.shared_functions.sampler.compiled import CompiledSampler
from softgen.shared_functions.sampler.interpreter import SamplerPort
from softgen.shared_functions.sampler.state import Samplers
from softgen.shared_functions.unit import GroupBindings, Unit

PROGRAMS = (messages,)  # modules that register the lane programs of messages


def sampler(group: GroupBindings) -> SamplerPort:
    return SamplerPort(group.dispatch.state(Surfaces.of), group.dispatch.state(Samplers.of))


UNIT = Unit(
    name="sampler",
    functions=("sampler",),
    interpreter=sampler,
    compiled=CompiledSampler,
    bind=BoundSurfaces,
    fields=(ContextField("table", Scope.DISPATCH), ContextField("surfaces", Scope.DISPATCH)),
)
