"""The compute walker: GPGPU_WALKER as a ThreadDispatch.

Reads   GPGPU_WALKER INTERFACE_DESCRIPTOR_DATA GPGPU_THREAD_HEADER
Writes  a ThreadDispatch, whose header patch holds the group's ID

Groups run X fastest, then Y, then Z (BDW 21416-21434). In memory, constants that all threads share come first and each thread's own
follow. Registers keep that order when constants were loaded into the CURBE; data that the walker fetches itself stands the other way
round, own data first (observed: Intel's OpenCL runtime uses the one, Mesa the other; KBL 12678-12690 allows both).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from softgen.bits import catalogue
from softgen.bits.describe import values_of
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError
from softgen.media import front_end
from softgen.media.front_end import FrontEnd, optional
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.payload import FULL, Counter, HeaderPatch, Masks, TemplatePayload, ThreadMasks, check_length

NAME, HEADER = "GPGPU_WALKER", "GPGPU_THREAD_HEADER"
SIMD = {"simd8": 8, "simd16": 16, "simd32": 32}
IDS = ("thread_group_id_x", "thread_group_id_y", "thread_group_id_z")
STARTS = ("thread_group_id_starting_x", "thread_group_id_starting_y", "thread_group_id_starting_resume_z")

Triple = tuple[int, int, int]


def dispatch(context: DispatchContext, front: FrontEnd, walker: Record, dimensions: Triple | None = None,
             kind: object = None) -> ThreadDispatch:  # fmt: skip
    """The dispatch of a walker command; `dimensions` replace its own where it takes them from registers."""
    descriptor = front_end.descriptor(context.generation.number, front, walker.interface_descriptor_offset, NAME)
    shape = (walker.thread_width_counter_maximum + 1, walker.thread_height_counter_maximum + 1, walker.thread_depth_counter_maximum + 1)
    threads = shape[0] * shape[1] * shape[2]
    simd, fields = _simd(context.generation.number, walker.simd_size), front_end.dispatch_fields(context, front, descriptor)
    if threads != descriptor.number_of_threads_in_gpgpu_thread_group:
        expected = descriptor.number_of_threads_in_gpgpu_thread_group
        raise DecodeError(f"{NAME}: {' x '.join(map(str, shape))} threads in a group, its interface descriptor says {expected}")
    header = front_end.thread_header(context, HEADER, fields, front)
    payload = _payload(context, front, walker, descriptor, threads, header)
    patch = _patch(context.generation.number, *_grid(walker, dimensions))
    masks = _masks(shape, simd, walker.right_execution_mask, walker.bottom_execution_mask)
    return ThreadDispatch(simd=simd, threads=threads, groups=patch.groups, payload=payload, masks=masks, patch=patch, kind=kind,
                          barrier=bool(descriptor.barrier_enable), **fields)  # fmt: skip


def starts_groups(walker: Record, dimensions: Triple | None = None) -> bool:
    """Whether a walker starts any thread; otherwise nothing else that state says is looked at."""
    return all(start < end for start, end in zip(*_grid(walker, dimensions), strict=True))


@lru_cache(64)
def _simd(gen: float, code: int) -> int:
    mode = values_of(catalogue.layout(NAME, gen).field("simd_size").type, gen).get(code, f"value {code}")
    if mode not in SIMD:
        raise DecodeError(f"{NAME}: simd_size must be simd8, simd16 or simd32, not {mode}")
    return SIMD[mode]


def _payload(context: DispatchContext, front: FrontEnd, walker: Record, descriptor: Record, threads: int,
             header: front_end.ThreadHeader) -> TemplatePayload:  # fmt: skip
    own, common, fetched = _lengths(descriptor, walker)
    check_length(1 + own + common, NAME)
    data = constants(context, front, walker, descriptor, threads)
    return TemplatePayload(header.data, common * GRF_BYTES, own * GRF_BYTES, fetched, data, header.slots)


def _lengths(descriptor: Record, walker: Record) -> tuple[int, int, bool]:
    """Registers of constants of each thread, of those that all threads share, and whether the walker fetches them itself."""
    common = optional(descriptor, "cross_thread_constant_data_read_length")
    return descriptor.constant_urb_entry_read_length, common, bool(optional(walker, "indirect_data_length"))


def constants(context: DispatchContext, front: FrontEnd, walker: Record, descriptor: Record, threads: int) -> bytes:
    """The constants of all threads of a group."""
    own, common, fetched = _lengths(descriptor, walker)
    skip = optional(descriptor, "constant_urb_entry_read_offset") * GRF_BYTES
    data = front_end.indirect_data(context, walker) if fetched else front.constants[skip:]
    return _constants(context, (common + own * threads) * GRF_BYTES, threads, data, fetched)


def _constants(context: DispatchContext, need: int, threads: int, data: bytes, fetched: bool) -> bytes:
    """Constants of all threads. Where less is fetched than they take, the rest is undefined: zeros here. Intel's runtime lets kernels
    without local IDs take a register of them nevertheless (observed: version 23.43)."""
    if need <= len(data):
        return data
    text = f"{NAME}: {threads} threads need {need} bytes of constants"
    if not fetched:
        raise DecodeError(f"{text}, the CURBE holds {len(data)}")
    context.warn(f"{text}, {len(data)} are fetched: the rest is taken as zeros")
    return data.ljust(need, b"\0")


def _grid(walker: Record, dimensions: Triple | None) -> tuple[Triple, Triple]:
    """First group ID on each axis, and the end."""
    ends = dimensions or (walker.thread_group_id_x_dimension, walker.thread_group_id_y_dimension, walker.thread_group_id_z_dimension)
    x, y, z = (getattr(walker, name) for name in STARTS)
    return (x, y, z), ends


@lru_cache(256)
def _patch(gen: float, starts: Triple, ends: Triple) -> HeaderPatch:
    layout = catalogue.layout(HEADER, gen)
    return HeaderPatch(tuple(Counter(start, max(end - start, 0), layout.field(name).low // 8)
                             for name, start, end in zip(IDS, starts, ends, strict=True)))  # fmt: skip


@lru_cache(256)
def _masks(shape: Triple, simd: int, right: int, bottom: int) -> Masks:
    """Dispatch masks, width fastest: fewer channels in the last column and row (BDW 21435-21438)."""
    full = (1 << simd) - 1
    if right & bottom & full == full:
        return FULL
    width, height, depth = shape
    return ThreadMasks(tuple((right if x == width - 1 else full) & (bottom if y == height - 1 else full) & full
                             for _ in range(depth) for y in range(height) for x in range(width)))  # fmt: skip


def broken_rules(command: Record, limit: int, watermark: bool = False) -> Iterator[str]:
    """Rules for GPGPU_WALKER that the command breaks (BDW 21365-21377); `limit` is the most indirect data, `watermark` whether the flush
    before asked for it."""
    if watermark:
        yield "a walker checks the watermark itself: MEDIA_STATE_FLUSH before it should not have watermark_required (BDW 23762-23766)"
    length = optional(command, "indirect_data_length")
    if length % GRF_BYTES:
        yield f"{length} bytes of indirect data are no multiple of {GRF_BYTES}"
    if length > limit:
        yield f"{length} bytes of indirect data; there should be at most {limit}"
