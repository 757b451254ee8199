"""What pixels are tested against and written to, as the pixel backend gives it to the stages of a draw."""

from __future__ import annotations

from dataclasses import dataclass, field

from softgen.shared_functions.unit import UnitStates


@dataclass(frozen=True)
class PixelTargets:
    """What the pixel backend gives to a draw: states of units, and early depth and stencil tests (`depth_function` of three_d.h)."""

    unit_states: UnitStates = ()
    depth_function: int = 0  # host address; 0: nothing is tested
    depth_target: int = 0  # host address of its record
    held_function: int = 0  # host address of what reads buffers for payloads (`held_function` of three_d.h); 0: they have nothing of them
    held_target: int = 0  # host address of its record
    late: bool = False  # render target writes test depth and stencil
    owner: object = field(default=None, repr=False, compare=False)  # keeps both alive
