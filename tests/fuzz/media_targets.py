"""A fuzz target on G45's video front end: objects in every mode, their data, and threads that spawn others, keep their entries or wait.

Bytes of an input: mode, kernel of roots, kernel of children, entries of the URB and live roots, whether there are children, the first
eight dwords of the mode's state; then objects, each with its kind, inline dwords, length and place of indirect data, and descriptor.
Indirect data is the input itself, over and over.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

from softgen.bits.generation import device
from softgen.command import Counters
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.work import Work
from tests.fuzz.captured_targets import Budget
from tests.media.vfe.batch import BATCH, END, EXTENSION, EXTRA, GENERAL, MODES, OUT, SIZE, Media, buffer_surface, dump, media_object
from tests.media.vfe.test_trees import BUILDS, CHILD_END, ROOT_KEEPS, SPAWN_ROOT, loop, spawn

MOST_OBJECTS, MOST_INLINE, MOST_PERSISTENT = 16, 40, 13
STATE = 32  # bytes
ALWAYS = "ge.f0.0(1) null<1>UD g0<0,1,0>UD 0x00000000UD { align1 nomask };"
WAIT = "wait(1) n0<1>UD { align1 nomask };"
ROOTS = (dump(4), dump(4, end=ROOT_KEEPS), f"{BUILDS}\n{spawn(1, 2, 2)}\n{dump(2)}", f"{BUILDS}\n{loop(spawn(1, 2, 0), ALWAYS)}\n{END}",
         f"{BUILDS}\n{spawn(1, 2, 1, SPAWN_ROOT)}\n{END}", f"{WAIT}\n{END}", f"{BUILDS}\n{spawn(1, 1000, 60)}\n{END}")  # fmt: skip
CHILDREN = (dump(2, end=CHILD_END), f"{spawn(1, 2, 0)}\n{spawn(1, 2, 0)}\n{CHILD_END}", f"{WAIT}\n{CHILD_END}", END)
NAMES = ("MEDIA_OBJECT", "MEDIA_OBJECT_EX", "MEDIA_OBJECT_PRT")


class Bytes:
    """Numbers out of an input; zero where it has ended."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at].ljust(size, b"\0")

    def number(self, size: int = 1) -> int:
        return int.from_bytes(self.take(size), "little")

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


def media_objects(given: Bytes) -> list[list[int]]:
    found: list[list[int]] = []
    while given.more and len(found) < MOST_OBJECTS:
        kind, count = given.number(), given.number()
        length, start, index = given.number(2), given.number(2), given.number()
        name, more = NAMES[kind % 3], {"thread_synchronization": kind >> 2 & 1, "interface_descriptor_offset": index & 127}
        if name != "MEDIA_OBJECT_PRT":
            more |= {"indirect_data_length": length, "indirect_data_start_address": start}
        else:
            more["prt_fence_needed"] = kind >> 3 & 1
        most = MOST_INLINE if name != "MEDIA_OBJECT_PRT" else MOST_PERSISTENT
        found.append(media_object(name, [given.number(4) for _ in range(count % most)], **more))
    return found


def batch(data: bytes) -> Media:
    given, modes = Bytes(data), list(MODES)
    mode = modes[given.number() % len(modes)]
    root, child, sizes, children = (given.number() for _ in range(4))
    state = given.take(STATE)
    vfe = {"number_of_urb_entries": sizes % 5, "maximum_number_of_threads": sizes >> 4, "children_present": children & 1,
           "urb_entry_allocation_size": 15 + (children & 0xF0), "debug_counter_control": children >> 1 & 3}  # fmt: skip
    extension: tuple[str, dict[str, Any]] = ("VLD_STATE" if mode == "vld" else "VFE_STATE_EX", {})
    kernels = ROOTS[root % len(ROOTS)], CHILDREN[child % len(CHILDREN)]
    descriptors = {number: {"kernel_start_pointer": 0x1000} for number in range(128) if number != 1}
    return Media(media_objects(given), kernels=kernels, mode=mode, vfe=vfe, extension=extension, descriptors=descriptors,
                 indirect=(data * (SIZE // max(len(data), 1) + 1))[: SIZE // 2], patch={GENERAL + EXTENSION: state},
                 surfaces=[buffer_surface(OUT), buffer_surface(EXTRA)])  # fmt: skip


def run_objects(data: bytes, budget: Budget) -> Counters:
    """Execute them on the reference engine; with the first bit set on a compiled one, which runs independent threads."""
    made = batch(data[1:])
    engine = EngineDispatcher("t0" if data[:1] > b"\x7f" else "reference", 1)
    gpu = GpuDevice(device(made.device), itertools.count(1).__next__, budget(), dispatcher=engine)
    with contextlib.suppress(SoftgenError):
        gpu.execute(Work("render", made.memory(), BATCH))
    return gpu.counters


__all__ = ["CHILDREN", "ROOTS", "Media", "run_objects"]
