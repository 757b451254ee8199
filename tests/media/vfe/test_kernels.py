"""What media kernels of Gen4.5 do that no 3D kernel does: calls into other buffers, halves of a compressed instruction."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from softgen.errors import SoftgenError
from softgen.eu.text import dialect
from tests.media.vfe.batch import END, EXTRA, GEN, GENERAL, OUT, SCRATCH, Fields, Media, buffer_surface, dump, media_object, pack, store
from tests.media.vfe.slices import FRAME, INTRA, TOP, P, Slice, slice_object
from tests.three_d.g45_draw import move, send

ENGINES = ["reference", "t0", "t1"]
# Another buffer's code: g1.0 times three, then back to where g2.0 says.
LIBRARY = """
add(1) g3<1>UD g1<0,1,0>UD g1<0,1,0>UD { align1 nomask };
add(1) g1<1>UD g3<0,1,0>UD g1<0,1,0>UD { align1 nomask };
mov(1) ip<1>UD g2<0,1,0>UD { align1 nomask };
"""


def caller(to: int) -> str:
    """Calls the library three times, and dumps r1. Reading ip gives the address of the reading instruction."""
    call = f"""
mov(1) g2<1>UD ip<0,1,0>UD {{ align1 nomask }};
add(1) g2<1>UD g2<0,1,0>UD 0x00000030UD {{ align1 nomask }};
mov(1) ip<1>UD {to:#010x}UD {{ align1 nomask }};
"""
    return 3 * call + dump(2)


@pytest.mark.parametrize("engine", ENGINES)
def test_kernels_call_code_of_other_buffers(engine: str) -> None:
    """Two threads: 5 and 7 times 27. The buffer lies behind others, beyond a gap."""
    library = dialect.read(LIBRARY, GEN)
    objects = [media_object(inline=[5]), media_object(inline=[7])]
    ran = Media(objects, kernels=[caller(EXTRA + 0x40 - GENERAL)], patch={EXTRA + 0x40: library}).run(engine)
    assert [ran.registers(n, 1)[0] for n in range(2)] == [135, 189]


TABLE_OF_PARTS = "".join(f"mov(1) g1<1>UD {value:#010x}UD {{ align1 nomask }};\n" + "mov(1) ip<1>UD g2<0,1,0>UD { align1 nomask };\n"
                         for value in (11, 22, 33))  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("on", [True, False])
def test_threads_jump_to_places_that_their_data_names(engine: str, on: bool) -> None:
    """Sixteen threads, each to one of three parts of another buffer. Where channel 0 is off, nobody jumps."""
    jump = f"add(1) ip<1>UD g4<0,1,0>UD {EXTRA - GENERAL:#010x}UD {{ align1 }};"
    if not on:
        jump = f"""cmp.ne.f0.0(8) null<1>UD g5<8,8,1>UD 0x00000000UD {{ align1 nomask }};
(+f0.0) if(8) Jump: 2 {{ align1 switch }};
{jump}
endif(8) Pop: 1 {{ align1 switch }};"""
    kernel = f"""mov(8) g5<1>UD 0x00000001UD {{ align1 nomask }};
mov(1) g5<1>UD 0x00000000UD {{ align1 nomask }};
shl(1) g4<1>UD g1<0,1,0>UD 0x00000005UD {{ align1 nomask }};
mov(1) g2<1>UD ip<0,1,0>UD {{ align1 nomask }};
add(1) g2<1>UD g2<0,1,0>UD {48 if on else 80:#010x}UD {{ align1 nomask }};
{jump}
{dump(2)}"""
    objects = [media_object(inline=[n % 3]) for n in range(16)]
    vfe = {"maximum_number_of_threads": 15, "number_of_urb_entries": 32, "urb_entry_allocation_size": 3}
    ran = Media(objects, kernels=[kernel], vfe=vfe, patch={EXTRA: dialect.read(TABLE_OF_PARTS, GEN)}).run(engine)
    assert [ran.registers(n, 1)[0] for n in range(16)] == [(11, 22, 33)[n % 3] if on else n % 3 for n in range(16)]


@pytest.mark.parametrize("engine", ["t0", "t1"])
def test_a_jump_to_itself_takes_no_longer_than_the_time_limit(engine: str) -> None:
    kernel = f"""mov(1) g2<1>UD ip<0,1,0>UD {{ align1 nomask }};
add(1) g2<1>UD g2<0,1,0>UD 0x00000020UD {{ align1 nomask }};
mov(1) ip<1>UD g2<0,1,0>UD {{ align1 nomask }};
{dump(1)}"""
    end = time.monotonic() + 0.3
    with pytest.raises(SoftgenError, match="time"):
        Media([media_object()], kernels=[kernel]).run(engine, timed_out=lambda: time.monotonic() > end)


@pytest.mark.parametrize("engine", ENGINES)
def test_code_of_other_buffers_may_change_between_batches(engine: str) -> None:
    """The second flush of objects finds another library."""
    library, other = (dialect.read(text, GEN) for text in (LIBRARY, LIBRARY.replace("g3<0,1,0>UD g1", "g3<0,1,0>UD g3")))
    change = [store(EXTRA + at, int.from_bytes(other[at : at + 4], "little")) for at in range(0, len(other), 4)]
    objects = [media_object(inline=[1]), pack("MI_FLUSH"), *change, media_object(inline=[1])]
    ran = Media(objects, kernels=[caller(EXTRA - GENERAL)], patch={EXTRA: library}).run(engine)
    assert [ran.registers(n, 1)[0] for n in range(2)] == [27, 64]


def test_code_that_is_not_mapped_is_named() -> None:
    with pytest.raises(SoftgenError, match="outside of the kernel's code"):
        Media([media_object()], kernels=[caller(0x700_0000)]).run()


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("region", "second"), [("<8,8,0>", 0x2222), ("<8,8,1>", 8), ("<0,1,0>", 0)])
def test_halves_of_a_compressed_instruction(engine: str, region: str, second: int) -> None:
    """r10 holds words 0 to 15, r11 begins with 0x2222: with a row of one element the second half is in the next register."""
    words = "\n".join(f"mov(1) g10.{n}<1>UW {n:#06x}UW {{ align1 nomask }};" for n in range(16))
    kernel = f"""{words}
mov(1) g11<1>UW 0x2222UW {{ align1 nomask }};
mov(16) g4<1>UD g10{region}UW {{ align1 compr nomask }};
{dump(6)}"""
    ran = Media([media_object()], kernels=[kernel]).run(engine)
    assert ran.registers(0, 4)[0] == 0 and ran.registers(0, 5)[0] == second


@pytest.mark.parametrize("engine", ENGINES)
def test_all_of_32_words_are_written(engine: str) -> None:
    """The driver's motion compensation shifts sums of 32 samples at once."""
    kernel = f"mov(32) g4<1>UW 0x0007UW {{ align1 compr }};\n{dump(6)}"
    ran = Media([media_object()], kernels=[kernel]).run(engine)
    assert ran.registers(0, 4) == ran.registers(0, 5) == (0x70007,) * 8


@pytest.mark.behaviour("G45-KRN-04", shows="action")
def test_reads_of_media_blocks_repeat_the_edge_at_the_pitch() -> None:
    """A surface whose width field counts pixels, four times the row: 16 columns from column 8 on of rows of 16 bytes."""
    picture = bytes(range(16)) * 4
    surface = {"surface_type": 1, "surface_format": 0x147, "surface_base_address": EXTRA, "width": 15, "height": 3, "surface_pitch": 15}
    header = "\n".join(f"mov(1) g6.{n}<1>UD {value:#010x}UD {{ align1 nomask }};" for n, value in enumerate((8, 0, 0x1000F)))
    read = send(1, 4, 1 | 4 << 11, 1, 1, to="g4<1>UD", name="read", source="g6")
    kernel = "\n".join((move("g6", "g0<8,8,1>"), header, read, dump(5)))
    ran = Media([media_object()], kernels=[kernel], surfaces=[buffer_surface(OUT), surface], patch={EXTRA: picture}).run()
    assert ran.data(0, 4) == 2 * (bytes(range(8, 16)) + b"\x0f" * 8)


# -- what kernels do for decoding ------------------------------------------------------------------------------------------------


def vld(made: Slice, kernel: str, *, curbe: bytes = b"", surfaces: Sequence[Fields] = (), patch: Mapping[int, bytes] | None = None,
        descriptor: Fields | None = None, **state: Any) -> Any:  # fmt: skip
    """A slice whose macroblocks a kernel gets."""
    bits, codes = made.data(), {f"f_code_{s}_{t}": 1 for s in range(2) for t in range(2)}
    held = {"picture_coding_type": made.type, "picture_structure": FRAME, "frame_prediction_frame_dct": 1, **codes, **state}
    return Media([slice_object(bits)], kernels=[kernel], mode="vld", extension=("VLD_STATE", held), indirect=bits, curbe=curbe,
                 surfaces=[buffer_surface(OUT), *surfaces], patch=patch or {}, descriptor=descriptor or {}).run()  # fmt: skip


@pytest.mark.behaviour("G45-KRN-03", shows="action")
@pytest.mark.parametrize("place", ["constant entry", "constant cache"])
def test_levels_are_scaled_by_a_matrix_of_constants(place: str) -> None:
    """An intra macroblock whose first block has levels 5 and -3; the matrix of 64 bytes is in the CURBE, at r1 and r2, or read from a
    buffer. Where it is in the CURBE the record is r3 and the block begins at r4."""
    matrix = bytes(range(7, 71))
    made = Slice(INTRA).begin("intra").intra_block(5, (2, -3))
    for number in range(1, 6):
        made.intra_block(0, chroma=number > 3)
    multiply = "\n".join(f"mul(16) g{n}<1>W g{n}<16,16,1>W g{n // 2 - 1}.{n % 2 * 16}<16,16,1>UB {{ align1 compr }};" for n in range(4, 8))
    if place == "constant entry":
        kernel = multiply
        more: dict[str, Any] = {"curbe": matrix, "descriptor": {"constant_urb_entry_read_length": 2}}
    else:
        moves = "\n".join(move(f"g{4 + n}", f"g{2 + n}<8,8,1>") for n in reversed(range(4)))
        header = f"{move('g30', 'g0<8,8,1>')}\nmov(1) g30.2<1>UD 0x00000000UD {{ align1 nomask }};"
        read = send(1, 4, 1 | 3 << 8, 1, 2, to="g1<1>UD", name="read", source="g30")
        kernel = f"{moves}\n{header}\n{read}\n{multiply}"
        more = {"surfaces": [buffer_surface(EXTRA)], "patch": {EXTRA: matrix}}
    ran = vld(made, f"{kernel}\n{dump(8)}", **more)
    words = np.frombuffer(ran.data(0, 4, 4), np.int16)
    wanted = np.zeros(64, np.int64)
    wanted[0], wanted[16] = 5 * matrix[0], -3 * matrix[16]  # the third of the zigzag order
    assert np.array_equal(words, wanted)


def media_block(name: str, surface: int, x: str, y: str, data: str) -> str:
    """A read or write of 16x2 bytes; registers give the place."""
    place = f"{move('g30', 'g0<8,8,1>')}\nmov(1) g30<1>D {x} {{ align1 nomask }};\nmov(1) g30.1<1>D {y} {{ align1 nomask }};"
    place += "\nmov(1) g30.2<1>UD 0x0001000fUD { align1 nomask };"
    if name == "read":
        return f"{place}\n{send(1, 4, surface | 4 << 11, 1, 1, to=f'{data}<1>UD', name='read', source='g30')}"
    return f"{place}\n{move('m2', f'{data}<8,8,1>')}\n{send(1, 5, surface | 2 << 12, 2, name='write', source='g30')}"


def field(offset: int, height: int = 8, address: int = EXTRA) -> Fields:
    """The lines of a parity of a picture of 64 bytes a line."""
    return {"surface_type": 1, "surface_format": 0x147, "surface_base_address": address, "width": 15, "height": height - 1,
            "surface_pitch": 63, "vertical_line_stride": 1, "vertical_line_stride_offset": offset}  # fmt: skip


@pytest.mark.behaviour("G45-KRN-08", shows="action")
@pytest.mark.parametrize("engine", ENGINES)
def test_fields_are_chosen_by_surface_state(engine: str) -> None:
    """Lines 2 and 4 of the frame are lines 1 and 2 of its top field; they become lines 1 and 3, the first ones of the bottom field."""
    frame = bytes(random.Random(3).randrange(256) for _ in range(64 * 16))
    kernel = f"{media_block('read', 1, '3D', '1D', 'g4')}\n{media_block('write', 2, '5D', '0D', 'g4')}\n{END}"
    surfaces = [buffer_surface(OUT), field(0), field(1)]
    ran = Media([media_object()], kernels=[kernel], surfaces=surfaces, patch={EXTRA: frame}).run(engine)
    wanted = bytearray(frame)
    for to, source in ((1, 2), (3, 4)):
        wanted[64 * to + 5 : 64 * to + 21] = frame[64 * source + 3 : 64 * source + 19]
    assert ran.space.read(EXTRA, len(frame)) == bytes(wanted)


@pytest.mark.behaviour("G45-KRN-07", shows="action")
def test_dual_prime_is_the_mean_of_two_fields() -> None:
    """The macroblock at (16, 0) of a top field. Its vector leads from there to lines of the same parity, and the derived one to those of
    the other; the kernel halves them and takes the mean, which is rounded up."""
    made = Slice(P).begin("forward").put(3, 2).vector(0, 0, dual=(0, 0)).begin("forward").put(3, 2).vector(-4, 8, dual=(0, 0))
    frame = bytes(random.Random(5).randrange(256) for _ in range(64 * 64))
    places = ["mul(1) g20<1>D g1.6<0,1,0>W 1W { align1 nomask };", "mul(1) g21<1>D g1.7<0,1,0>W 1W { align1 nomask };"]
    reads = []
    for number, vector in enumerate((8, 10)):  # words of the vectors of both parities
        for axis in range(2):
            to = f"g{22 + 2 * number + axis}"
            places += [f"asr(1) {to}<1>D g1.{vector + axis}<0,1,0>W 1W {{ align1 nomask }};",
                       f"add(1) {to}<1>D {to}<0,1,0>D g{20 + axis}<0,1,0>D {{ align1 nomask }};"]  # fmt: skip
        reads.append(media_block("read", 1 + number, f"g{22 + 2 * number}<0,1,0>D", f"g{23 + 2 * number}<0,1,0>D", f"g{4 + number}"))
    mean = "\n".join(f"avg(16) g6.{at}<1>UB g4.{at}<16,16,1>UB g5.{at}<16,16,1>UB {{ align1 compr }};" for at in (0, 16))
    write = media_block("write", 3, "g20<0,1,0>D", "g21<0,1,0>D", "g6")
    surfaces = [{**field(parity, 32, address), "width": 63} for parity, address in ((0, EXTRA), (1, EXTRA), (0, SCRATCH))]
    kernel = "\n".join([*places, *reads, mean, write, END])
    ran = vld(made, kernel, surfaces=surfaces, patch={EXTRA: frame}, picture_structure=TOP)
    top, bottom = (np.frombuffer(frame, np.uint8).reshape(64, 64)[parity::2].astype(int) for parity in range(2))
    near, far = (-4 >> 1, 8 >> 1), (-4 // 2 >> 1, 8 // 2 - 1 >> 1)  # the other parity is half as far, and half a line higher
    rows = [plane[y : y + 2, 16 + x : 32 + x] for plane, (x, y) in ((top, near), (bottom, far))]
    found = np.frombuffer(ran.space.read(SCRATCH, 256), np.uint8).reshape(4, 64)[::2, 16:32]
    assert np.array_equal(found, rows[0] + rows[1] + 1 >> 1)
