"""Patch tokens one by one: their numbers, what data parameters are called, and what is said by default."""

from __future__ import annotations

import struct

import pytest

from softgen.eu import binary
from softgen.eu.binary import tokens
from softgen.eu.binary.view import FileView

NOTHING = FileView(b"", "nothing")
NUMBERS = {  # as patch_list.h and patch_shared.h of intel-graphics-compiler number them
    "SAMPLER_STATE_ARRAY": 5, "BINDING_TABLE_STATE": 8, "IMAGE_ARGUMENT": 12, "LOCAL_SURFACE": 15, "SAMPLER_ARGUMENT": 16,
    "DATA_PARAMETER": 17, "MEDIA_VFE_STATE": 18, "THREAD_PAYLOAD": 22, "EXECUTION_ENVIRONMENT": 23, "PARAMETER_STREAM": 25,
    "ARGUMENT_INFO": 26, "GLOBAL_ARGUMENT": 30, "CONSTANT_ARGUMENT": 31, "PRIVATE_MEMORY": 38, "GLOBAL_DATA": 41, "CONSTANT_DATA": 42,
    "GLOBAL_SURFACE": 43, "CONSTANT_SURFACE": 44,
}  # fmt: skip
OF_ARGUMENTS = {1: "arg_byvalue", 8: "local_address", 9: "image_width", 10: "image_height", 11: "image_depth",
                12: "image_channel_data_type", 13: "image_channel_order", 14: "sampler_address", 15: "sampler_normalized",
                18: "image_array_size", 21: "sampler_snap_wa", 42: "buffer_offset"}  # fmt: skip
OF_LAUNCHES = {2: "local_size", 3: "global_size", 4: "group_count", 5: "work_dimensions", 16: "global_id_offset",
               28: "enqueued_local_size", 99: "data parameter 99"}  # fmt: skip


def fields(*values: int) -> FileView:
    return FileView(struct.pack(f"<{len(values)}I", *values), "a token")


def launch(**by_name: FileView) -> binary.Launch:
    return tokens._launch(NOTHING, NOTHING, fields(64, 128), [(NUMBERS[name], token) for name, token in by_name.items()])


def test_tokens_have_the_numbers_of_the_public_headers() -> None:
    assert {name: getattr(tokens, name) for name in NUMBERS} == NUMBERS


@pytest.mark.parametrize("number, name", [*OF_ARGUMENTS.items(), *OF_LAUNCHES.items()])
def test_a_data_parameter_becomes_a_value_of_its_name(number: int, name: str) -> None:
    (value,) = launch(DATA_PARAMETER=fields(number, 3, 40, 4, 8)).values
    assert (value.kind, value.offset, value.size) == (name, 40, 4)
    assert value.argument == (3 if number in OF_ARGUMENTS else -1)
    assert value.source == (0 if name == "local_address" else 8)  # whose last field is an alignment


def test_whether_a_buffer_is_only_used_by_its_surface_is_no_value() -> None:
    assert launch(DATA_PARAMETER=fields(43, 3, 40, 4, 8)).values == ()


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_local_ids_of_any_axis_are_in_the_payload(axis: int) -> None:
    assert launch(THREAD_PAYLOAD=fields(*(int(index == axis) for index in range(4)))).local_ids
    assert not launch(THREAD_PAYLOAD=fields(1, 0, 0, 0, 1)).local_ids


def test_private_memory_of_each_channel_where_the_width_is_not_said() -> None:
    assert launch(PRIVATE_MEMORY=fields(64, 24, 8, 96, 1)).private_bytes == 96


def test_a_launch_without_tokens() -> None:
    assert launch() == binary.Launch(local_ids=False)


def test_only_data_of_a_program_follows_its_token() -> None:
    """The size of a token leaves the data out, and says all of any other."""
    constants, other = struct.pack("<4I", 42, 16, 7, 4), struct.pack("<5I", 60, 20, 0, 1000, 1000)
    program = FileView(constants + b"cons" + other + struct.pack("<5I3s", 41, 20, 0, 0, 3, b"abc"), "a program")
    assert [(number, bytes(token.data[-4:])) for number, token in tokens._tokens(program, program=True)] == [
        (42, b"cons"), (60, struct.pack("<I", 1000)), (41, b"\0abc")]  # fmt: skip
    kernel = FileView(constants + other, "a kernel")
    assert [(number, len(token)) for number, token in tokens._tokens(kernel)] == [(42, 8), (60, 12)]
