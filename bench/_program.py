"""A program of bench/programs as a dispatch: memory, surfaces and payload as a driver would have made them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import Buffer
from softgen.threads.dispatch import DispatchContext, Dispatcher, Finished, ThreadDispatch, TimedOut, control_register, never
from softgen.threads.payload import Counter, HeaderPatch, SlotField, TemplatePayload

FOLDER = Path(__file__).parent / "programs"
GPU = "kbl"
CODE, SURFACES, TABLE, FIRST, PRIVATE = 0x40000, 0x80000, 0x800, 0x1000_0000, 0x8000_0000
REGISTER = 32
KIB = 1024

Array = npt.NDArray[Any]
Argument = Array | np.generic


@cache
def descriptions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "programs.json").read_text("utf-8"))
    return found


class Dispatch:
    """`arguments` are arrays, which become buffers, and numbers; `run` as often as one likes."""

    def __init__(self, name: str, arguments: Sequence[Argument], size: Sequence[int], group: Sequence[int]) -> None:
        self.name, self.info = name, descriptions()[name]
        self.size, self.group = (tuple([*one, 1, 1][:3]) for one in (size, group))
        generation = device(GPU).generation
        self.space = AddressSpace(name, generation.address_bits)
        self.places: dict[int, int] = {}
        self.arrays: dict[int, Array] = {}
        self.values: dict[int, bytes] = {}
        for number, one in enumerate(arguments):
            self._argument(number, one)
        self._place(CODE, (FOLDER / f"{name}.dat").read_bytes(), "code")
        self._place(SURFACES, self._surfaces(generation.number), "surface state")
        bases = {"instruction": CODE, "surface": SURFACES, "general": 0, "dynamic": 0}
        self.context = DispatchContext(generation, self.space, bases)
        self.record = self._record(generation.number)

    def run(self, dispatcher: Dispatcher, timed_out: TimedOut = never) -> Finished:
        done = list(dispatcher.run(self.context, self.record, timed_out))
        return Finished(sum(one.threads for one in done), sum(one.instructions for one in done))

    def _place(self, address: int, data: bytes | Array, label: str) -> Buffer:
        raw = data if isinstance(data, bytes) else data.tobytes()
        buffer = Buffer(len(raw), label)
        buffer.view[:] = raw
        self.space.map(address, buffer)
        return buffer

    def _argument(self, number: int, value: Argument) -> None:
        if not isinstance(value, np.ndarray):
            self.values[number] = value.tobytes()
            return
        self.places[number] = FIRST * (number + 1)
        held = self._place(self.places[number], value, f"argument {number}").array
        self.arrays[number] = held.view(value.dtype).reshape(value.shape)

    def _surfaces(self, gen: float) -> bytes:
        states, table = b"", {}
        for one in self.info["binding_table_indices"]:
            number, last = one["arg_index"], self.arrays[one["arg_index"]].nbytes - 1
            table[one["bti_value"]] = len(states)
            states += struct.pack("<16I", *layout("RENDER_SURFACE_STATE", gen).pack(
                surface_type=4, surface_format=0x1FF, surface_base_address=self.places[number],
                width=last & 0x7F, height=last >> 7 & 0x3FFF, depth=last >> 21))  # fmt: skip
        entries = [table.get(index, 0) for index in range(max(table) + 1)]
        return states.ljust(TABLE, b"\0") + struct.pack(f"<{len(entries)}I", *entries)

    def _record(self, gen: float) -> ThreadDispatch:
        own = list(self._local_ids())
        shared, local, page = self._shared(), self.info["local"], layout("GPGPU_THREAD_HEADER", gen)
        counters = [Counter(0, whole // part, page.field(f"thread_group_id_{axis}").low // 8)
                    for axis, whole, part in zip("xyz", self.size, self.group, strict=True)]  # fmt: skip
        header = struct.pack("<8I", *page.pack(binding_table_pointer=TABLE))
        slots = (SlotField(page.field("fixed_function_thread_id").low // 32 * 4, 0x3FF, 0, 1),)
        patch = HeaderPatch(tuple(counters))
        return ThreadDispatch(
            kernel=0, control=control_register(gen), simd=self.info["simd"], threads=len(own), groups=patch.groups, patch=patch,
            payload=TemplatePayload(header, len(shared), len(own[0]), True, shared + b"".join(own), slots), binding_table=TABLE,
            local_bytes=1 << max(local - 1, KIB - 1).bit_length() if local else 0, barrier=bool(self.info["barrier"]),
        )  # fmt: skip

    def _local_ids(self) -> Iterator[bytes]:
        """x, y and z of the items of each thread, a row each."""
        simd, (width, height, depth) = self.info["simd"], self.group
        count = width * height * depth
        if count % simd:
            raise ValueError(f"{self.name}: {count} items are no whole threads of {simd}")
        items = np.arange(count)
        for first in range(0, count, simd):
            part = items[first : first + simd]
            rows = (part % width, part // width % height, part // (width * height))
            yield b"".join(row.astype(np.uint16).tobytes().ljust(64 if simd == 32 else 32, b"\0") for row in rows)

    def _shared(self) -> bytes:
        found, end = bytearray(2048), 0
        triples = {"local_size": self.group, "enqueued_local_size": self.group, "global_id_offset": (0, 0, 0), "global_size": self.size}
        for one in self.info["payload_arguments"]:
            kind, at, size = one["arg_type"], one["offset"], one["size"]
            if kind in triples:
                value = struct.pack("<3I", *triples[kind])
            elif kind == "arg_byvalue":
                value = self.values[one["arg_index"]]
            elif kind == "private_base_stateless":
                value = struct.pack("<Q", PRIVATE)
            else:
                value = struct.pack("<Q", self.places[one["arg_index"]])
            found[at : at + size] = value[:size]
            end = max(end, at + size)
        return bytes(found[: -(-end // REGISTER) * REGISTER])
