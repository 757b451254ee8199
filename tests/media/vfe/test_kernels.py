"""What media kernels of Gen4.5 do that no 3D kernel does: calls into other buffers, halves of a compressed instruction."""

from __future__ import annotations

import time

import pytest

from softgen.errors import SoftgenError
from softgen.eu.text import dialect
from tests.media.vfe.batch import EXTRA, GEN, GENERAL, OUT, Media, buffer_surface, dump, media_object, pack, store
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
