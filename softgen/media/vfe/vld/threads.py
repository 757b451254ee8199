"""Dispatches of macroblock threads: those of many slices with the same kernel together.

Macroblock threads know nothing of each other: VLD mode has neither children nor synchronised threads (G45 9360, 9673). So they run in
any order, by kernel, and on as many host threads as there are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from softgen.bits.units import GRF_BYTES
from softgen.media.queued import CHANNELS, Interface
from softgen.media.vfe.vld.decoder import DecodedSlice
from softgen.media.vfe.vld.structures import PAYLOAD, VldWriter, library
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.payload import PayloadWriter, check_length

INDICES = 16  # of macroblocks (G45 9006-9040)
GROUP = 16  # threads that a host thread takes together


class _Payloads(NamedTuple):
    """What a writer points to, kept alive."""

    writer: VldWriter
    records: Any
    constants: Any
    slices: tuple[DecodedSlice, ...]


def dispatches(context: DispatchContext, slices: Iterable[DecodedSlice]) -> Iterator[ThreadDispatch]:
    """A dispatch for each kernel, in the order in which kernels come."""
    held = tuple(slices)
    if not held:
        return
    order, counts = dict[Kind, int](), [len(piece.threads) for piece in held]
    table = np.array(_numbered(held, order))
    threads = np.concatenate([piece.threads for piece in held])
    numbers = np.concatenate([piece.numbers for piece in held])
    starts = np.repeat(np.array([piece.data.ctypes.data for piece in held], np.uint64), counts)
    kinds = table[np.repeat(np.arange(len(held)), counts), threads["index"]]
    for kind, number in order.items():
        chosen = np.flatnonzero(kinds == number)
        if not len(chosen):
            continue
        records = np.empty(len(chosen), PAYLOAD)
        records["number"], records["bytes"] = numbers[chosen], threads["bytes"][chosen]
        records["data"] = threads["offset"][chosen].astype(np.uint64) + starts[chosen]
        yield _dispatch(context, records, kind, held)


Kind = tuple[bytes, bytes, Interface]  # header, constants and interface


def _numbered(slices: tuple[DecodedSlice, ...], order: dict[Kind, int]) -> list[list[int]]:
    """For each slice the numbers of its kinds, by macroblock index; `order` gets them."""
    known = dict[int, list[int]]()  # by identity: slices of a picture share them
    for piece in slices:
        if id(piece.kinds) not in known:
            row = known[id(piece.kinds)] = [-1] * INDICES
            for index, thread in piece.kinds.items():
                row[index] = order.setdefault((thread.header, thread.constants, thread.interface), len(order))
    return [known[id(piece.kinds)] for piece in slices]


def _dispatch(context: DispatchContext, records: Any, kind: Kind, slices: tuple[DecodedSlice, ...]) -> ThreadDispatch:
    header, constants, interface = kind
    constant_buffer = ctypes.create_string_buffer(constants, max(len(constants), 1))
    writer = VldWriter(constants=ctypes.addressof(constant_buffer), constant_bytes=len(constants), payloads=int(records.ctypes.data))
    writer.header[:] = header
    registers = -(-(len(header) + len(constants) + int(records["bytes"].max())) // GRF_BYTES)
    check_length(registers, "macroblock thread")
    count, owner = len(records), _Payloads(writer, records, constant_buffer, slices)
    function = ctypes.cast(library().vld_write, ctypes.c_void_p).value or 0
    payload = PayloadWriter(function, ctypes.addressof(writer), registers, count=count, owner=owner)
    return ThreadDispatch(kernel=interface.kernel, control=interface.control, simd=CHANNELS, threads=GROUP, groups=-(-count // GROUP),
                          payload=payload, binding_table=interface.binding_table, samplers=interface.samplers, barrier=False,
                          system_routine=context.system_routine, unit_states=context.unit_states)  # fmt: skip
