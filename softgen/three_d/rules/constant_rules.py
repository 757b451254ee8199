"""Rules about push constants: a stage's constants must come again after commands that move them.

Reads   3DSTATE_PUSH_CONSTANT_ALLOC_VS 3DSTATE_GATHER_CONSTANT_VS 3DSTATE_CONSTANT_VS, and those of other stages
Writes  warnings
"""

from __future__ import annotations

from softgen.command import CommandStreamer, MarkedLatched
from softgen.three_d.state.state import DrawState, PipelineContext

STAGES = ("VS", "PS")  # others are off, or refused (stages.py): drivers leave their constants out then


def mark_constants_pending(cs: CommandStreamer, stage: str) -> None:
    """Note that a stage's constants are gathered: before the draw they must be given (BDW 4686-4689)."""
    if isinstance(cs.latched, MarkedLatched):
        cs.state(PipelineContext).gathered[stage] = cs.latched.marks()


def check_gathered(cs: CommandStreamer, gathered: dict[str, bytes]) -> None:
    """Warn of constants that were gathered and not given before this draw."""
    assert isinstance(cs.latched, MarkedLatched)
    for stage, before in gathered.items():
        if f"3DSTATE_CONSTANT_{stage}" not in cs.latched.changed(before, cs.latched.marks()):
            cs.warn(f"3DSTATE_GATHER_CONSTANT_{stage} without a 3DSTATE_CONSTANT_{stage} after it (BDW 4686-4689)")
    gathered.clear()


def check_allocated(state: DrawState, before: bytes) -> None:
    """Warn of stages whose constants were given other space in the URB since there were these marks, and did not come again (BDW 7853)."""
    if not isinstance(state.latched, MarkedLatched) or state.marks == before:
        return
    changed = set(state.changed(before))
    for stage in STAGES:
        if f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}" in changed and f"3DSTATE_CONSTANT_{stage}" not in changed:
            state.warn(f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage} without a 3DSTATE_CONSTANT_{stage} before the draw (BDW 7853-7855)")
