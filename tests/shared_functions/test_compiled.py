"""Every message that can be compiled, with random fields, masks and addresses: as compiled code and on the interpreter, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from softgen.bits import catalogue, describe
from softgen.bits.layout import GENERATIONS
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.eu.semantics.send import execute_message
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions import descriptors, message
from softgen.shared_functions.bindings import KNOWN, SURFACES, TOLD, USED
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.dataport import unit as dataport
from softgen.shared_functions.dataport.block import BYTE_PORTS
from softgen.shared_functions.dataport.media import is_media_block
from softgen.shared_functions.pixel_backend import unit as pixel_backend
from softgen.shared_functions.texture.operations import ASKERS
from tests.conftest import every
from tests.shared_functions.compiled import BlockState, Compiled, instruction
from tests.shared_functions.sending import DATA, PAGE, SLM, STATELESS, Bench

DESCRIPTORS, TURNS = 2, 12  # so many of each message, sent so often
MOST_PAYLOAD, MOST_RESPONSE = 15, 16
BINDLESS = 252
COMMON = descriptors.COMMON | {"message_type", "subtype", "scratch", "access", "target_function_id", "target_cache", "send_commit"}


def compilable() -> Iterator[tuple[float, str]]:
    for gen in GENERATIONS:
        for row in descriptors.rows(gen):
            known = row.name in message.PROGRAMS and row.name not in message.ONLY_REFERENCE
            others = row.name in ASKERS or row.name in pixel_backend.UNIT.messages or is_media_block(row.name)  # with tests of their own
            if row.function in dataport.UNIT.functions and known and not others:
                yield gen, row.name


def fields(row: descriptors.MessageRow, gen: float, rng: np.random.Generator) -> dict[str, int]:
    """Values that the message's page gives a name to; any for what is a plain number."""
    found: dict[str, int] = {}
    for field in catalogue.layout(row.page, gen).fields:
        if field.name in COMMON or field.type.name in ("mbz", "mbo"):
            continue
        names = describe.values_of(field.type, gen)
        found[field.name] = int(rng.choice(sorted(names))) if names else int(rng.integers(0, 1 << min(field.width, 6)))
    if "binding_table_index" in found:
        special = set(catalogue.enumeration(descriptors.SURFACES, gen)) & {SLM, STATELESS}
        found["binding_table_index"] = int(rng.choice([0, 0, *special])) if "a64_" not in row.name else STATELESS
    return found


def places(rng: np.random.Generator, size: int, end: int) -> Any:
    """Byte offsets of 16 lanes: one place, side by side, apart, or anywhere around the end of the surface or of what there is."""
    first, kind = int(rng.integers(0, 128)) * 4, rng.integers(0, 7)
    lanes = np.arange(16)
    if kind == 0:
        found = np.full(16, first)
    elif kind == 1:
        found = first + lanes * size
    elif kind == 2:
        found = first + lanes * size + (lanes == rng.integers(0, 16)) * 4
    elif kind == 3:
        found = rng.integers(0, 16, 16) * 4
    elif kind == 4:
        found = rng.integers(0, 1 << 32, 16)
        found[rng.integers(0, 2, 16) == 0] = first
    else:
        found = rng.integers(max(end - 32, 0), end + 32, 16) // 4 * 4 if kind == 5 else rng.integers(PAGE - 64, PAGE + 64, 16) // 4 * 4
    return found + (rng.integers(0, 4, 16) if rng.integers(0, 4) == 0 else 0)


def header(row: descriptors.MessageRow, at: int, rng: np.random.Generator) -> Any:
    made = rng.integers(0, 1 << 32, 8, np.uint32)
    if "a64_" in row.name:
        made[:2] = at & 0xFFFFFFFF, at >> 32
    else:
        made[2] = at if "unaligned" in row.name or row.function in BYTE_PORTS else at // 16
        made[5] = made[5] & 0x3FF | (DATA if "scratch" in row.name else 0)
    return made


def payload(row: descriptors.MessageRow, rng: np.random.Generator, with_header: bool, end: int) -> list[Any]:
    name, wide = row.name, "a64_" in row.name
    at = places(rng, int(rng.choice([1, 2, 4, 8, 4, 4])), end) // (4 if name.startswith(("dword", "constant_dword")) else 1)
    if wide:
        at = at + DATA
        if rng.integers(0, 4) == 0:
            at[rng.integers(0, 16)] = 1 << int(rng.integers(47, 62))
    parts = [header(row, int(at[0]) if wide else int(at[0]) % PAGE, rng)] if with_header else []
    parts.append(at.astype(np.uint64 if wide else np.uint32).view(np.uint32))
    filled = sum(len(part) for part in parts)
    return [*parts, rng.integers(0, 1 << 32, MOST_PAYLOAD * 8 - filled, np.uint32)]


@pytest.mark.parametrize(("gen", "name"), every(4, list(compilable())))
def test_a_message_does_the_same_compiled(gen: float, name: str) -> None:
    rng = np.random.default_rng([int(gen * 10), *name.encode()])
    row = next(row for row in descriptors.rows(gen) if row.name == name)
    compared = useful = 0
    for _ in range(10 * DESCRIPTORS):  # some descriptors ask for more registers than a message can have
        if useful == DESCRIPTORS:
            break
        chosen, width = fields(row, gen, rng), int(rng.choice([1, 8, 16, 16]))
        said = {field.name for field in catalogue.layout(row.page, gen).fields}
        with_header = row.header == "required" or row.header == "optional" and bool(rng.integers(0, 2))
        bench = Bench(gen=gen, size=int(rng.choice([20, 256, 600, PAGE])), general=DATA)
        for _ in range(TURNS):
            mask = int(rng.choice([0xFFFF, 0, 1, 0x8000, int(rng.integers(0, 1 << 16))])) & (1 << width) - 1
            try:
                room = MOST_RESPONSE - ("header_present" not in said)
                bench.send(name, *payload(row, rng, with_header, bench.size), mask=mask, answer=room, width=width,
                           **chosen | ({"header_present": int(with_header)} if "header_present" in said else {}))  # fmt: skip
            except (GpuFault, DecodeError, Unsupported):
                pass
        compared, useful = compared + bench.compiled, useful + bool(bench.compiled)
    assert compared >= TURNS, f"{compared} were compared"


def entries(name: str, width: int, resolved: bool = False, surface: bool = False, **fields: Any) -> set[int]:
    """What compiled code of a message says that it needs of the binding table. `surface`: its index is known when the code runs."""
    m, indices = LlvmMachine(), set[int]()
    row = next(row for row in descriptors.rows(9) if row.name == name)
    sfid = next(number for number, function in descriptors.shared_functions(9).items() if function == row.function)
    inst = instruction(9, sfid, descriptors.encode(name, 9, message_length=2, response_length=1, **fields), width, 1, 0)
    code = MessageCode(m, 9, m.number(u64, 0), lambda condition: None, RecordLayout.of(Context), indices,
                       **{"resolved": True} if resolved else {})  # fmt: skip
    execute_message(BlockState(m, 9), inst, code, Value(m, u32, 1, "%surface") if surface else None)
    return indices


@pytest.mark.parametrize(("name", "fields"), [
    ("untyped_surface_read", {"simd_mode": "simd8", "channel_mask": "r"}), ("oword_block_read", {"data_blocks": "2_owords"}),
    ("dword_scattered_read", {"simd_mode": "simd8"})])  # fmt: skip
def test_compiled_code_names_the_entries_of_the_binding_table_that_it_needs(name: str, fields: dict[str, str]) -> None:
    """They are resolved before it runs. An index that only the message knows is none of them, unless whoever runs the code resolves it:
    then it stands for entry 0. Local and stateless memory have no entry."""
    assert [entries(name, 8, binding_table_index=index, **fields) for index in (0, 7, 239)] == [{0}, {7}, {239}]
    assert [entries(name, 8, binding_table_index=index, **fields) for index in (SLM, STATELESS)] == [set(), set()]
    assert entries(name, 8, surface=True, binding_table_index=7, **fields) == set()
    assert entries(name, 8, surface=True, resolved=True, binding_table_index=7, **fields) == {0}


@pytest.mark.parametrize("name", ["untyped_surface_read", "untyped_surface_write"])
@pytest.mark.parametrize("channels", ["r", "rgba"])
def test_a_row_that_runs_over_the_end_of_32_bits_begins_again_at_zero(name: str, channels: str) -> None:
    """Offsets wrap, lanes do not: a surface of 4 GiB has both its ends."""
    bench = Bench(surface={"surface_base_address": 0, "width": 0x7F, "height": 0x3FFF, "depth": 0x7FF})
    for address in (0, (1 << 32) - PAGE):
        bench.space.map(address, bench.data)
    at = (np.arange(16) * 4 - 20).astype(np.uint32)
    data = [np.arange(64, dtype=np.uint32)] if name.endswith("write") else []
    bench.send(name, at, *data, simd_mode="simd16", channel_mask=channels, answer=8, binding_table_index=0)
    assert bench.compiled == 1


def test_bounds_move_with_the_channel() -> None:
    """A lane whose last dword is beyond the end still has its first."""
    bench = Bench(size=PAGE)
    at = np.full(8, PAGE - 8, np.uint32)
    found = bench.send("untyped_surface_read", at, simd_mode="simd8", channel_mask="rgba", answer=4, binding_table_index=0).view(np.uint32)
    assert bench.compiled == 1 and found[0] and found[8] and not found[16:].any()


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "fields"), [
    ("untyped_surface_read", {"simd_mode": "simd8", "channel_mask": "r"}), ("oword_block_read", {"data_blocks": "2_owords"}),
    ("untyped_surface_write", {"simd_mode": "simd8", "channel_mask": "r"}), ("oword_block_write", {"data_blocks": "2_owords"}),
    ("dword_scattered_read", {"simd_mode": "simd8"}), ("byte_scattered_write", {"simd_mode": "simd8", "data_size": "dword"}),
])  # fmt: skip
@pytest.mark.parametrize("bindless", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_messages_to_a_buffer_that_is_not_there_are_side_exits(name: str, fields: dict[str, str], bindless: bool, there: bool) -> None:
    """The interpreter says why it is not; the message has had no effect by then. A bindless buffer has an entry of its own."""
    bench, answer = Bench(), np.full(32 * name.endswith("read"), 0xEE, np.uint8)
    row = next(row for row in descriptors.rows(9) if row.name == name)
    sfid = next(number for number, function in descriptors.shared_functions(9).items() if function == row.function)
    payload = np.zeros(96, np.uint8)
    index = BINDLESS if bindless else 7
    descriptor = descriptors.encode(name, 9, message_length=3, response_length=len(answer) // 32, binding_table_index=index,
                                    **{"header_present": 1} if row.header == "required" else {}, **fields)  # fmt: skip
    twin, before = Compiled(9, bench.space, bench.slm.held, 0), bench.data.array.copy()
    twin.bindings.surface_keys[3] = USED  # of a surface state at offset 0
    if there:
        twin.bind(SURFACES + 3 if bindless else 7, DATA, 256)
    for mask in (0, 0xFF):  # also where no lane asks
        status = twin.run(sfid, descriptor, payload, payload[:0], answer, mask, 8)
        assert status == (0 if there else ThreadStatus.ESCAPE)
    if not there:
        assert (answer == 0xEE).all() and (bench.data.array == before).all()


@pytest.mark.parametrize("mask, known, leaves", [(0xFF, KNOWN, True), (0xF7, KNOWN, False), (0x08, KNOWN, True), (0xFF, TOLD, False)])
def test_active_lanes_outside_of_a_buffer_are_a_side_exit_once(mask: int, known: int, leaves: bool) -> None:
    """Lane 3 is outside. The interpreter tells it the first time; inactive lanes do not matter."""
    bench, answer = Bench(), np.zeros(32, np.uint8)
    descriptor = descriptors.encode("untyped_surface_read", 9, message_length=1, response_length=1, simd_mode="simd8", channel_mask="r",
                                    binding_table_index=7)  # fmt: skip
    row = next(row for row in descriptors.rows(9) if row.name == "untyped_surface_read")
    sfid = next(number for number, function in descriptors.shared_functions(9).items() if function == row.function)
    twin = Compiled(9, bench.space, bench.slm.held, 0)
    twin.bind(7, DATA, 256, known)
    payload = np.array([0, 40, 8, 256, 16, 252, 24, 28], np.uint32).view(np.uint8)
    status = twin.run(sfid, descriptor, payload, payload[:0], answer, mask, 8)
    assert status == (ThreadStatus.ESCAPE if leaves else 0)
