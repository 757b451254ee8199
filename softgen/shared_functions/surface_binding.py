"""The surfaces of a dispatch for compiled code, which the data port and the sampler share."""

from __future__ import annotations

from softgen.shared_functions.unit import DispatchBindings, UnitBinding


def bind_surfaces(dispatch: DispatchBindings) -> UnitBinding:
    from softgen.shared_functions.bound_surfaces import BoundSurfaces  # it compiles functions; the interpreter needs none

    return dispatch.state(BoundSurfaces)
