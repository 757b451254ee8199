"""The pixel backend as a unit. It answers messages of shared functions that the data port answers otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softgen.shared_functions.context import ContextField, Scope
from softgen.shared_functions.pixel_backend import NAME, messages, read
from softgen.shared_functions.pixel_backend.interpreter import PixelBackend
from softgen.shared_functions.unit import DispatchBindings, GroupBindings, Unit, UnitBinding

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode


def pixel_backend(group: GroupBindings) -> PixelBackend:
    return PixelBackend(group.dispatch)


def compiled(code: MessageCode) -> object:
    from softgen.shared_functions.pixel_backend.compiled import CompiledBackend

    return CompiledBackend(code)


def bind_targets(dispatch: DispatchBindings) -> UnitBinding:
    from softgen.shared_functions.pixel_backend.binding import BoundTargets  # it compiles functions; the interpreter needs none

    return dispatch.state(BoundTargets)


UNIT = Unit(
    name=NAME,
    functions=(),
    messages=(messages.NAME, read.NAME),
    interpreter=pixel_backend,
    compiled=compiled,
    bind=bind_targets,
    fields=(ContextField("table", Scope.DISPATCH), ContextField("targets", Scope.DISPATCH)),
)
