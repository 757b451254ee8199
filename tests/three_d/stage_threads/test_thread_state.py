"""Threads of VS, HS, DS and GS as they start: what state gives them, and what is defaulted."""

from __future__ import annotations

import pytest

from tests.three_d.own_draw import CODE
from tests.three_d.stage_threads.probes import DATA, FOUND, KERNELS, STAGES, probed

ENGINES = ["reference", "t0", "t1"]
CR0 = ["cr0.0<0,1,0>", "cr0.1<0,1,0>"]
SR0, IP = "sr0.0<0,1,0>", "ip<0,1,0>"
ENABLES = {"floating_point_mode": (0, 0), "single_program_flow": (0, 2), "vector_mask_enable": (0, 3),
           "illegal_opcode_exception_enable": (1, 12), "software_exception_enable": (1, 13)}  # fmt: skip
FLOWS = ("HS", "GS")  # stages with single_program_flow
NUMBERS = {"VS": 1, "HS": 2, "DS": 3, "GS": 4}


@pytest.mark.behaviour("ICL-TH-03", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("field", ENABLES)
def test_state_sets_cr0(stage: str, field: str, engine: str) -> None:
    """Each bit alone (ICL 2895-2914)."""
    if field == "single_program_flow" and stage not in FLOWS:
        return
    dword, bit = ENABLES[field]
    for value in (0, 1):
        found = probed(stage, CR0, {field: value}, engine=engine).first
        assert found == [value << bit if number == dword else 0 for number in range(2)]


@pytest.mark.behaviour("ICL-TH-03", "ICL-TH-04", "ICL-TH-05", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("upper", [0, 0x9A5B << 32])
def test_threads_start_at_the_kernel_start_pointer(stage: str, engine: str, upper: int) -> None:
    """It counts from the instruction base, in 64 bytes, and is ip of the first instruction, whose bits 5:3 are 0; what the pointer has
    above its 32 bits is ignored (ICL 2917-2924, 3248). Another kernel stands where the base alone leads."""
    start = 0x6C0 + (0x8000 if stage == "DS" else 0x7000)
    found = probed(stage, [IP], {"kernel_start_pointer": start | upper}, engine=engine, at=start, memory={CODE + KERNELS[stage]: bytes(64)})
    assert found.first == [start + 16 * 3]  # three instructions are in front of the one that reads it


@pytest.mark.behaviour("ICL-TH-08", "ICL-TH-10", "ICL-TH-03", shows="action")
@pytest.mark.covering(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("priority", [0, 1])
def test_sr0_names_the_stage_and_its_priority(stage: str, engine: str, priority: int) -> None:
    """Threads of any priority do the same: dispatch order is the draw's here."""
    found = probed(stage, [SR0, "g0.3<0,1,0>"], {"thread_dispatch_priority": priority}, engine=engine)
    other = probed(stage, [SR0, "g0.3<0,1,0>"], {"thread_dispatch_priority": 1 - priority}, engine=engine)
    assert found.first[0] == NUMBERS[stage] << 24 | priority << 23
    ours, theirs = found.drawn.left(), other.drawn.left()
    differ = [n for n, pair in enumerate(zip(ours["memory"].pop(DATA), theirs["memory"].pop(DATA), strict=True)) if pair[0] != pair[1]]
    assert ours == theirs and {n // 32 for n in differ} == {(FOUND - DATA) // 32}


@pytest.mark.behaviour("ICL-TH-10", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", STAGES)
def test_state_that_is_defaulted(stage: str, engine: str) -> None:
    """Rounding, denormals, three exceptions, stack pointer and its limit (ICL 2984-3006): threads before changed them all."""
    changes = ["mov(1) cr0.0<1>UD 0x000000f0UD { align1 WE_all 1N };", "mov(1) cr0.1<1>UD 0x0000c800UD { align1 WE_all 1N };",
               "mov(2) sp.0<1>UD 0x12345678UD { align1 WE_all 1N };"]  # fmt: skip
    sources = [*CR0, "sp.0<0,1,0>", "sp.1<0,1,0>", "sp.2<0,1,0>", "sp.3<0,1,0>"]
    found = probed(stage, sources, engine=engine, after=changes, draws=2)
    assert found.first == [0] * 6


# -- payloads ----------------------------------------------------------------------------------------------------------

SIZES = 12  # codes of scratch space per thread
HEADERS = {"VS": 2, "HS": 2, "DS": 5, "GS": 2}  # registers that payloads begin with


@pytest.mark.behaviour("ICL-TH-15", "ICL-TH-05", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("code", range(SIZES))
def test_scratch_space_is_announced_in_the_header(stage: str, code: int) -> None:
    """1 KiB to 2 MiB for each thread, as a power of two: the code in R0.3[3:0], the offset in R0.5[31:10], in KiB from the general
    state base; bits of the pointer above 32 are ignored (ICL 3094-3123, 3253)."""
    base = 0x345 << 10
    unit = {"scratch_space_base_pointer": base | 0x7777 << 32, "per_thread_scratch_space": code}
    found = probed(stage, ["g0.3<0,1,0>", "g0.5<0,1,0>"], unit).first
    assert found[0] & 0x1F == code and found[1] & ~0x3FF == base


@pytest.mark.behaviour("ICL-TH-14", shows="action")
@pytest.mark.parametrize("stage", STAGES)
def test_the_header_has_the_sampler_state_pointer(stage: str) -> None:
    """In R0.3[31:5], 32 bytes granular (ICL 3079-3085)."""
    for pointer in (0x3E0, 0x7FE0, 0xFFFF_FFE0):
        state = {f"3DSTATE_SAMPLER_STATE_POINTERS_{stage}": {"pointer_to_sampler_state": pointer}}
        assert probed(stage, ["g0.3<0,1,0>"], {"per_thread_scratch_space": 5}, state=state).first == [pointer | 5]


@pytest.mark.behaviour("ICL-TH-09", "ICL-TH-03", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [*STAGES, "PS"])
def test_binding_tables_are_known_without_a_header(stage: str, engine: str) -> None:
    """Each stage's own table: probes are messages without a header, and a kernel that writes over R0 finds its buffer all the same. The
    payload has no pointer (ICL 2890-2914, 2969-2974)."""
    clear = "mov(8) g59<1>UD g0<8,8,1>UD { align1 WE_all 1Q };\nmov(8) g0<1>UD 0xffffffffUD { align1 WE_all 1Q };"
    restore = ["mov(8) g0<1>UD g59<8,8,1>UD { align1 WE_all 1Q };"]
    found = probed(stage, ["g59<8,8,1>", "g0.4<0,1,0>"], engine=engine, first=clear, after=restore, draws=2)
    assert found.found[0][4] == 0 and found.found[1][0] == 0xFFFFFFFF
