"""The order of a sampler message's parameters, by message, width and length."""

from __future__ import annotations

import pytest

from softgen.errors import Unsupported
from softgen.shared_functions import descriptors, message
from softgen.shared_functions.sampler import messages
from softgen.shared_functions.sampler.payloads import COORDINATES, GRADIENTS, Payload, by_length, payload

assert messages  # whose programs answer
SFID, LD = 2, ("u", "lod", "v", "r")
UVR = "u v r"
# Gen4 and Gen4.5, by message and registers, header included (public: Mesa brw_lower_logical_sends.cpp, brw_vec4_nir.cpp)
EARLY: dict[tuple[str, int], tuple[int, str]] = {
    ("sample", 3): (16, "u"), ("sample", 4): (8, UVR), ("sample", 5): (16, "u v"), ("sample", 7): (16, UVR),
    ("sample_b", 9): (16, f"{UVR} bias"), ("sample_b_c", 6): (8, f"{UVR} bias ref"),
    ("sample_l", 2): (2, f"{UVR} lod"), ("sample_l", 9): (16, f"{UVR} lod"),
    ("sample_l_c", 3): (2, f"{UVR} lod ref"), ("sample_l_c", 6): (8, f"{UVR} lod ref"),
    ("sample_c", 9): (16, f"{UVR} ref"),
    ("sample_d", 4): (2, f"{UVR} - dudx dvdx drdx - dudy dvdy drdy"), ("sample_d", 7): (8, "u v dudx dvdx dudy dvdy"),
    ("sample_d", 10): (8, f"{UVR} dudx dvdx drdx dudy dvdy drdy"),
    ("resinfo", 2): (2, "- - - lod"), ("resinfo", 3): (16, "lod"),
    ("ld", 2): (2, f"{UVR} lod"), ("ld", 3): (16, f"{UVR} lod"), ("ld", 5): (16, f"{UVR} lod"), ("ld", 7): (16, f"{UVR} lod"),
    ("ld", 9): (16, f"{UVR} lod"),
}  # fmt: skip
ALL = "u v r ai"
D = "u dudx dudy v dvdx dvdy r drdx drdy ai"
# Since Gen7: message -> parameters of SIMD8 and SIMD16 messages, and of SIMD4x2 ones; None where there is none
LATER: dict[str, tuple[str, str | None]] = {
    "sample": (ALL, ALL), "sample_lz": (ALL, ALL), "gather4": (ALL, ALL), "lod": (ALL, ALL), "sample_killpix": (ALL, None),
    "sample_b": (f"bias {ALL}", None), "sample_c": (f"ref {ALL}", None), "sample_b_c": (f"ref bias {ALL}", None),
    "sample_l": (f"lod {ALL}", f"{ALL} lod"), "sample_l_c": (f"ref lod {ALL}", f"{ALL} ref lod"),
    "sample_c_lz": (f"ref {ALL}", f"{ALL} ref"), "gather4_c": (f"ref {ALL}", f"{ALL} ref"),
    "sample_d": (D, f"{ALL} dudx dudy dvdx dvdy drdx drdy"), "sample_d_c": (f"ref {D}", f"{ALL} dudx dudy dvdx dvdy drdx drdy ref"),
    "gather4_po": ("u v offset_u offset_v r", f"{UVR} - offset_u offset_v"),
    "gather4_po_c": ("ref u v offset_u offset_v r", f"{UVR} ref offset_u offset_v"),
    "ld": (" ".join(LD), f"{UVR} lod"), "ld_lz": (UVR, UVR), "resinfo": ("lod", "lod"), "sampleinfo": ("", ""),
}  # fmt: skip


def plan(name: str, gen: float, length: int, **fields: int | str) -> message.MessagePlan:
    return message.plan(SFID, descriptors.encode(name, gen, message_length=length, response_length=1, **fields), gen)


def order(text: str) -> tuple[str, ...]:
    return tuple("" if name == "-" else name for name in text.split())


@pytest.mark.parametrize("gen", [4, 4.5])
@pytest.mark.parametrize("name", sorted({name for name, _ in EARLY}))
def test_the_length_of_an_early_message_says_its_width_and_parameters(name: str, gen: float) -> None:
    """Any other length is another message, or refused by name."""
    fields: dict[str, int | str] = {"data_type": "uint" if name == "resinfo" else "float"} if gen == 4 else {}
    for length in range(1, 16):
        try:
            made = plan(name, gen, length, **fields)
        except ValueError:
            assert (name, length) not in EARLY
            continue
        assert by_length(made)
        if (name, length) not in EARLY:
            with pytest.raises(Unsupported, match=f"{name} of {length} registers: not yet simulated"):
                payload(made, LD)
            continue
        lanes, text = EARLY[name, length]
        assert payload(made, LD) == Payload(lanes, order(text), False)


def test_early_messages_answer_with_floats_and_resinfo_with_integers() -> None:
    for name, type in (("sample", "uint"), ("resinfo", "float")):
        with pytest.raises(Unsupported, match=f"{name} with data_type {type}: not yet simulated"):
            payload(plan(name, 4, 3, data_type=type), LD)


@pytest.mark.parametrize("gen", [7, 8, 9, 11])
@pytest.mark.parametrize("name", LATER)
def test_parameters_in_order(name: str, gen: float) -> None:
    """SIMD16 has the order of SIMD8 (public: Mesa brw_lower_logical_sends.cpp); with SIMD4x2 coordinates come first."""
    if name not in {row.name for row in descriptors.rows(gen)}:
        return
    wide, slots = LATER[name]
    for mode, lanes in (("simd8", 8), ("simd16", 16)):
        made = plan(name, gen, 2, simd_mode=mode)
        assert not by_length(made) and payload(made, LD) == Payload(lanes, order(wide), False)
    made = plan(name, gen, 2, simd_mode="simd4x2") if can_be(name, gen, "simd4x2") else None
    if made is not None and slots is None:
        with pytest.raises(Unsupported, match=f"{name} of SIMD4x2: not yet simulated"):
            payload(made, LD)
    elif made is not None:
        assert payload(made, LD) == Payload(2, order(slots or ""), False)


def can_be(name: str, gen: float, mode: str) -> bool:
    try:
        return plan(name, gen, 2, simd_mode=mode).name == name
    except (ValueError, Unsupported):
        return False


@pytest.mark.parametrize(("mode", "lanes"), [("simd8h", 8), ("simd16h", 16)])
def test_parameters_of_16_bits_have_a_register_each(mode: str, lanes: int) -> None:
    found = payload(plan("sample_b", 11, 5, simd_mode=mode), LD)
    assert found == Payload(lanes, order(f"bias {ALL}"), True)
    assert found is not None and found.size == 32 and not found.slots


def test_sizes_of_parameters() -> None:
    assert [(Payload(lanes, ()).size, Payload(lanes, ()).slots) for lanes in (2, 8, 16)] == [(8, True), (32, False), (64, False)]


def test_names_of_parameters() -> None:
    assert COORDINATES == order(ALL) and GRADIENTS == ("dudx", "dudy", "dvdx", "dvdy", "drdx", "drdy")
