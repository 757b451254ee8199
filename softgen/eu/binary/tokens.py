"""Patch-token programs: kernels with their heaps, and lists of tokens that say what a runtime must store where.

The format is public: patch_list.h and patch_shared.h in intel-graphics-compiler. A token is (number, size including these 8 bytes,
payload); tokens that carry a program's data are followed by the data, which the size leaves out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial

from softgen.eu.binary.launch import Argument, ArgumentKind, InlineSampler, KernelBinary, Launch, PayloadValue
from softgen.eu.binary.view import View

MAGIC = b"CTNI"
CORES = {11: 8.0, 12: 9.0, 15: 11.0}  # core family -> generation
HEADER = struct.Struct("<4s6I")  # magic version device pointer_size kernels stepping patch_list_size
KERNEL = struct.Struct("<IQ7I")  # checksum hash name patches kernel_heap general dynamic surface unpadded
TOKEN = struct.Struct("<2I")
SAMPLER_STATE, SURFACE_ENTRY = 16, 4  # bytes

SAMPLER_STATE_ARRAY, BINDING_TABLE_STATE = 5, 8
IMAGE_ARGUMENT, LOCAL_SURFACE, SAMPLER_ARGUMENT, DATA_PARAMETER = 12, 15, 16, 17
MEDIA_VFE_STATE, THREAD_PAYLOAD, EXECUTION_ENVIRONMENT, PARAMETER_STREAM, ARGUMENT_INFO = 18, 22, 23, 25, 26
GLOBAL_ARGUMENT, CONSTANT_ARGUMENT, PRIVATE_MEMORY = 30, 31, 38
GLOBAL_DATA, CONSTANT_DATA, GLOBAL_SURFACE, CONSTANT_SURFACE = 41, 42, 43, 44
VALUES = {  # type of a data parameter -> name in .ze_info
    1: "arg_byvalue", 2: "local_size", 3: "global_size", 4: "group_count", 5: "work_dimensions", 8: "local_address", 9: "image_width",
    10: "image_height", 11: "image_depth", 12: "image_channel_data_type", 13: "image_channel_order", 14: "sampler_address",
    15: "sampler_normalized", 16: "global_id_offset", 18: "image_array_size", 21: "sampler_snap_wa", 28: "enqueued_local_size",
    42: "buffer_offset", 43: "buffer_stateful",
}  # fmt: skip


def kernels(view: View, member: str) -> Iterator[KernelBinary]:
    _, _, core, _, count, _, patches = view.read(HEADER, 0, "a program's header")
    program = view.part(HEADER.size, patches, "a program's patch list")
    offset = HEADER.size + len(program)
    for _ in range(count):
        _, _, *sizes, unpadded = view.read(KERNEL, offset, "a kernel's header")
        name_size, patch_size, heap_size, general, dynamic, surface = sizes
        at = offset + KERNEL.size
        name = view.part(at, name_size, "a kernel's name")
        heap = view.part(at + name_size, heap_size, "a kernel's code")
        if unpadded > heap_size:
            raise view.error(offset, f"a kernel's code of {unpadded:,} bytes is longer than its heap of {heap_size:,} bytes")
        at += name_size + heap_size + general
        heaps = view.part(at, dynamic, "a kernel's dynamic state"), view.part(at + dynamic, surface, "a kernel's surface state")
        tokens = view.part(at + dynamic + surface, patch_size, "a kernel's patch list")
        found = list(_tokens(tokens))
        simd = next((_field(token, 3) for number, token in found if number == EXECUTION_ENVIRONMENT), 0)
        describe = partial(_launch, program, *heaps, found)
        yield KernelBinary(name.text(), bytes(heap.data[:unpadded]), simd, CORES.get(core), "patch tokens", member, describe)
        offset = at + dynamic + surface + patch_size


def _tokens(view: View, program: bool = False) -> Iterator[tuple[int, View]]:
    """Numbers and payloads."""
    offset = 0
    while offset < len(view):
        number, size = view.read(TOKEN, offset, "a patch token")
        if size < TOKEN.size:
            raise view.error(offset, f"a patch token has {TOKEN.size} bytes at least, not {size}")
        if program and number in (GLOBAL_DATA, CONSTANT_DATA):
            token = view.part(offset, size, "a patch token")
            size += _field(View(token.data[TOKEN.size :], view.name, token.start), 2 if number == GLOBAL_DATA else 1)
        token = view.part(offset, size, "a patch token")
        yield number, token.part(TOKEN.size, size - TOKEN.size, "a patch token")
        offset += size


def _field(token: View, number: int) -> int:
    return token.read(struct.Struct("<I"), 4 * number, "a patch token's field")[0]


def _launch(program: View, dynamic: View, surface: View, tokens: list[tuple[int, View]]) -> Launch:
    states = _binding_table(surface, tokens)
    by_number: dict[int, list[View]] = {}
    for number, token in tokens:
        by_number.setdefault(number, []).append(token)

    def field(number: int, index: int, default: int = 0) -> int:
        return _field(by_number[number][-1], index) if number in by_number else default

    def table_index(number: int, index: int) -> int | None:
        return states.get(field(number, index)) if number in by_number else None

    simd = field(EXECUTION_ENVIRONMENT, 3, 1)
    values = [*_values(by_number), *_implicit(by_number)]
    data = {number: bytes(token.data) for number, token in _tokens(program, program=True)}
    return Launch(
        arguments=tuple(_arguments(by_number, states)), values=tuple(values), payload_bytes=field(PARAMETER_STREAM, 0),
        local_ids=any(field(THREAD_PAYLOAD, axis) for axis in (1, 2, 3)), barrier=bool(field(EXECUTION_ENVIRONMENT, 5)),
        local_bytes=field(LOCAL_SURFACE, 1), scratch_bytes=field(MEDIA_VFE_STATE, 1),
        private_bytes=field(PRIVATE_MEMORY, 3) * (simd if field(PRIVATE_MEMORY, 4) else 1),
        samplers=tuple(_samplers(by_number, dynamic)),
        constant_data=data.get(CONSTANT_DATA, b"")[8:], global_data=data.get(GLOBAL_DATA, b"")[12:],
        constant_surface=table_index(CONSTANT_SURFACE, 1), global_surface=table_index(GLOBAL_SURFACE, 1),
        private_surface=table_index(PRIVATE_MEMORY, 0),
        required_local_size=(field(EXECUTION_ENVIRONMENT, 0), field(EXECUTION_ENVIRONMENT, 1), field(EXECUTION_ENVIRONMENT, 2)),
    )  # fmt: skip


def _binding_table(heap: View, tokens: list[tuple[int, View]]) -> dict[int, int]:
    """Binding table indices by the heap offset of the surface state."""
    found: dict[int, int] = {}
    for number, token in tokens:
        if number == BINDING_TABLE_STATE:
            table = heap.part(_field(token, 0), SURFACE_ENTRY * _field(token, 1), "a binding table")
            for index in range(_field(token, 1)):
                found.setdefault(_field(table, index), index)
    return found


def _values(by_number: dict[int, list[View]]) -> Iterator[PayloadValue]:
    for token in by_number.get(DATA_PARAMETER, ()):
        kind, argument, offset, size, source = (_field(token, index) for index in range(5))
        name = VALUES.get(kind, f"data parameter {kind}")
        of_argument = name.startswith(("arg_", "image_", "sampler_", "buffer_", "local_address"))
        if name != "buffer_stateful":  # a hint to the runtime, no value
            yield PayloadValue(name, offset, size, argument if of_argument else -1, 0 if name == "local_address" else source)


def _implicit(by_number: dict[int, list[View]]) -> Iterator[PayloadValue]:
    """Addresses that tokens of their own ask for."""
    for number in (GLOBAL_ARGUMENT, CONSTANT_ARGUMENT):
        for token in by_number.get(number, ()):
            yield PayloadValue("buffer_address", _field(token, 2), _field(token, 3), _field(token, 0))
    for number, first, kind in ((PRIVATE_MEMORY, 1, "private_base_stateless"), (GLOBAL_SURFACE, 2, "global_base"),
                                (CONSTANT_SURFACE, 2, "const_base")):  # fmt: skip
        for token in by_number.get(number, ()):
            yield PayloadValue(kind, _field(token, first), _field(token, first + 1))


def _samplers(by_number: dict[int, list[View]], heap: View) -> Iterator[InlineSampler]:
    """States that the compiler has written; those of arguments are overwritten at launch."""
    for token in by_number.get(SAMPLER_STATE_ARRAY, ()):
        offset, count = _field(token, 0), _field(token, 1)
        for index in range(count):
            yield InlineSampler(index, state=bytes(heap.part(offset + SAMPLER_STATE * index, SAMPLER_STATE, "a sampler state").data))


def _arguments(by_number: dict[int, list[View]], states: dict[int, int]) -> Iterator[Argument]:
    names = {_field(token, 0): _strings(token) for token in by_number.get(ARGUMENT_INFO, ())}
    first_sampler = _field(by_number[SAMPLER_STATE_ARRAY][0], 0) if SAMPLER_STATE_ARRAY in by_number else 0
    found: dict[int, Argument] = {}

    def add(index: int, kind: ArgumentKind, **more: object) -> None:
        name, type = names.get(index, ("", ""))
        found[index] = Argument(index, kind, name, type, **more)  # type: ignore[arg-type]

    sizes: dict[int, int] = {}
    for token in by_number.get(DATA_PARAMETER, ()):
        kind, index, size, source = _field(token, 0), _field(token, 1), _field(token, 3), _field(token, 4)
        if VALUES.get(kind) == "arg_byvalue":
            sizes[index] = max(sizes.get(index, 0), source + size)
            add(index, "value", size=sizes[index])
        elif VALUES.get(kind) == "local_address":
            add(index, "local", alignment=max(source, 1))
    for number in (GLOBAL_ARGUMENT, CONSTANT_ARGUMENT):
        for token in by_number.get(number, ()):
            add(_field(token, 0), "buffer", surface=states.get(_field(token, 1)), writable=number == GLOBAL_ARGUMENT)
    for token in by_number.get(IMAGE_ARGUMENT, ()):
        add(_field(token, 0), "image", surface=states.get(_field(token, 2)), writable=bool(_field(token, 5)))
    for token in by_number.get(SAMPLER_ARGUMENT, ()):
        add(_field(token, 0), "sampler", sampler=(_field(token, 2) - first_sampler) // SAMPLER_STATE)
    yield from (found[index] for index in sorted(found))


def _strings(token: View) -> tuple[str, str]:
    """An argument's name and type: five sizes, then five strings."""
    sizes = [_field(token, index) for index in range(1, 6)]
    offset, texts = 24, []
    for size in sizes:
        texts.append(token.part(offset, size, "a string").text())
        offset += size
    return texts[2], texts[3].partition(";")[0]
