"""Runs a case of `shared/kernels` on the reference interpreter: arguments from case.json, payload from the zebin's description."""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.thread.state import ThreadState
from softgen.lanes.numpy.machine import NumpyMachine
from tests.eu.semantics.port import Memory, handlers

GENERATION = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
FIRST, PRIVATE = 0x1_0000_0000, 0x7000_0000_0000


def sections(data: bytes) -> dict[str, bytes]:
    """Those of a 64-bit ELF file, by name."""
    table, (size, count, names) = int.from_bytes(data[40:48], "little"), struct.unpack_from("<3H", data, 58)
    heads = [struct.unpack_from("<2I4Q", data, table + index * size) for index in range(count)]
    strings = heads[names][4]
    return {data[strings + head[0] : data.index(b"\0", strings + head[0])].decode(): data[head[4] : head[4] + head[5]] for head in heads}


class Case:
    """One kernel with its buffers."""

    def __init__(self, folder: Path, gpu: str, build: str = "zebin") -> None:
        self.spec = json.loads((folder / "case.json").read_text())
        name = self.spec["name"]
        self.folder, self.gen = folder, GENERATION[gpu]
        info = json.loads((folder / gpu / f"{name}.{build}.json").read_text())
        self.info = next(item for item in info["ze_info"]["kernels"] if item["name"] == self.spec["kernel"])
        parts = sections((folder / gpu / f"{name}.{build}.bin").read_bytes())
        self.code = bytearray(parts[f".text.{self.spec['kernel']}"])
        constants = np.frombuffer(parts.get(".data.const", b""), np.uint8)
        self.simd = self.info["execution_env"]["simd_size"]
        self.memory, self.machine = Memory(), NumpyMachine()
        self.memory.add(np.zeros(1 << 22, np.uint8), PRIVATE)
        self.outputs: dict[int, np.ndarray] = {}
        self.inline = self.info["execution_env"].get("slm_size", 0)
        self.memory.add(np.concatenate([constants, np.zeros(64, np.uint8)]), FIRST)
        self._relocate({item["name"]: item["value"] for item in info["symbols"]},
                       info["relocs"].get(f".rel.text.{self.spec['kernel']}", ()))
        self.values = {arg["index"]: self._argument(arg) for arg in self.spec["args"]}
        for entry in self.info.get("binding_table_indices", ()):
            self.memory.surfaces[entry["bti_value"]] = next(
                (start, data) for start, data in self.memory.buffers if start == self.values[entry["arg_index"]])

    def _relocate(self, symbols: dict[str, int], places: Any) -> None:
        for place in places:
            value, at = FIRST + symbols[place["sym"]], place["offset"]
            size = 8 if place["type"] == 1 else 4
            self.code[at : at + size] = (value >> (32 if place["type"] == 3 else 0) & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _argument(self, arg: dict[str, Any]) -> int | bytes:
        kind = arg["kind"]
        if kind == "scalar":
            return np.array(arg["v"], arg["dt"]).tobytes()
        if kind == "local":
            self.inline = -(-self.inline // 16) * 16 + arg["nbytes"]
            return self.inline - int(arg["nbytes"])
        if kind not in ("in", "out", "io"):
            raise Unsupported(f"arguments of kind {kind}")
        if kind == "out":
            data = np.zeros(arg["n"], arg["dt"])
        else:
            data = np.load(self.folder / arg["file"]).copy()
        address = FIRST + len(self.memory.buffers) * 0x1000_0000
        held = np.zeros(data.nbytes + 64, np.uint8)
        held[: data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        self.memory.add(held, address)
        if kind != "in":
            self.outputs[arg["index"]] = held[: data.nbytes]
        return address

    # -- what threads start with -----------------------------------------------------------------------------------

    def cross_thread(self, size: tuple[int, ...], total: tuple[int, ...], offset: tuple[int, ...]) -> bytes:
        found = bytearray(2048)
        end = 0
        triples = {"global_id_offset": offset, "local_size": size, "enqueued_local_size": size, "global_size": total,
                   "group_count": tuple(a // b for a, b in zip(total, size, strict=True))}
        for item in self.info.get("payload_arguments", ()):
            kind, at, length = item["arg_type"], item["offset"], item["size"]
            end = max(end, at + length)
            if kind in triples:
                value = np.array(triples[kind], np.uint32).tobytes()
            elif kind in ("arg_bypointer", "buffer_address"):
                value = int(self.values[item["arg_index"]]).to_bytes(8, "little")  # type: ignore[arg-type]
            elif kind == "arg_byvalue":
                given = self.values[item["arg_index"]]
                assert isinstance(given, bytes)
                value = given[item.get("source_offset", 0) :]
            elif kind == "private_base_stateless":
                value = PRIVATE.to_bytes(8, "little")
            elif kind == "buffer_offset":
                value = bytes(length)
            elif kind == "work_dimensions":
                value = (len(self.spec["global"])).to_bytes(4, "little")
            else:
                raise Unsupported(f"payload argument {kind}")
            found[at : at + length] = value[:length].ljust(length, b"\0")
        return bytes(found[: -(-end // GRF_BYTES) * GRF_BYTES])

    def run(self) -> None:
        total, size, offset = (tuple([*self.spec[name], *([fill] * 3)][:3]) for name, fill in (("global", 1), ("local", 1), ("offset", 0)))
        payload = self.cross_thread(size, total, offset)
        counts = [range(a // b) for a, b in zip(total, size, strict=True)]
        for z, y, x in itertools.product(*reversed(counts)):
            self.group((x, y, z), size, payload)

    def group(self, where: tuple[int, int, int], size: tuple[int, ...], payload: bytes) -> None:
        items = list(itertools.product(*(range(extent) for extent in reversed(size))))  # z y x, x fastest
        barrier: list[ThreadState] = []
        self.memory.local[:] = 0
        running = []
        for first in range(0, len(items), self.simd):
            part = items[first : first + self.simd]
            thread = ThreadState(self.gen, handlers(self.memory, barrier), dispatch_mask=(1 << len(part)) - 1)
            self.fill(thread, where, part, payload, first // self.simd)
            running.append(Interpreter(thread, KernelProgram(self.gen, bytes(self.code), name=self.spec["name"]), self.machine))
        started = len(running)
        while running:
            waiting = [thread for thread in running if thread.run() is RunOutcome.WAITING]
            if waiting and len(barrier) < started:
                raise AssertionError(f"{len(barrier)} of {started} threads reached the barrier")
            for thread in barrier:
                thread.dwords("n")[0] += 1
            barrier.clear()
            running = waiting

    def fill(self, thread: ThreadState, where: tuple[int, int, int], items: list[tuple[int, ...]], payload: bytes, number: int) -> None:
        header = thread.register(0)
        header[1], header[6], header[7] = where
        header[5] = number << 16 | number
        at = GRF_BYTES
        if self.info.get("per_thread_payload_arguments"):
            rows = GRF_BYTES * (2 if self.simd == 32 else 1)
            for axis in (2, 1, 0):
                ids = np.array([item[axis] for item in items], np.uint16)
                thread.grf[at : at + ids.nbytes] = ids.view(np.uint8)
                at += rows
        else:
            at += GRF_BYTES  # a register nobody uses
        thread.grf[at : at + len(payload)] = np.frombuffer(payload, np.uint8)

    # -- what came out ---------------------------------------------------------------------------------------------

    def wrong(self) -> dict[str, int]:
        """How many elements of each output are not what they should be."""
        found = {}
        for arg in self.spec["args"]:
            if arg["index"] not in self.outputs or "ref" not in arg:
                continue
            want = np.load(self.folder / arg["ref"])
            got = np.frombuffer(self.outputs[arg["index"]].tobytes(), want.dtype)[: want.size].reshape(want.shape)
            fine = close(got, want, arg.get("cmp", "exact"))
            if "ref2" in arg:
                fine |= close(got, np.load(self.folder / arg["ref2"]), arg.get("cmp", "exact"))
            if str(arg.get("pad_mask", "")).endswith(".npy"):
                fine |= np.load(self.folder / arg["pad_mask"]).astype(bool)
            found[arg["name"]] = int((~fine).sum())
        return found


def close(got: np.ndarray, want: np.ndarray, rule: str) -> np.ndarray:
    same: np.ndarray = (got == want) | ((got != got) & (want != want))
    if rule == "exact" and got.dtype.kind == "f":
        bits = f"u{got.dtype.itemsize}"
        same &= (got.view(bits) == want.view(bits)) | (got != got)
    if rule in ("exact", "exact0"):
        return same
    with np.errstate(all="ignore"):
        for part in rule.split(","):
            name, value = part.split(":")
            apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
            if name == "rel":
                same |= apart <= float(value) * np.abs(want.astype(np.float64))
            elif name == "ulp":
                same |= apart <= float(value) * np.spacing(np.abs(want))
            else:
                same |= apart <= float(value)
    return same
