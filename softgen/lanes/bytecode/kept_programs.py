"""Bytecode programs in the cache: what a program of an earlier process has written, this one reads.

    program = load(name)            # None where the cache has none
    save(name, program)

Writing a program takes milliseconds of Python, reading it a tenth of one. The only addresses in it are those of host functions, which are
kept by name. Like the machine code beside it, what the cache has is trusted (softgen/cache.py).
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from softgen.cache import Cache, default_folder
from softgen.errors import SoftgenError
from softgen.lanes import host_function
from softgen.lanes.bytecode.bytecode_h import EncodedOperation
from softgen.lanes.bytecode.program import OPERATION, BytecodeProgram, ProgramText, codes
from softgen.lanes.compile.source_fingerprint import source_fingerprint

CALL, IMMEDIATE = "call_host", EncodedOperation.immediate
NUMBERS = ("frame", "result", "table_at", "note_at", "mask")
HEADER = 4  # bytes of the length of what says how a program is called


@cache
def _stamp() -> str:
    """Of everything that programs are written by."""
    return f"{source_fingerprint()} {' '.join(codes())} {OPERATION}"


def _key(name: str) -> str:
    return "bytecode-" + hashlib.sha256(f"{_stamp()}\0{name}".encode()).hexdigest()


def save(name: str, program: BytecodeProgram) -> None:
    """Keep a program by a name that describes it completely."""
    data = data_of(program.text)
    if data is not None:
        Cache(default_folder()).save(_key(name), data)


def load(name: str) -> BytecodeProgram | None:
    cache = Cache(default_folder())
    data = cache.load(_key(name))
    if data is None:
        return None
    try:
        return BytecodeProgram(*text_of(data))
    except (ValueError, TypeError, LookupError, SoftgenError):  # whole, but of no use
        cache.remove(_key(name))
        return None


def data_of(text: ProgramText) -> bytes | None:
    """A function's program as bytes; None where it calls what has no name."""
    operations, calls = bytearray(text.operations), dict[int, str]()
    names = {address: name for name, address in host_function.known().items()}
    for at in _calls(operations):
        place = slice(at + IMMEDIATE.offset, at + IMMEDIATE.offset + IMMEDIATE.size)
        name = names.get(int.from_bytes(operations[place], "little"))
        if name is None:
            return None
        calls[at], operations[place] = name, bytes(IMMEDIATE.size)
    header = {name: getattr(text, name) for name in NUMBERS}
    said = json.dumps(header | {"operations": len(operations), "calls": list(calls.items())}).encode()
    return len(said).to_bytes(HEADER, "little") + said + operations + text.constants


def text_of(data: bytes) -> ProgramText:
    """The program of such bytes; a ValueError, TypeError or LookupError where they are anything else."""
    start = HEADER + int.from_bytes(data[:HEADER], "little")
    said: dict[str, Any] = json.loads(data[HEADER:start])
    end = start + said["operations"]
    operations, constants = bytearray(data[start:end]), data[end:]
    if len(operations) != said["operations"] or len(operations) % OPERATION or not operations or not constants:
        raise ValueError("no bytecode program")
    for at, name in said["calls"]:
        address = host_function.addresses((name,))[name]
        operations[at + IMMEDIATE.offset : at + IMMEDIATE.offset + IMMEDIATE.size] = address.to_bytes(IMMEDIATE.size, "little")
    return ProgramText(bytes(operations), constants, **{name: int(said[name]) for name in NUMBERS}, handler=False)


def _calls(operations: bytes | bytearray) -> list[int]:
    """Where the calls of host functions are."""
    code = codes()[CALL]
    return [number * OPERATION for number, found in enumerate(memoryview(operations).cast("H")[:: OPERATION // 2]) if found == code]
