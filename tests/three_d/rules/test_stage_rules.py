"""Rules about thread-generating stages of Ice Lake: what must be mapped, fit, or begin behind something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from softgen.three_d.rules.stage_rules import check_stages, prefetched, urb_kib
from tests.three_d.made import made_state
from tests.three_d.own_draw import DYNAMIC, SIZE, OwnDraw, rectangle
from tests.three_d.stage_threads.probes import STAGES, probed
from tests.three_d.test_own_draw import PASS_VERTICES, VERTEX_SHADER

L3 = 0x7034
DEFAULT = 0x60000060


def remarks(commands: Mapping[str, Mapping[str, Any]], ways: int = DEFAULT) -> list[str]:
    found: list[str] = []
    state = made_state(11, {}, {name: dict(fields) for name, fields in commands.items()}, warn=found.append)
    state.register = lambda name: ways if name == "L3CNTLREG" else 0
    check_stages(state)
    return found


def shaded(state: Mapping[str, Any], gpu: str = "icl") -> list[str]:
    """The remarks on a draw with a vertex shader."""
    drawn = OwnDraw(gpu, rectangle(0, 0, 4, 4), {"3DSTATE_VS": VERTEX_SHADER, **state}, vs=PASS_VERTICES).run()
    assert len(drawn.lit) == 16
    return drawn.remarks


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-TH-02", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("threads", "fits"), [(16, True), (17, False), (500, False)])
def test_scratch_space_is_large_enough_for_all_threads(stage: str, threads: int, fits: bool) -> None:
    """Each that may be active, as its limit says (ICL 2884-2888), where that is more than the EUs have slots for; 64 KiB are mapped."""
    unit = {"scratch_space_base_pointer": DYNAMIC, "per_thread_scratch_space": 2, "maximum_number_of_threads": threads - 1}
    told = [text for text in probed(stage, ["g0.5<0,1,0>"], unit).drawn.remarks if "scratch space of" in text]
    assert len(told) == (not fits) and all(f"scratch space of {threads} threads at {DYNAMIC:#x}" in text for text in told)
    assert SIZE == 16 * 4096


@pytest.mark.behaviour("ICL-TH-18", shows="action")
@pytest.mark.parametrize(("stage", "least"), [("VS", 2), ("HS", 1), ("DS", 5), ("GS", 2)])
def test_data_from_the_urb_begins_behind_the_header(stage: str, least: int) -> None:
    length = "patch_urb_entry_read_length" if stage == "DS" else "vertex_urb_entry_read_length"
    mode = {"dispatch_mode": 1} if stage == "DS" else {}

    def told(start: int, pushed: int, enable: int = 1) -> bool:
        unit = {"enable": enable, "dispatch_grf_start_register_for_urb_data": start, length: pushed, **mode}
        return any("headers have" in text for text in remarks({f"3DSTATE_{stage}": unit}))

    assert told(least - 1, 1) and not told(least, 1) and not told(least - 1, 0) and not told(least - 1, 1, 0)


# -- prefetch ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-TH-11", "ICL-TH-12", shows="action")
@pytest.mark.parametrize("stage", STAGES)
def test_what_is_prefetched_is_mapped(stage: str) -> None:
    """Sampler states and binding table entries up to an end of what is mapped, and past it; threads are the same (ICL 3007-3019)."""
    def told(unit: dict[str, int], state: dict[str, Any]) -> list[str]:
        found = probed(stage, ["g0.3<0,1,0>"], unit, state=state)
        return [text.partition("): ")[2] or text for text in found.drawn.remarks if "prefetched" in text]

    pointer = f"3DSTATE_SAMPLER_STATE_POINTERS_{stage}"
    assert not told({"sampler_count": 2}, {pointer: {"pointer_to_sampler_state": SIZE - 8 * 16}})
    assert told({"sampler_count": 3}, {pointer: {"pointer_to_sampler_state": SIZE - 8 * 16}}) == [
        f"3DSTATE_{stage}: 12 sampler states at {DYNAMIC + SIZE - 128:#x} are prefetched, and only 0x80 of their 0xc0 bytes are mapped "
        "(ICL 3012-3013)"]  # fmt: skip


@pytest.mark.behaviour("ICL-TH-11", shows="action")
@pytest.mark.parametrize(("pool", "pointer", "regions", "wrong"), [
    (0, 0xF80, [("10 binding table entries", 0x10F80, 40)], 0), (0, 0xFE0, [("10 binding table entries", 0x10FE0, 40)], 1),
    (1, 0x1E0, [("line 1 of the binding table", 0x20F40, 64), ("line 3 of the binding table", 0x20FC0, 64)], 0),
    (1, 0x200, [("line 1 of the binding table", 0x21040, 64), ("line 3 of the binding table", 0x210C0, 64)], 2),
])  # fmt: skip
def test_entries_are_prefetched_by_number_or_by_line(pool: int, pointer: int, regions: list[tuple[str, int, int]], wrong: int) -> None:
    """A count of entries; where tables are in a pool, a bit for each line of 64 bytes from the table's pointer on (ICL 3034-3050)."""
    commands = {"3DSTATE_VS": {"enable": 1, "binding_table_entry_count": 0b1010},
                "3DSTATE_BINDING_TABLE_POOL_ALLOC": {"binding_table_pool_enable": pool, "binding_table_pool_base_address": 0x20000},
                "3DSTATE_BINDING_TABLE_POINTERS_VS": {"pointer_to_binding_table": pointer}}  # fmt: skip
    found: list[str] = []
    state = made_state(11, {0x10000: bytes(64), 0x20000: bytes(64)}, commands, warn=found.append)
    state.bases, state.register = {"surface": 0x10000}, lambda name: DEFAULT
    assert list(prefetched(state, "VS")) == regions
    check_stages(state)
    assert len([text for text in found if "prefetched" in text]) == wrong


# -- URB ---------------------------------------------------------------------------------------------------------------

FINE: dict[str, dict[str, int]] = {
    "3DSTATE_PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_size": 16},
    "3DSTATE_PUSH_CONSTANT_ALLOC_PS": {"constant_buffer_offset": 16, "constant_buffer_size": 16},
    "3DSTATE_URB_VS": {"urb_starting_address": 4, "urb_entry_allocation_size": 1, "number_of_urb_entries": 640},
    "3DSTATE_URB_HS": {"urb_starting_address": 20, "number_of_urb_entries": 8},
    "3DSTATE_URB_DS": {"urb_starting_address": 14, "number_of_urb_entries": 64, "urb_entry_allocation_size": 8},
    "3DSTATE_URB_GS": {"urb_starting_address": 10},
}


@pytest.mark.parametrize(("name", "change", "says"), [
    ("URB_VS", {"number_of_urb_entries": 640}, ""),  # up to 112 KiB
    ("URB_HS", {"number_of_urb_entries": 22016}, ""),
    ("URB_HS", {"number_of_urb_entries": 22017}, "the ways of the URB in the L3 have 1536"),
])  # fmt: skip
def test_regions_of_the_urb_end_with_it(name: str, change: dict[str, int], says: str) -> None:
    """From a start in 8 KiB, as many entries as there are of a size (ICL 3262-3264)."""
    told = remarks({**FINE, f"3DSTATE_{name}": {**FINE[f"3DSTATE_{name}"], **change}})
    assert len(told) == bool(says) and all(says in text for text in told)


@pytest.mark.behaviour("ICL-URB-01", "ICL-REG-03", shows="action")
@pytest.mark.parametrize(("ways", "urb", "says"), [
    (None, 1536, ""), ((32, 0, 0, 64), 1024, ""), ((16, 20, 30, 30), 512, ""), ((32, 0, 0, 63), 1024, "95 ways are allocated"),
    ((48, 10, 10, 30), 1536, "98 ways are allocated"),
])  # fmt: skip
def test_ways_of_the_l3_make_the_urb(ways: tuple[int, ...] | None, urb: int, says: str) -> None:
    """L3CNTLREG says how many ways the URB has, of 96, all of which must be given (ICL 1285-1300, 3258-3264); without a command it says
    48, and 48 for everything."""
    made = OwnDraw("icl", [])
    before = []
    if ways is not None:
        value = sum(count << low for count, low in zip(ways, (1, 11, 18, 25), strict=True))
        before = [made.pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": L3, "data_dword": value}])]
    for entries, told in ((urb * 16 - 4096, False), (urb * 16 - 4095, True)):  # of 64 bytes, from 256 KiB on
        state = {"3DSTATE_URB_GS": {"urb_starting_address": 32, "number_of_urb_entries": entries}}
        drawn = OwnDraw("icl", rectangle(0, 0, 4, 4), state, before=before).run()
        assert any(text.endswith(f"the L3 have {urb}") for text in drawn.remarks) == told
        assert [text for text in drawn.remarks if "ways are" in text] == [text for text in drawn.remarks if says and says in text]
        assert drawn.gpu.read_register(L3) == (DEFAULT if ways is None else value)
    assert bool(says) == any("ways are" in text for text in drawn.remarks)


@pytest.mark.behaviour("ICL-REG-03", shows="action")
@pytest.mark.parametrize(("l3", "factor"), [(1536, 0.5), (3072, 1), (6144, 2), (9216, 3)])
def test_ways_are_larger_on_larger_gpus(l3: int, factor: float) -> None:
    """GT1, GT2, GT3 and GT4 (ICL 1291-1296)."""
    assert [urb_kib(ways, l3) for ways in (1, 48)] == [32 * factor, 1536 * factor]


# -- push constants ----------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("ICL-3D-08", shows="action")
@pytest.mark.parametrize(("pointers", "lengths", "needed"), [
    ((0,), (32,), 1024), ((32,), (32,), 1088), ((32,), (31,), 1024), ((0,), (31,), 1024), ((0,), (33,), 1088),
    ((32, 0, 32, 64), (1, 3, 2, 24), 64 + 128 + 128 + 768),
])  # fmt: skip
def test_allocations_hold_constants_with_the_rest_of_their_lines(pointers: tuple[int, ...], lengths: tuple[int, ...], needed: int) -> None:
    """Memory is read in lines of 64 bytes: 1 KiB is enough for 16 of them (ICL 2718-2726)."""
    more = [0] * (4 - len(pointers))
    constants = {"read_length": [{"length": n} for n in (*lengths, *more)],
                 "constant_buffer": [{"pointer": 0x1000 * number + at} for number, at in enumerate((*pointers, *more))]}  # fmt: skip
    state = {"3DSTATE_CONSTANT_VS": constants, "3DSTATE_PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_size": 1},
             "3DSTATE_VS": {"enable": 1, "dispatch_grf_start_register_for_urb_data": 2}}  # fmt: skip
    told = remarks(state)
    assert len(told) == (needed > 1024) and all(f"constants take {needed} with" in text for text in told)
    assert not remarks({**state, "3DSTATE_PUSH_CONSTANT_ALLOC_VS": {"constant_buffer_size": 2}})
    assert not remarks({**state, "3DSTATE_VS": {}})


@pytest.mark.behaviour("ICL-URB-03", shows="action")
@pytest.mark.parametrize("stage", [*STAGES, "PS"])
@pytest.mark.parametrize(("offset", "size", "wrong"), [(24, 8, False), (31, 1, False), (24, 9, True), (31, 2, True)])
def test_push_constants_are_in_the_first_32_kib(stage: str, offset: int, size: int, wrong: bool) -> None:
    """Of every stage (ICL 3266-3267)."""
    state = {f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}": {"constant_buffer_offset": offset, "constant_buffer_size": size},
             f"3DSTATE_CONSTANT_{stage}": {}, "3DSTATE_URB_VS": {"urb_starting_address": 16, "number_of_urb_entries": 64}}  # fmt: skip
    assert any(f"{offset} to {offset + size} KiB; push constants have 32" in text for text in shaded(state)) == wrong
