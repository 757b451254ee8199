"""The URB as a unit."""

from __future__ import annotations

from softgen.shared_functions.context import ContextField, Scope
from softgen.shared_functions.unit import Unit
from softgen.shared_functions.urb import messages
from softgen.shared_functions.urb.environment import CompiledUrb, Urb, UrbBinding

PROGRAMS = (messages,)  # modules that register the lane programs of messages

UNIT = Unit(
    name="urb",
    functions=("urb",),
    interpreter=Urb,
    compiled=CompiledUrb,
    bind=UrbBinding,
    fields=tuple(ContextField(name, Scope.DISPATCH) for name in ("urb", "urb_size", "urb_entries", "urb_pools")),
)
