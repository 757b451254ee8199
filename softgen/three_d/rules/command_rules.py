"""Rules about the order of commands on Ice Lake: what must have come before a draw, and what must come again when bases change.

Reads   STATE_BASE_ADDRESS STATE_SIP, the pointers that count from bases, and the commands that every draw needs
Writes  remarks
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from softgen.command import MarkedLatched
from softgen.three_d.state.state import DrawCall, DrawState

# Common state, and that of 3D (ICL 1505-1547), with what it is needed for; "": every draw.
NEEDED = {"STATE_BASE_ADDRESS": "", "3DSTATE_VF_STATISTICS": "", "3DSTATE_DRAWING_RECTANGLE": "", "3DSTATE_DEPTH_BUFFER": "",
          "3DSTATE_INDEX_BUFFER": "indexed", "STATE_SIP": "exceptions", "3DSTATE_POLY_STIPPLE_PATTERN": "polygon_stipple",
          "3DSTATE_LINE_STIPPLE": "line_stipple"}  # fmt: skip
# Pointers that lead elsewhere when a base has changed (ICL 1460-1464), those of now in place of 3DSTATE_PIPELINED_POINTERS and the like.
POINTERS = {
    "surface": ("3DSTATE_BINDING_TABLE_POINTERS_PS",),
    "dynamic": ("3DSTATE_CC_STATE_POINTERS", "3DSTATE_BLEND_STATE_POINTERS", "3DSTATE_VIEWPORT_STATE_POINTERS_CC",
                "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP", "3DSTATE_SCISSOR_STATE_POINTERS"),
}  # fmt: skip
EXCEPTIONS = ("illegal_opcode_exception_enable", "software_exception_enable")


def check_order(state: DrawState, call: DrawCall, marks: bytes, bases: Mapping[str, int]) -> None:
    """Remark on a draw, given the marks and the bases of the draw before."""
    if not state.generation.stage_rules or not isinstance(state.latched, MarkedLatched):
        return
    for text in (*_missing(state, call), *(_stale(state, marks, bases) if bases else ())):
        state.remark(text)


def _missing(state: DrawState, call: DrawCall) -> Iterator[str]:
    uses = {"": True, "indexed": call.indexed, "exceptions": _exceptions(state), **_stipples(state)}
    for name, use in NEEDED.items():
        if uses[use] and state.get(name) is None:
            yield f"3DPRIMITIVE before any {name} (ICL 1505-1547)"


def _exceptions(state: DrawState) -> bool:
    units = (state.get(f"3DSTATE_{stage}") for stage in ("VS", "HS", "DS", "GS"))
    return any(unit is not None and unit.enable and any(getattr(unit, name) for name in EXCEPTIONS) for unit in units)


def _stipples(state: DrawState) -> dict[str, bool]:
    windower = state.get("3DSTATE_WM")
    return {f"{kind}_stipple": bool(getattr(windower, f"{kind}_stipple_enable", 0)) for kind in ("polygon", "line")}


def _stale(state: DrawState, marks: bytes, bases: Mapping[str, int]) -> Iterator[str]:
    if state.marks == marks:
        return
    changed = set(state.changed(marks))
    for base, names in POINTERS.items():
        if "STATE_BASE_ADDRESS" not in changed or state.bases.get(base, 0) == bases.get(base, 0):
            continue
        for name in names:
            if name not in changed and state.get(name) is not None:
                yield f"{name} has not come again since STATE_BASE_ADDRESS changed the {base} state base (ICL 1460-1464)"
