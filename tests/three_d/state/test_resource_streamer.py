"""The resource streamer, by batches written from the manual: binding tables, gathered constants, constant registers of Direct3D 9."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.errors import DecodeError, Unsupported
from softgen.memory.store import MemfdBuffer
from softgen.three_d.state import constants
from softgen.three_d.state.constant_registers import UNDEFINED
from tests.streamer.bench import Bench
from tests.three_d.made import made_state

SURFACES, BUFFERS, POOL, TABLES, DX9 = 0x100000, 0x200000, 0x300000, 0x400000, 0x500000
RAW = next(value for value, surface_format in surface_formats().items() if surface_format.name == "RAW")
BUFFER, NULL = 4, 7


class Rig(Bench):
    """A batch with base addresses and pools set; buffer n holds dwords 1000 n + its own number."""

    def __init__(self, gpu: str = "bdw", pool_pages: int = 1) -> None:
        super().__init__(gpu)
        for start in (SURFACES, BUFFERS, POOL, TABLES, DX9):
            self.space.map(start, MemfdBuffer(0x8000))
        self.gen = self.device.generation.number
        for number in range(4):
            self.space.write(BUFFERS + 0x2000 * number, np.arange(1000 * number, 1000 * number + 2048, dtype="<u4").tobytes())
        self.pool_pages = pool_pages

    def surface(self, number: int, size: int = 256, kind: int = BUFFER) -> None:
        """The state at 64 times its number, of the buffer of the same number."""
        entries = size - 1
        fields = {"surface_type": kind, "surface_format": RAW, "surface_base_address": BUFFERS + 0x2000 * number,
                  "width": entries & 0x7F, "height": entries >> 7 & 0x3FFF, "depth": entries >> 21}  # fmt: skip
        dwords = layout("RENDER_SURFACE_STATE", self.gen).pack(**fields)
        self.space.write(SURFACES + 64 * number, struct.pack(f"<{len(dwords)}I", *dwords))

    def go(self, *commands: list[int], tables: bool = True) -> None:
        base = {"surface_state_base_address": SURFACES, "surface_state_base_address_modify_enable": 1}
        self.run(self.pack("STATE_BASE_ADDRESS", **base),
                 self.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", binding_table_pool_base_address=TABLES, binding_table_pool_enable=tables,
                           binding_table_pool_buffer_size=1),
                 self.pack("3DSTATE_GATHER_POOL_ALLOC", gather_pool_base_address=POOL, gather_pool_enable=1,
                           gather_pool_buffer_size=self.pool_pages), *commands)  # fmt: skip

    def edit(self, *entries: tuple[int, int], clear: int = 0, target: int = 3, stage: str = "VS") -> list[int]:
        made = [{"binding_table_index": index, "surface_state_pointer": pointer} for index, pointer in entries]
        return self.pack(f"3DSTATE_BINDING_TABLE_EDIT_{stage}", binding_table_block_clear=clear, binding_table_edit_target=target,
                         entry=made)  # fmt: skip

    def gather(self, *entries: tuple[int, int, int], valid: int = 0xFFFF, stage: str = "VS", **more: Any) -> list[int]:
        """Entries are row, channel mask and buffer."""
        made = [{"constant_buffer_offset": row, "channel_mask": mask, "binding_table_index_offset": index} for row, mask, index in entries]
        return self.pack(f"3DSTATE_GATHER_CONSTANT_{stage}", constant_buffer_valid=valid, gather_entry=made, **more)

    def pool(self, count: int, at: int = 0) -> list[int]:
        return np.frombuffer(self.space.read(POOL + at, 4 * count), "<u4").tolist()

    # -- Direct3D 9

    def registers(self, kind: str, first: int, *rows: Any, globally: int = 1, stage: str = "VS") -> list[int]:
        names = ["component"] if kind == "B" else [f"component_{n}" for n in range(4)]
        values = [dict(zip(names, row if isinstance(row, tuple) else (row,), strict=True)) for row in rows]
        return self.pack(f"3DSTATE_DX9_CONSTANT{kind}_{stage}", global_constant_register=globally, constant_register_index=first,
                         constant=values)  # fmt: skip

    def dx9_pool(self, enable: int = 1, pages: int = 4) -> list[int]:
        return self.pack("3DSTATE_DX9_CONSTANT_BUFFER_POOL_ALLOC", dx9_constant_buffer_pool_base_address=DX9,
                         dx9_constant_buffer_pool_enable=enable, dx9_constant_buffer_pool_buffer_size=pages)  # fmt: skip

    def generate(self, slot: int = 0, dx9: int = 1, clamp: int = 0, stage: str = "VS") -> list[int]:
        return self.pack(f"3DSTATE_DX9_GENERATE_ACTIVE_{stage}", pointer_to_constant_buffer=slot, dx9_enable=dx9, clamp_enable=clamp)

    def constants(self, slot: int = 0) -> tuple[Any, Any, Any]:
        """Floats, integers and Booleans of a constant buffer."""
        data = self.space.read(DX9 + 0x2000 * slot, 4096 + 512 + 64)
        floats = np.frombuffer(data[:4096], "<f4").reshape(256, 4)
        return floats, np.frombuffer(data[4096:4608], "<i4").reshape(32, 4), np.frombuffer(data[4608:], "<u4")


# -- gathered constants ------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-RS-01", "BDW-RS-02", "BDW-RS-06", shows="action")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS", "PS"])
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_constants_are_packed_in_the_order_of_the_table(gpu: str, stage: str) -> None:
    """Buffers at block * 16 + index; a last entry with an empty mask is left out; the buffer begins at 64 bytes times its offset."""
    rig = Rig(gpu)
    rig.surface(1)
    rig.surface(2)
    entries = (3, 0b1111, 5), (0, 0b0101, 6), (7, 0, 6)
    rig.go(rig.edit((0x25, 1), (0x26, 2), stage=stage),
           rig.gather(*entries, stage=stage, constant_buffer_binding_table_block=2, gather_buffer_offset=2))  # fmt: skip
    assert rig.pool(8, at=128) == [1012, 1013, 1014, 1015, 2000, 2002, 0, 0] and not any(rig.pool(32))


@pytest.mark.behaviour("BDW-BT-03", "BDW-CS-12", shows="action")
def test_blocks_of_a_binding_table_are_cleared_before_entries_are_set() -> None:
    """The other core's edits are not this one's; what no edit names stays."""
    rig = Rig()
    for number in range(4):
        rig.surface(number)
    rig.go(rig.edit((3, 1), (17, 2), (18, 3)), rig.edit((17, 3), clear=0b10), rig.edit((3, 0), target=2),
           rig.gather((0, 1, 3)),
           rig.gather((0, 1, 1), (0, 1, 2), constant_buffer_binding_table_block=1, gather_buffer_offset=1))  # fmt: skip
    assert rig.pool(1) == [1000] and rig.pool(2, at=64) == [3000, 0]


@pytest.mark.behaviour("BDW-CS-12", shows="action")
@pytest.mark.parametrize("stage", ["VS", "HS", "DS", "GS", "PS"])
@pytest.mark.parametrize(("target", "edits"), [(1, True), (2, False), (3, True)])
def test_edits_are_for_core_0_for_core_1_or_for_all(target: int, edits: bool, stage: str) -> None:
    """BDW 426-432: entries and cleared blocks; core 0 is the one there is."""
    rig = Rig()
    for number in range(4):
        rig.surface(number)
    rig.go(rig.edit((3, 1), (17, 2), stage=stage), rig.edit((3, 3), clear=0b10, target=target, stage=stage),
           rig.gather((0, 1, 3), stage=stage),
           rig.gather((0, 1, 1), constant_buffer_binding_table_block=1, gather_buffer_offset=1, stage=stage))  # fmt: skip
    assert rig.pool(1) == [3000 if edits else 1000] and rig.pool(1, at=64) == [0 if edits else 2000]


@pytest.mark.behaviour("BDW-BT-03", shows="action")
@pytest.mark.parametrize("clear", [0, 1, 0b110, 1 << 14, 0x5A5A, 0x7FFF])
def test_a_block_of_a_binding_table_has_16_entries(clear: int) -> None:
    rig = Rig()
    every = rig.edit(*((number, number + 1) for number in range(256)))
    rig.go(every, rig.edit(clear=clear), rig.pack("3DSTATE_BINDING_TABLE_POINTERS_VS"), rig.pack("3DPRIMITIVE"))
    wanted = [0 if clear >> number // 16 & 1 else 64 * (number + 1) for number in range(256)]
    assert np.frombuffer(rig.space.read(TABLES, 4 * 256), "<u4").tolist() == wanted


@pytest.mark.behaviour("BDW-RS-03", "BDW-MEM-05", shows="action")
def test_buffers_bound_the_fetch_and_null_surfaces_do_not() -> None:
    rig = Rig()
    rig.surface(1, size=32)
    rig.surface(2, kind=NULL)
    rig.go(rig.edit((0, 1), (1, 2)), rig.gather((1, 1, 0), (2, 1, 0), (2, 1, 1)))
    assert rig.pool(3) == [1004, 0, 2008]


@pytest.mark.parametrize("upper", [0, 0xFFFF_8000_0000_0000])
def test_buffers_pools_and_states_in_the_upper_half_of_the_space(upper: int) -> None:
    """Their addresses have copies of bit 47 above it."""
    rig, start = Rig(), upper & (1 << 48) - 1
    if upper:
        for base in (SURFACES, BUFFERS, POOL, TABLES, DX9):
            rig.space.map(start + base, MemfdBuffer(0x8000))
    state = rig.pack("RENDER_SURFACE_STATE", surface_type=BUFFER, surface_format=RAW, surface_base_address=upper + BUFFERS, width=127)
    rig.space.write(start + SURFACES + 64, struct.pack(f"<{len(state)}I", *state))
    rig.space.write(start + BUFFERS, np.arange(700, 732, dtype="<u4").tobytes())
    floats = rig.registers("F", 0, (1.0, 2.0, 3.0, 4.0))
    rig.run(rig.pack("STATE_BASE_ADDRESS", surface_state_base_address=upper + SURFACES, surface_state_base_address_modify_enable=1),
            rig.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", binding_table_pool_base_address=upper + TABLES, binding_table_pool_enable=1,
                     binding_table_pool_buffer_size=1),
            rig.pack("3DSTATE_GATHER_POOL_ALLOC", gather_pool_base_address=upper + POOL, gather_pool_enable=1, gather_pool_buffer_size=1),
            rig.pack("3DSTATE_DX9_CONSTANT_BUFFER_POOL_ALLOC", dx9_constant_buffer_pool_base_address=start + DX9,
                     dx9_constant_buffer_pool_enable=1, dx9_constant_buffer_pool_buffer_size=1),
            rig.edit((0, 1)), rig.gather((1, 15, 0)), floats, rig.generate(), rig.pack("3DSTATE_BINDING_TABLE_POINTERS_VS"),
            rig.pack("3DPRIMITIVE"))  # fmt: skip
    assert struct.unpack("<4I", rig.space.read(start + POOL, 16)) == (704, 705, 706, 707)
    assert struct.unpack("<4f", rig.space.read(start + DX9, 16)) == (1, 2, 3, 4) and rig.space.read32(start + TABLES) == 64


@pytest.mark.behaviour("BDW-RS-05", shows="action")
def test_no_valid_buffer_leaves_the_pool_as_it_is() -> None:
    rig = Rig()
    rig.surface(1)
    rig.space.write(POOL, b"\x55" * 64)
    rig.go(rig.edit((0, 1)), rig.gather((0, 15, 0), valid=0))
    assert rig.pool(16) == [0x55555555] * 16


@pytest.mark.behaviour("BDW-RS-06", "BDW-MEM-05", shows="action")
def test_past_the_end_of_the_pool_nothing_is_written() -> None:
    rig = Rig()
    rig.surface(1)
    rig.go(rig.edit((0, 1)), rig.gather(*[(0, 15, 0)] * 5, gather_buffer_offset=63))
    assert rig.pool(20, at=63 * 64) == [1000, 1001, 1002, 1003] * 4 + [0] * 4
    assert any("past the end of the pool" in remark for remark in rig.gpu.remarks)


def test_a_constant_of_a_buffer_that_is_not_valid_is_remarked() -> None:
    rig = Rig()
    rig.surface(1)
    rig.go(rig.edit((0, 1), (1, 1)), rig.gather((0, 1, 0), (0, 1, 1), valid=0b10))
    told = [remark for remark in rig.gpu.remarks if "constant_buffer_valid" in remark]
    assert len(told) == 1 and "a constant is gathered from buffer 0, whose bit in constant_buffer_valid is not set" in told[0]


@pytest.mark.parametrize("before_end, written", [(4096, 32), (32 * 4, 32), (16 * 4, 16)])
def test_a_draw_finds_edited_tables_in_the_pool(before_end: int, written: int) -> None:
    """Whole blocks of 16 entries, as far as the pool of a page has room; also where the draw has no vertices."""
    rig, kept = Rig(), 0x55555555
    rig.space.write(TABLES, b"\x55" * 0x2000)
    page, start = layout("3DSTATE_BINDING_TABLE_POINTERS_VS", rig.gen), 4096 - before_end
    unit = page.raw(page.pack(pointer_to_binding_table=32)).pool_offset // 32
    rig.go(rig.edit((3, 1), (17, 2)), rig.pack("3DSTATE_BINDING_TABLE_POINTERS_VS", pointer_to_binding_table=start // unit),
           rig.pack("3DPRIMITIVE"))  # fmt: skip
    wanted = [{3: 64, 17: 128}.get(entry, 0) for entry in range(written)]
    assert np.frombuffer(rig.space.read(TABLES + start, 4 * 40), "<u4").tolist() == wanted + [kept] * (40 - written)


def test_a_table_without_entries_is_not_written() -> None:
    rig = Rig()
    rig.space.write(TABLES, b"\x55" * 0x1000)
    rig.go(rig.edit((3, 0), (20, 0)), rig.pack("3DSTATE_BINDING_TABLE_POINTERS_VS"), rig.pack("3DPRIMITIVE"))
    assert rig.space.read(TABLES, 0x1000) == b"\x55" * 0x1000


@pytest.mark.parametrize("pool", [{"binding_table_pool_enable": 0}, None])
def test_edited_tables_stay_where_they_are_without_a_pool(pool: dict[str, int] | None) -> None:
    """Or while it is not enabled, whatever its address and size."""
    rig = Rig()
    rig.space.write(TABLES, b"\x55" * 0x1000)
    where = {"binding_table_pool_base_address": TABLES, "binding_table_pool_buffer_size": 1}
    rig.run(*([] if pool is None else [rig.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", **where, **pool)]), rig.edit((3, 1)),
            rig.pack("3DSTATE_BINDING_TABLE_POINTERS_VS"), rig.pack("3DPRIMITIVE"))  # fmt: skip
    assert rig.space.read(TABLES, 0x1000) == b"\x55" * 0x1000


def test_a_pool_without_a_size_is_refused() -> None:
    rig = Rig()
    pool = rig.pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", binding_table_pool_base_address=TABLES, binding_table_pool_enable=1)
    with pytest.raises(DecodeError, match="binding_table_pool_enable 1 and a size of 0"):
        rig.run(pool, rig.edit((3, 1)), rig.pack("3DSTATE_BINDING_TABLE_POINTERS_VS"), rig.pack("3DPRIMITIVE"))


@pytest.mark.behaviour("BDW-RS-02", shows="action")
def test_gathering_needs_hardware_binding_tables() -> None:
    rig = Rig()
    rig.surface(1)
    with pytest.raises(DecodeError, match="the binding table pool is not enabled"):
        rig.go(rig.edit((0, 1)), rig.gather((0, 1, 0)), tables=False)


def test_a_table_on_the_die_is_refused() -> None:
    rig = Rig("kbl")
    with pytest.raises(Unsupported, match="on_die_table 1"):
        rig.go(rig.gather((0, 1, 0), on_die_table=1))


@pytest.mark.behaviour("KBL-CONST-03", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize("enable", [0, 1])
def test_the_second_buffer_counts_from_the_gather_pool(gen: float, enable: int) -> None:
    held = {0x10000: b"\x11" * 32, 0x20000: b"\x22" * 4096, 0x30000: b"\x33" * 32}
    lengths = [{"length": length} for length in (0, 1, 1, 0)]
    pointers = [{"pointer": pointer} for pointer in (0, 0x10000 if not enable else 32, 0x30000, 0)]
    pool = {"gather_pool_base_address": 0x20000, "gather_pool_enable": enable, "gather_pool_buffer_size": 1}
    commands = {"3DSTATE_CONSTANT_VS": {"read_length": lengths, "constant_buffer": pointers}, "3DSTATE_GATHER_POOL_ALLOC": pool}
    first = b"\x22" if enable else b"\x11"
    assert constants.push_constants(made_state(gen, held, commands), "VS") == first * 32 + b"\x33" * 32


# -- the registers of Direct3D 9 ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-DX9-01", "BDW-DX9-02", "BDW-DX9-03", shows="action")
@pytest.mark.parametrize("stage", ["VS", "PS"])
@pytest.mark.parametrize("gpu", ["bdw", "kbl"])
def test_valid_local_registers_win_over_global_ones(gpu: str, stage: str) -> None:
    """By the rules of Direct3D 9; by those of 8, global ones count alone. Afterwards no local one is valid."""
    rig = Rig(gpu)
    both = {"stage": stage}
    rig.go(rig.dx9_pool(), rig.registers("F", 254, (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0), **both),
           rig.registers("F", 255, (9.0, 10.0, 11.0, 12.0), globally=0, **both),
           rig.registers("I", 31, (1, -2, 3, -4), **both), rig.registers("B", 14, 1, 0, **both),
           rig.registers("B", 15, 1, globally=0, **both),
           rig.generate(0, dx9=0, **both), rig.registers("F", 255, (9.0, 10.0, 11.0, 12.0), globally=0, **both),
           rig.registers("B", 15, 1, globally=0, **both), rig.generate(1, **both), rig.generate(2, **both))  # fmt: skip
    plain, chosen, after = (rig.constants(slot) for slot in range(3))
    assert plain[0][254:].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]] and plain[2].tolist() == [UNDEFINED] * 14 + [1, 0]
    assert chosen[0][254:].tolist() == [[1, 2, 3, 4], [9, 10, 11, 12]] and chosen[2].tolist() == [UNDEFINED] * 14 + [1, 1]
    assert after[0][255].tolist() == [5, 6, 7, 8] and after[2][15] == 0
    assert all(held[1][31].tolist() == [1, -2, 3, -4] for held in (plain, chosen, after))


@pytest.mark.behaviour("BDW-DX9-04", shows="action")
def test_global_floats_may_be_clamped_on_their_way_out() -> None:
    """Local ones are not, nor are the registers themselves."""
    rig = Rig()
    rig.go(rig.dx9_pool(), rig.registers("F", 0, (2.0, -3.0, 0.5, 1.0), (2.0, 2.0, 2.0, 2.0)),
           rig.registers("F", 1, (4.0, -4.0, 0.0, 9.0), globally=0),
           rig.generate(0, clamp=1), rig.generate(1))  # fmt: skip
    assert rig.constants(0)[0][:2].tolist() == [[1, -1, 0.5, 1], [4, -4, 0, 9]]
    assert rig.constants(1)[0][:2].tolist() == [[2, -3, 0.5, 1], [2, 2, 2, 2]]


@pytest.mark.behaviour("BDW-DX9-01", shows="action")
def test_valid_bits_can_be_set_all_at_once() -> None:
    """As a context that is restored does it."""
    rig = Rig()
    bits = [{"bits": 1 << 31 if n == 7 else 0} for n in range(8)]
    rig.go(rig.dx9_pool(), rig.registers("F", 254, (1.0,) * 4, (2.0,) * 4, globally=0), rig.registers("I", 0, (7, 7, 7, 7), globally=0),
           rig.pack("3DSTATE_DX9_LOCAL_VALID_VS", local_constantf_valid=bits, local_constanti_valid_bits=0, local_constantb_valid_bits=0),
           rig.generate())  # fmt: skip
    assert rig.constants()[0].view(np.uint32)[254].tolist() == [UNDEFINED] * 4 and rig.constants()[0][255].tolist() == [2] * 4
    assert (rig.constants()[1] == UNDEFINED).all()


@pytest.mark.behaviour("BDW-DX9-05", shows="action")
def test_slots_of_the_pool_and_its_end() -> None:
    """Disabling the pool forgets which local registers are valid; a buffer past the end is not written (it would read as 0)."""
    rig = Rig()
    local = rig.registers("F", 0, (3.0,) * 4, globally=0)
    pool = rig.dx9_pool(pages=2)
    rig.go(pool, local, rig.generate(1), local, rig.dx9_pool(0), pool, rig.generate(0), local, rig.generate(2))
    first = [rig.constants(slot)[0].view(np.uint32)[0, 0] for slot in range(3)]
    assert first == [UNDEFINED, 0x40400000, 0]
    assert any("past the end of the pool" in remark for remark in rig.gpu.remarks)
    with pytest.raises(DecodeError, match="pool for it is not enabled"):
        rig.go(rig.dx9_pool(0), rig.generate())


@pytest.mark.parametrize(("kind", "last"), [("F", 255), ("I", 31), ("B", 15)])
def test_registers_past_the_last_are_left_out(kind: str, last: int) -> None:
    rig, row, number = Rig(), 1 if kind == "B" else (1.0 if kind == "F" else 1,) * 4, "FIB".index(kind)
    rig.go(rig.dx9_pool(), rig.registers(kind, last - 1, row, row), rig.generate())
    assert not rig.gpu.remarks and (rig.constants()[number][last - 1 :] == 1).all()
    rig.go(rig.dx9_pool(), rig.registers(kind, last, row, row), rig.generate())
    (remark,) = rig.gpu.remarks
    assert f"constant registers past the last, {last}, are left out" in remark


@pytest.mark.parametrize("kind", ["F", "I", "B"])
def test_a_command_may_set_no_registers(kind: str) -> None:
    rig = Rig()
    rig.go(rig.dx9_pool(), rig.registers(kind, 3), rig.generate())
    assert not rig.gpu.remarks and all((part.view(np.uint32) == UNDEFINED).all() for part in rig.constants())


@pytest.mark.behaviour("BDW-DX9-06", shows="action")
@pytest.mark.parametrize("globally", [0, 1])
def test_registers_that_nothing_was_written_to_are_no_numbers(globally: int) -> None:
    """They are undefined after reset (BDW 4266-4269): a shader that uses one shows it. Neither valid bits nor clamping hide it."""
    rig = Rig()
    bits = [{"bits": 0xFFFFFFFF}] * 8
    valid = rig.pack("3DSTATE_DX9_LOCAL_VALID_VS", local_constantf_valid=bits, local_constanti_valid_bits=0, local_constantb_valid_bits=0)
    rig.go(rig.dx9_pool(), rig.registers("F", 3, (1.0,) * 4, globally=globally), valid, rig.generate(dx9=not globally, clamp=globally))
    floats = rig.constants()[0]
    assert floats[3].tolist() == [1] * 4 and np.isnan(floats).sum() == 4 * 255


@pytest.mark.behaviour("BDW-RS-07", shows="action")
@pytest.mark.parametrize("stage", ["VS", "PS"])
def test_the_second_half_of_a_dx9_buffer_is_its_second_buffer(stage: str) -> None:
    """Only the first buffer's bit is set; index 1 means 4 KiB further on (BDW 5173-5185)."""
    rig = Rig()
    rig.surface(1, size=8192)
    rig.go(rig.edit((0, 1), stage=stage), rig.gather((1, 1, 0), (1, 1, 1), valid=1, constant_buffer_dx9_enable=1, stage=stage))
    assert rig.pool(2) == [1004, 1000 + 1024 + 4]
