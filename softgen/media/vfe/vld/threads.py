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
from softgen.media.queued import CHANNELS, Interface, QueuedThread
from softgen.media.vfe.vld.decoder import DecodedSlice
from softgen.media.vfe.vld.structures import PAYLOAD, VldWriter, library
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.payload import PayloadWriter, check_length

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
    for kind, interface in _kinds(held).items():
        parts = [_payloads(piece, kind, interface) for piece in held]
        yield _dispatch(context, interface, np.concatenate([part for part in parts if len(part)]), kind, held)


Kind = tuple[bytes, bytes]  # header and constants


def _kinds(slices: Iterable[DecodedSlice]) -> dict[Kind, Interface]:
    return {(thread.header, thread.constants): thread.interface for piece in slices for thread in piece.kinds.values()}


def _payloads(piece: DecodedSlice, kind: Kind, interface: Interface) -> Any:
    """PAYLOAD records of the threads of a slice that are of a kind."""
    indices = [index for index, thread in piece.kinds.items() if _is(thread, kind, interface)]
    chosen = np.isin(piece.threads["index"], indices)
    found = np.empty(int(chosen.sum()), PAYLOAD)
    found["number"], found["bytes"] = piece.numbers[chosen], piece.threads["bytes"][chosen]
    found["data"] = piece.threads["offset"][chosen].astype(np.uint64) + np.uint64(piece.data.ctypes.data)
    return found


def _is(thread: QueuedThread, kind: Kind, interface: Interface) -> bool:
    return (thread.header, thread.constants) == kind and thread.interface == interface


def _dispatch(context: DispatchContext, interface: Interface, records: Any, kind: Kind, slices: tuple[DecodedSlice, ...]) -> ThreadDispatch:
    header, constants = kind
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
