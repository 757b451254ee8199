"""Fields of cr0 as masks of their dwords (IVB 2327-2520)."""

from __future__ import annotations

import pytest

from softgen.eu.isa.control_register import mask, roundings


@pytest.mark.parametrize("name, expected", [
    ("alternate_float_mode", 1), ("accumulator_disable", 2), ("single_program_flow", 4), ("vector_mask_enable", 8), ("rounding_mode", 0x30),
    ("double_denormals", 0x40), ("float_denormals", 0x80), ("half_denormals", 0x400), ("master_exception", 1 << 31),
    ("stack_overflow_enable", 1 << 11), ("illegal_opcode_enable", 1 << 12), ("software_enable", 1 << 13), ("breakpoint_enable", 1 << 15),
    ("stack_overflow_status", 1 << 27), ("breakpoint_status", 1 << 31),  # of cr0.1
    ("application_ip", 0xFFFFFFF8),  # of cr0.2
    ("no such field", 0),
])  # fmt: skip
def test_a_mask_is_of_the_dword_that_has_the_field(name: str, expected: int) -> None:
    assert mask(name) == expected


@pytest.mark.parametrize("gen, name, expected", [(7.5, "float_denormals", 0), (8.0, "float_denormals", 0x80), (4.5, "double_denormals", 0)])
def test_a_generation_may_lack_a_field(gen: float, name: str, expected: int) -> None:
    assert mask(name, gen) == expected


def test_rounding_modes() -> None:
    assert roundings() == {0: "rne", 0x10: "ru", 0x20: "rd", 0x30: "rtz"}
