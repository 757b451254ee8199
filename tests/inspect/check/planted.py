"""Programs with a planted mistake, and their repaired twins, as files to check."""

from __future__ import annotations

from pathlib import Path

from softgen.trace.aub_write import AubWriter
from tests.gpgpu.job import BATCH, END, Job, vector_add, words
from tests.threads.test_reference import NEIGHBOUR
from tests.threads.test_world import UNWRITTEN

BARRIER = """(W)  and (8|M0)  r15.0<1>:ud r0.2<0;1,0>:ud 0x8F000000:ud
(W)  send (8|M0) null r15 0x3 0x02008004
(W)  wait        n0.0<0;1,0>:ud
"""
# Each thread adds 1 to a dword and stores what it got at a place of its own.
TICKETS = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x1:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B700
(W)  shl (1|M0)  r10.0<1>:ud r0.1<0;1,0>:ud 2:w
(W)  add (1|M0)  r10.0<1>:ud r10.0<0;1,0>:ud 64:ud
(W)  mov (8|M0)  r11.0<1>:ud r12.0<8;8,1>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
# Each group stores its number at its own place of surface 0, and what stands at the place of the next one behind all of them.
NEXT_GROUP = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  shl (1|M0)  r10.0<1>:ud r0.1<0;1,0>:ud 2:w
(W)  add (1|M0)  r11.0<1>:ud r0.1<0;1,0>:ud 100:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
(W)  add (1|M0)  r12.0<1>:ud r10.0<0;1,0>:ud 4:ud
(W)  send (1|M0) r11 r12 0xC 0x02106E00
(W)  add (1|M0)  r10.0<1>:ud r10.0<0;1,0>:ud 64:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
# Each thread reads a dword, adds 1 and writes it back; in the repaired twin with an atomic operation. One after another, none is lost.
LOST = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  send (1|M0) r11 r10 0xC 0x02106E00
(W)  add (1|M0)  r11.0<1>:ud r11.0<0;1,0>:ud 0x1:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
COUNTED = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (1|M0)  r11.0<1>:ud 0x1:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B700
{END}
"""
# A flag that nothing has set decides whether a dword is stored.
BRANCH = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x7:ud
(W)  add (1|M0)  r40.0<1>:ud r41.0<0;1,0>:ud 0x0:ud
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r40.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi over
(W)  send (1|M0) null r10 0xC 0x04026E00
over:
{END}
"""

# Reserved bits of r0.4, beside the binding table's address, are stored; the repaired twin clears them.
RESERVED = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
(W)  mov (8|M0)  r11.0<1>:ud r0.4<0;1,0>:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
# Eight lanes store their numbers to two dwords, each to its own in the repaired twin.
MEET = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  and (8|M0)  r10.0<1>:ud r1.0<8;8,1>:uw 0x1:uw
(W)  shl (8|M0)  r10.0<1>:ud r10.0<8;8,1>:ud 2:w
(W)  mov (8|M0)  r11.0<1>:ud r1.0<8;8,1>:uw
(W)  send (8|M0) null r10 0xC 0x04026E00
{END}
"""
# What stands in the two dwords is stored over by one lane.
OVER = MEET.replace(END, f"(W)  mov (8|M0)  r11.0<1>:ud 0x9:ud\n(W)  send (8|M0) null r10 0xC 0x04026E00\n{END}")

# Waits for a dword of surface 0 to change.
SPIN = f"""
(W)  mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud
again:
(W)  send (1|M0) r11 r10 0xC 0x02106E00
(W)  cmp (1|M0) (eq)f0.0 null<1>:ud r11.0<0;1,0>:ud 0x0:ud
(W&f0.0) jmpi again
{END}
"""


def local(kernel: str) -> Job:
    """Threads have their numbers as constants, as compilers have local IDs."""
    kernel = kernel.replace("and (1|M0)  r5.0<1>:ud r0.5<0;1,0>:ud 0x3FF:ud", "mov (1|M0)  r5.0<1>:ud r1.0<0;1,0>:uw")
    own = [words(number).ljust(32, b"\0") for number in range(4)]
    return Job(kernel, [bytes(16)], simd=8, shape=(4, 1, 1), local=1024, own=own, descriptor={"barrier_enable": 1})


def written(kernel: str, what: str) -> str:
    """The kernel with registers, accumulator, flags and local memory written first."""
    return kernel.replace("(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud\n", f"(W)  mov (8|M0)  r10.0<1>:ud 0x0:ud\n{what}", 1)


SET = """(W)  mov (8|M0)  r60.0<1>:ud 0x1:ud
(W)  mov (8|M0)  acc0.0<1>:ud 0x2:ud
(W)  mov (1|M0)  f1.0<1>:ud 0x3:ud
(W)  mov (8|M0)  r11.0<1>:ud 0x4:ud
(W)  send (1|M0) null r10 0xC 0x04026EFE
"""


def beyond(size: int) -> Job:
    """Surface 1, which is written, has so many bytes of the 256 that are meant."""
    job = vector_add("skl")
    job.buffers = [words(*range(128)), bytes(size)]
    return job


PLANTED = {
    "local race": (local(NEIGHBOUR.replace(BARRIER, "")), local(NEIGHBOUR), "race"),
    "global race": (Job(NEXT_GROUP, [bytes(128)], simd=8, ends=(8, 1, 1)),
                    Job(NEXT_GROUP.replace("r10.0<0;1,0>:ud 4:ud", "r10.0<0;1,0>:ud 0:ud"), [bytes(128)], simd=8, ends=(8, 1, 1)), "race"),
    "lost update": (Job(LOST, [bytes(16)], simd=8, ends=(6, 1, 1)), Job(COUNTED, [bytes(16)], simd=8, ends=(6, 1, 1)), "race"),
    "tickets": (Job(TICKETS, [bytes(128)], simd=8, ends=(8, 1, 1)),
                Job(TICKETS.replace("r11.0<1>:ud r12.0<8;8,1>:ud", "r11.0<1>:ud r0.1<0;1,0>:ud"), [bytes(128)], simd=8, ends=(8, 1, 1)),
                "order"),
    "uninitialised": (Job(UNWRITTEN, [bytes(16)], simd=8, local=1024), Job(written(UNWRITTEN, SET), [bytes(16)], simd=8, local=1024),
                      "uninitialised"),
    "branch": (Job(BRANCH, [bytes(16)], simd=8), Job(written(BRANCH, "(W)  mov (1|M0)  r41.0<1>:ud 0x0:ud\n"), [bytes(16)], simd=8),
               "uninitialised"),
    "bounds": (beyond(128), beyond(256), "bounds"),
    "local bounds": (local(NEIGHBOUR.replace(
        "(W)  send (1|M0) null r10 0xC 0x04026EFE\n", "(W)  add (1|M0) r14.0<1>:ud r10.0<0;1,0>:ud 1024:ud\n"
        "(W)  mov (1|M0) r15.0<1>:ud 0x9:ud\n(W)  send (1|M0) null r14 0xC 0x04026EFE\n"
        "(W)  send (1|M0) null r10 0xC 0x04026EFE\n", 1)), local(NEIGHBOUR), "bounds"),
}  # fmt: skip

OWN = [words(*range(16))]  # numbers of lanes, in r1
UNSPECIFIED = {
    "reserved bits": (Job(RESERVED, [bytes(16)], simd=8),
                      Job(RESERVED.replace("mov (8|M0)  r11", "and (8|M0)  r11").replace("r0.4<0;1,0>:ud", "r0.4<0;1,0>:ud 0xFFFFFFE0:ud"),
                          [bytes(16)], simd=8)),
    "lanes that meet": (Job(MEET, [bytes(64)], simd=8, own=OWN), Job(MEET.replace("0x1:uw", "0x7:uw"), [bytes(64)], simd=8, own=OWN)),
    "lanes that meet, and more": (Job(MEET, [bytes(64)], simd=8, own=OWN), Job(OVER, [bytes(64)], simd=8, own=OWN)),
}


def file(path: Path, job: Job) -> str:
    """An AUB file of a job."""
    with AubWriter(path, job.device) as writer:
        writer.submit("render", "context", BATCH, job.mapped())
    return str(path)
