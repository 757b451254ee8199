"""The execution model of Ivy Bridge: order within an instruction, channels, regions, accumulators. On every engine."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.errors import SoftgenError
from softgen.eu.check import restrictions as check
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.interpreter import SENDS
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.thread.state import ThreadState
from tests.eu.semantics.build import NULL, NZ, G, L, Z, arf, dst, end, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

ACC0 = 0x20
LOG = 2  # function of an extended math message
EXEC_SIZE = 21  # the lowest bit of the field
COUNT = np.arange(16, dtype=np.int32)


def accumulator(kind: str, number: int = 0) -> Operand:
    return Operand("arf", kind, ACC0 + number, horizontal=1)


def vector(number: int, kind: str = "f", sub: int = 0, swizzle: int = 0b11100100, vertical: int = 4) -> Operand:
    return Operand("grf", kind, number, sub, vertical=vertical, swizzle=swizzle)


def lanes(made: ThreadState, number: int, kind: type = np.int32, count: int = 8) -> list[float]:
    size = np.dtype(kind).itemsize
    return made.grf[number * 32 : number * 32 + count * size].view(kind).tolist()  # type: ignore[no-any-return]


# -- within an instruction -------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-17", shows="action")
@pytest.mark.parametrize(("target", "expected"), [("b", [-128, 127, 3]), ("ub", [0, 255, 3]), ("w", [-250, 302, 3])])
def test_an_instruction_is_as_if_done_step_by_step(target: str, expected: list[int]) -> None:
    """IVB 106-126: -(200:ub) is -200 as words are computed, not 56; |-128:b| is 128; their sums saturate as the destination's type."""
    made = thread(7, 0b111, r4=np.array([200, 0, 253], np.uint8), r5=np.array([-50, -128, 0], np.int8), r6=np.array([0, 174, 0], np.int16))
    first, second = reg(4, "ub", negate=True), reg(5, "b")
    size = {"b": 1, "ub": 1, "w": 2}[target]
    add = instr(7, "add", dst(20, target, 4 // size), first, second, size=1, saturate=True)
    other = instr(7, "add", dst(21, target, 4 // size), scalar(5, "b", 1, absolute=True), scalar(6, "w", 2), size=1, saturate=True)
    third = instr(7, "add", dst(22, target, 4 // size), scalar(4, "ub", 2, negate=True), imm(256, "w"), size=1, saturate=True)
    run(made, add, other, third)
    kind = {"b": np.int8, "ub": np.uint8, "w": np.int16}[target]
    assert [lanes(made, number, kind, 1)[0] for number in (20, 21, 22)] == expected


@pytest.mark.behaviour("EU-17", shows="action")
def test_a_condition_sees_the_result_before_it_is_cut_and_the_source_the_old_destination() -> None:
    """The destination is also the source; a float result of -0.5 becomes the integer 0."""
    made = thread(7, r4=np.array([0.5, -0.5, 1.5, 0, -3, 2, 9, -9], np.float32))
    run(made, instr(7, "mul", dst(4, "f"), reg(4, "f"), reg(4, "f"), condition=G),
        instr(7, "add", dst(5, "d"), reg(4, "f"), imm(0xBF800000, "f")))  # fmt: skip
    assert lanes(made, 4, np.float32) == [0.25, 0.25, 2.25, 0, 9, 4, 81, 81] and made.flags & 0xFF == 0b11110111
    assert lanes(made, 5) == [0, 0, 1, -1, 8, 3, 80, 80]


@pytest.mark.behaviour("EU-05", shows="action")
def test_only_sends_leave_the_registers() -> None:
    """IVB 57: every other instruction of the generation is tried; none reaches a shared function."""
    heard: list[str] = []
    tried = 0
    for row in opcodes.of_generation(7.0):
        if row.name in SENDS or row.form == "branch":
            continue
        made = ThreadState(7, {number: lambda thread, sent: heard.append(sent.instruction.opcode) for number in range(16)})
        sources = [reg(4 + 2 * n, "f") for n in range(row.sources)]
        try:
            run(made, instr(7, row.name, dst(20, "f"), *sources, condition=Z if row.name in ("cmp", "cmpn", "csel") else 0), limit=10)
        except SoftgenError:
            pass  # of other types; the send that ends the thread is not reached
        tried += 1
    assert tried > 40 and set(heard) <= {"send"}
    heard.clear()
    made = ThreadState(7, {9: lambda thread, sent: heard.append("message"), 7: lambda thread, sent: None})
    run(made, instr(7, "send", NULL, reg(4, "ud"), sfid=9, descriptor=1 << 25))
    assert heard == ["message"]


# -- channels --------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-19", shows="action")
@pytest.mark.parametrize(("kind", "dtype"), [("w", np.int16), ("ub", np.uint8)])
def test_thirty_two_channels_are_the_most(kind: str, dtype: type) -> None:
    """IVB 425: of bytes and words; every other channel of 32 is off. The codes above that of 32 are reserved."""
    values: np.ndarray = np.arange(32, dtype=dtype) + 7
    made = thread(7, 0x5555_5555, r4=values)
    run(made, instr(7, "add", dst(20, kind, 1) if kind == "w" else dst(20, kind, 2), reg(4, kind, "16;16,1"), imm(1, "w"), size=32))
    step = 2 // np.dtype(dtype).itemsize
    found = made.grf[640 : 640 + 64].view(dtype)[::step].tolist()
    assert found == [int(values[n]) + 1 if n % 2 == 0 else 0 for n in range(32)]
    mov = encode(instr(7, "mov", dst(4, "w"), scalar(2, "w"), size=32))
    assert mov >> EXEC_SIZE & 7 == 5 and decode(mov, 7.0).exec_size == 32
    for code in (6, 7):
        reserved = decode(mov & ~(7 << EXEC_SIZE) | code << EXEC_SIZE, 7.0)
        assert reserved.exec_size <= 32 and "reserved_bits" in [row.name for row in check.check(reserved)]


@pytest.mark.behaviour("EU-124", shows="action")
@pytest.mark.parametrize("sub", [0, 16])
def test_sources_of_align16_begin_at_any_16_bytes(sub: int) -> None:
    """IVB 1480: from the middle of a register on, eight channels reach into the next."""
    made = thread(7, r4=np.arange(16, dtype=np.float32))
    run(made, instr(7, "mov", Operand("grf", "f", 20, horizontal=1, write_mask=15), vector(4, sub=sub), align16=True))
    assert lanes(made, 20, np.float32) == [n + sub // 4 for n in range(8)]


@pytest.mark.behaviour("EU-126", shows="action")
def test_a_vector_of_sixteen_channels_takes_a_pair_of_registers_for_each_component() -> None:
    """IVB 1507-1529: add dst.xyz, src0.yxzw, src1.zwxy of a shader becomes three instructions of SIMD16; w stays as it was."""
    x, y, z, w = (np.arange(16, dtype=np.float32) + 100 * n for n in range(4))
    made = thread(7, 0xFFFF, r2=np.concatenate([x, y, z, w]), r10=np.concatenate([x, y, z, w]) * 1000, r24=np.full(16, -1, np.float32))
    pairs = {"x": 0, "y": 2, "z": 4, "w": 6}
    run(made, *(instr(7, "add", dst(18 + pairs[to], "f"), reg(2 + pairs[a], "f"), reg(10 + pairs[b], "f"), size=16)
                for to, a, b in ("xyz", "yxw", "zzx")))  # fmt: skip
    held = dict(zip("xyzw", (x, y, z, w), strict=True))
    for to, a, b in ("xyz", "yxw", "zzx"):
        assert lanes(made, 18 + pairs[to], np.float32, 16) == (held[a] + held[b] * 1000).tolist()
    assert lanes(made, 24, np.float32, 16) == [-1] * 16


@pytest.mark.behaviour("EU-132", shows="action")
@pytest.mark.parametrize(("mask", "stride", "sub"), [(0b1111, 1, 5), (0b1010, 1, 3), (0b1101, 2, 1), (0b0110, 4, 30 - 13)])
def test_bytes_of_a_register_are_read_and_written_alone(mask: int, stride: int, sub: int) -> None:
    """IVB 1614-1616: any byte is an origin, and bytes of channels that are off, or between elements, keep what they hold."""
    before = np.arange(32, dtype=np.uint8) + 100
    made = thread(7, mask, r4=np.arange(32, dtype=np.uint8), r20=before)
    run(made, instr(7, "mov", dst(20, "ub", stride, sub), reg(4, "ub", "4;4,1", 9), size=4))
    expected = before.copy()
    for channel in range(4):
        if mask >> channel & 1:
            expected[sub + channel * stride] = 9 + channel
    assert made.grf[640:672].tolist() == expected.tolist()


# -- regions ---------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-227", shows="action")
def test_reductions_write_a_smaller_area_than_they_read() -> None:
    """IVB 2981-2988: sixteen bytes of each source are eight sums of two; other instructions write as many elements as they read."""
    a, b = np.arange(16, dtype=np.uint8) * 7, np.arange(16, dtype=np.uint8)[::-1].copy()
    made = thread(7, 0xFFFF, r4=a, r5=b, r20=np.full(16, 99, np.int16), r21=np.full(16, 99, np.int16))
    sums = [int(abs(int(a[n]) - int(b[n])) + abs(int(a[n + 1]) - int(b[n + 1]))) for n in range(0, 16, 2)]
    sources = reg(4, "ub", "16;16,1"), reg(5, "ub", "16;16,1")
    run(made, instr(7, "sad2", dst(20, "w"), *sources, size=16, acc_write=True), instr(7, "sada2", dst(21, "w"), *sources, size=16),
        instr(7, "mov", dst(22, "w"), sources[0], size=16))  # fmt: skip
    assert lanes(made, 20, np.int16, 16) == [value for total in sums for value in (total, 99)]
    assert lanes(made, 21, np.int16, 16)[::2] == [2 * total for total in sums] and lanes(made, 22, np.int16, 16) == a.tolist()


@pytest.mark.behaviour("EU-227", "EU-234", shows="action")
@pytest.mark.parametrize(("region", "expected"), [("8;8,1", range(8)), ("4;4,1", range(8)), ("2;2,1", range(8)), ("1;1,0", range(8)),
                                                  ("8;4,1", [0, 1, 2, 3, 8, 9, 10, 11]), ("8;4,2", [0, 2, 4, 6, 8, 10, 12, 14]),
                                                  ("0;4,1", [0, 1, 2, 3] * 2), ("4;4,0", [0] * 4 + [4] * 4),
                                                  ("0;1,0", [0] * 8)])  # fmt: skip
def test_a_region_has_as_many_elements_as_channels_whatever_its_shape(region: str, expected: list[int]) -> None:
    """IVB 270-275, 2981-2988: the first four shapes are packed: elements and rows are next to each other, none left out or repeated."""
    made = thread(7, r4=COUNT)
    run(made, instr(7, "add", dst(20), reg(4, "d", region), reg(4, "d", "0;1,0")))
    assert lanes(made, 20) == list(expected) and lanes(made, 21) == [0] * 8


@pytest.mark.behaviour("EU-232", shows="action")
def test_an_operand_has_one_type_for_all_its_elements() -> None:
    """IVB 3022-3023: one field of the encoding; the same bytes as words of either sign, and bytes, whatever the other operand is."""
    for page in ("EU_SOURCE_0", "EU_SOURCE_1", "EU_DESTINATION"):
        assert [field.name for field in layout(page, 7.0).fields if "type" in field.name] == ["type"]
    made = thread(7, r4=np.array([0xFF80, 0x0180] * 8, np.uint16))
    run(made, instr(7, "mov", dst(20), reg(4, "w")), instr(7, "mov", dst(21), reg(4, "uw")), instr(7, "mov", dst(22), reg(4, "b")),
        instr(7, "add", dst(23), reg(4, "ub"), reg(4, "b")))  # fmt: skip
    assert lanes(made, 20) == [-128, 0x180] * 4 and lanes(made, 21) == [0xFF80, 0x180] * 4
    assert lanes(made, 22) == [-128, -1, -128, 1] * 2 and lanes(made, 23) == [0, 0xFE, 0, 2] * 2


# -- accumulators ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-157", shows="action")
@pytest.mark.parametrize(("kind", "size"), [("w", 16), ("d", 8), ("f", 8)])
def test_disabled_channels_of_the_accumulator_keep_their_data(kind: str, size: int) -> None:
    """IVB 1963-1964: channels that were not dispatched, and those whose predicate is false."""
    dtype = {"w": np.int16, "d": np.int32, "f": np.float32}[kind]
    values = (np.arange(16) + 1).astype(dtype)
    made = thread(7, 0b1110_1011_0111_1101, r4=values, r6=values * 10)
    made.dwords("f")[0] = 0b0110_0111_1101_1011
    on = made.dispatch_mask & int(made.dwords("f")[0])
    source, region = reg(4, kind, f"{size};{size},1"), f"{size};{size},1"
    run(made, instr(7, "mov", accumulator(kind), reg(6, kind, region), size=size, no_mask=True),
        instr(7, "add", dst(20, kind), source, imm(0, "f" if kind == "f" else "w"), size=size, acc_write=True, predicate=1),
        instr(7, "mov", dst(22, kind), arf(ACC0, kind, 0, region), size=size, no_mask=True))  # fmt: skip
    assert lanes(made, 22, dtype, size) == [values[n] * (1 if on >> n & 1 else 10) for n in range(size)]


@pytest.mark.behaviour("EU-158", "EU-159", shows="action")
@pytest.mark.parametrize(("kind", "quarter", "second"), [("f", 0, False), ("f", 1, True), ("f", 2, False), ("f", 3, True),
                                                         ("d", 0, False), ("d", 1, False), ("d", 3, False)])  # fmt: skip
def test_which_accumulator_an_implicit_operand_is(kind: str, quarter: int, second: bool) -> None:
    """IVB 1966-1973: Q2 and Q4 mean acc1 for floats; other types have acc0 alone, which quarters fall back to. As a source of mac, too."""
    dtype = {"f": np.float32, "d": np.int32}[kind]
    made = thread(7, r4=(np.arange(8) + 1).astype(dtype), r5=np.full(8, 100, dtype), r6=np.full(8, 1000, dtype),
                  r7=np.full(16, 2, np.int16))  # fmt: skip
    made.set_dispatch_mask(0xFFFFFFFF)
    factor = imm(0x40000000, "f") if kind == "f" else reg(7, "w")
    fill = [instr(7, "mov", accumulator(kind, number), reg(5 + number, kind)) for number in range(2 if kind == "f" else 1)]
    run(made, *fill, instr(7, "mac", dst(20, kind), reg(4, kind), factor, quarter=quarter),
        instr(7, "add", dst(21, kind), reg(4, kind), reg(5, kind), quarter=quarter, acc_write=True))  # fmt: skip
    held = 1000 if second else 100
    assert lanes(made, 20, dtype) == [2 * (n + 1) + held for n in range(8)]
    new, old = [float(n + 101) for n in range(8)], [float(100 if second else 1000)] * 8
    found = made.arf["acc"].view(dtype).tolist()
    assert (found[8:], found[:8]) == (new, old) if second else found[:8] == new and (kind == "d" or found[8:] == old)


@pytest.mark.behaviour("EU-158", "EU-162", "EU-167", shows="action")
def test_sixteen_floats_take_both_accumulators() -> None:
    """IVB 1966-1967: implicitly; and explicitly (IVB 1995-1998), which some steppings do not allow and softgen's do."""
    values = np.arange(16, dtype=np.float32)
    made = thread(7, 0xFFFF, r4=values, r6=np.full(16, 3, np.float32))
    run(made, instr(7, "mul", accumulator("f"), reg(4, "f"), reg(6, "f"), size=16),
        instr(7, "mac", dst(20, "f"), reg(4, "f"), reg(6, "f"), size=16),
        instr(7, "add", dst(22, "f"), arf(ACC0, "f"), reg(6, "f"), size=16))  # fmt: skip
    assert lanes(made, 20, np.float32, 16) == (values * 6).tolist() and lanes(made, 22, np.float32, 16) == (values * 3 + 3).tolist()


@pytest.mark.behaviour("EU-164", shows="action")
def test_an_implicit_accumulator_is_not_swizzled_with_the_other_sources() -> None:
    """IVB 2002-2003."""
    made = thread(7, r4=np.arange(8, dtype=np.float32), r5=np.ones(8, np.float32), r6=np.arange(0, 800, 100, dtype=np.float32))
    run(made, instr(7, "mov", accumulator("f"), reg(6, "f")),
        instr(7, "mac", Operand("grf", "f", 20, horizontal=1, write_mask=0b1011), vector(4, swizzle=0b00011011), vector(5),
              align16=True))  # fmt: skip
    assert lanes(made, 20, np.float32) == [3, 102, 0, 300, 407, 506, 0, 704]


@pytest.mark.behaviour("EU-167", shows="action")
def test_how_much_an_accumulator_holds_of_each_integer_type() -> None:
    """IVB 2029-2050: 64 bits for eight dwords, 33 for sixteen words. 0x12345678 x 0xFFFF as D; -0x8000 x 0xFFFF as W."""
    made = thread(7, 0xFFFF, r4=COUNT[:8] + 0x12345678, r5=np.full(16, 0xFFFF, np.uint16), r6=np.arange(-0x8000, -0x7FF0, dtype=np.int16))
    run(made, instr(7, "mul", accumulator("d"), reg(4), reg(5, "uw")), instr(7, "mov", dst(20, "d"), arf(ACC0, "d")),
        instr(7, "mov", dst(21, "d"), arf(ACC0, "d"), saturate=True),
        instr(7, "mul", accumulator("w"), reg(6, "w", "16;16,1"), reg(5, "uw", "16;16,1"), size=16),
        instr(7, "mov", dst(22, "w"), arf(ACC0, "w", 0, "16;16,1"), size=16),
        instr(7, "mov", dst(23, "w"), arf(ACC0, "w", 0, "16;16,1"), size=16, saturate=True))  # fmt: skip
    products = [(0x12345678 + n) * 0xFFFF for n in range(8)]
    assert made.register(20).tolist() == [product & 0xFFFFFFFF for product in products] and made.register(21).tolist() == [0x7FFFFFFF] * 8
    held = [(n - 0x8000) * 0xFFFF for n in range(16)]
    assert lanes(made, 22, np.uint16, 16) == [value & 0xFFFF for value in held] and lanes(made, 23, np.int16, 16) == [-0x8000] * 16


@pytest.mark.behaviour("EU-167", shows="action")
def test_an_accumulator_of_doubles_is_as_precise_as_a_register() -> None:
    made = thread(7, r4=np.array([1.0, 3.0, -7.5, 2.0**53]), r6=np.array([2.0**-53, 2.0**-52, 0.125, 1.0]))
    run(made, instr(7, "add", accumulator("df"), reg(4, "df"), reg(6, "df")), instr(7, "mov", dst(20, "df"), arf(ACC0, "df")))
    assert lanes(made, 20, np.float64, 4) == [1.0, 3.0, -7.375, 2.0**53]


@pytest.mark.behaviour("EU-118", shows="action")
@pytest.mark.parametrize("opcode", ["cmp", "cmpn", "sel"])
def test_compares_and_selects_read_an_accumulator(opcode: str) -> None:
    """IVB 442-444."""
    values, other = np.array([1, -5, 7, 0, 3, -2, 9, 4], np.float32), np.array([2, -6, 7, 1, -3, 2, 8, 5], np.float32)
    made = thread(7, r4=values, r5=other)
    run(made, instr(7, "mov", accumulator("f"), reg(4, "f")),
        instr(7, opcode, dst(20, "f"), arf(ACC0, "f"), reg(5, "f"), condition=L))  # fmt: skip
    less = values < other
    if opcode == "sel":
        assert lanes(made, 20, np.float32) == np.minimum(values, other).tolist() and not made.flags
    else:
        assert lanes(made, 20) == [-int(flag) for flag in less] and made.flags & 0xFF == sum(1 << n for n in range(8) if less[n])


# -- messages --------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-58", shows="action")
def test_every_message_has_the_float_mode_of_its_thread() -> None:
    """IVB 2419-2422: the mode at the send, which software changes at run time; the thread's other modes do not matter."""
    modes: list[bool] = []
    made = ThreadState(7, {9: lambda thread, sent: modes.append(sent.alt), 7: lambda thread, sent: None})
    message = instr(7, "send", NULL, reg(4, "ud"), sfid=9, descriptor=1 << 25)

    def mode(value: int) -> Instruction:
        return instr(7, "mov", Operand("arf", "ud", 0x80, horizontal=1), imm(value, "ud"), size=1, no_mask=True, thread_control=2)

    run(made, message, mode(1), message, message, mode(0xFE & ~0b1000100), message, mode(0xFF & ~0b1000100), message)
    assert modes == [False, True, True, False, True]


@pytest.mark.behaviour("EU-58", shows="action")
@pytest.mark.parametrize(("mode", "expected"), [(0, [-np.inf, 3, np.nan, 1]), (1, [-3.4028234663852886e38, 3, 2, 1])])
def test_a_shared_function_follows_the_mode_of_its_message(mode: int, expected: list[float]) -> None:
    """Extended math where it is one: log2 of 0 is the largest float in ALT mode, that of -4 is that of 4."""
    made = thread(4.5, 0xF)
    made.mrf[64:80] = np.array([0, 8, -4, 2], np.float32).view(np.uint8)
    made.dwords("cr")[0] = mode
    run(made, instr(4.5, "send", dst(20, "f"), NULL, sfid=1, base_mrf=2, descriptor=1 << 20 | 1 << 16 | LOG))
    np.testing.assert_equal(lanes(made, 20, np.float32, 4), expected)
