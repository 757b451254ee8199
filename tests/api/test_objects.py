"""Buffers, images, listings, spec records, commands and reports, and how they show themselves in a notebook."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time

import numpy as np
import PIL.Image
import pytest

import softgen
from softgen.api.html import table
from softgen.api.lookup import Field
from softgen.api.machine import deadline
from tests.conftest import ROOT

CAPTURE = ROOT / "tests" / "data" / "kbl-vk-compute"


def test_buffers_are_arrays() -> None:
    with softgen.Gpu("kbl") as gpu:
        buffer = gpu.buffer([[1, 2], [3, 4]])
        assert np.asarray(buffer) is not None and np.shares_memory(np.asarray(buffer), buffer.array)
        assert buffer.shape == (2, 2) and len(buffer) == 2 and buffer.dtype == np.int64
        assert gpu.empty((3, 5), "u2").nbytes == 30 and gpu.empty(0).array.size == 0
        with pytest.raises(softgen.UsageError, match="Python objects"):
            gpu.empty(3, object)


@pytest.mark.parametrize("shape, dtype, options, name, size", [
    ((4, 6), np.float32, {}, "R32_FLOAT", (6, 4)),
    ((4, 6, 4), np.uint8, {"normalized": True}, "R8G8B8A8_UNORM", (6, 4)),
    ((4, 6, 4), np.uint8, {"format": "b8g8r8a8_unorm"}, "B8G8R8A8_UNORM", (6, 4)),
    ((4, 6, 2), np.int16, {}, "R16G16_SINT", (6, 4)),
    ((3, 4, 6), np.float32, {}, "R32_FLOAT", (6, 4, 3)),
    ((3, 4, 6, 4), np.uint8, {"layered": True}, "R8G8B8A8_UINT", (6, 4, 3)),
    ((3, 5, 4), np.uint8, {"channels": 1}, "R8_UINT", (4, 5, 3)),
    ((9, 2, 70), np.uint8, {}, "R8_UINT", (70, 2, 9)),
])  # fmt: skip
def test_images_by_their_array(shape: tuple[int, ...], dtype: type, options: dict[str, object], name: str, size: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    with softgen.Gpu("kbl") as gpu:
        image = gpu.image(data, **options)  # type: ignore[arg-type]
        assert image.format.name == name and image.size == size and np.array_equal(image.array, data)
        assert image.pitch % 64 == 0 and image.rows % 4 == 0


@pytest.mark.parametrize("shape, dtype, options, message", [
    ((4, 4, 3), np.uint8, {"channels": 3}, "1, 2 or 4 channels"), ((4,), np.uint8, {}, "two or three dimensions"),
    ((4, 4), np.float64, {}, "at most 32 bits"), ((4, 4), np.uint8, {"format": "R8G8_UNORM"}, "16 bits a texel, the array has 8"),
    ((4, 4), np.uint8, {"format": "NONE"}, "no surface format is called"), ((0, 4), np.uint8, {}, "no empty one"),
])  # fmt: skip
def test_images_that_cannot_be(shape: tuple[int, ...], dtype: type, options: dict[str, object], message: str) -> None:
    with softgen.Gpu("kbl") as gpu, pytest.raises(softgen.UsageError, match=message):
        gpu.image(np.zeros(shape, dtype), **options)  # type: ignore[arg-type]


def test_a_freed_image_leaves_its_address_to_another() -> None:
    with softgen.Gpu("kbl") as gpu:
        image = gpu.image(np.full((2, 3), 7, np.uint8))
        image.free()
        assert gpu.empty(4).address == image.address and image.array.tolist() == [[7] * 3] * 2


def test_an_image_shows_itself_as_png() -> None:
    with softgen.Gpu("kbl") as gpu:
        shades = np.linspace(-0.5, 1.5, 12, dtype=np.float32).reshape(3, 4)
        shown = PIL.Image.open(io.BytesIO(gpu.image(shades)._repr_png_()))
        assert shown.size == (4, 3) and shown.getpixel((0, 0)) == 0 and shown.getpixel((3, 2)) == 255


def test_a_run_as_a_table() -> None:
    run = softgen.Run(threads=1234, faults=[softgen.SoftgenError("broken & gone")], remarks=["odd"])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", run._repr_html_())
    assert cells == ["threads", "1,234", "instructions", "0", "seconds", "0.000000", "fault", "broken &amp; gone", "remark", "odd"]


@pytest.mark.parametrize("count, shown, more", [(200, 200, ""), (1201, 200, "… 1,001 more")])
def test_long_tables_end_after_200_rows(count: int, shown: int, more: str) -> None:
    text = table("numbers", ("number",), ((number,) for number in range(count)))
    cells = re.findall(r"<td style='text-align:left'>(\d+)</td>", text)
    assert cells == [str(number) for number in range(shown)] and (more in text if more else "more" not in text)


def test_listings() -> None:
    code = softgen.assemble("add (8|M0) r2.0<1>:d r3.0<8;8,1>:d 7:w\nmov (8|M0) r4.0<1>:f r2.0<8;8,1>:f", "kbl", compact=True)
    listing = softgen.disassemble(code, "kbl")
    assert [inst.opcode for inst in listing] == ["add", "mov"] and listing[1].size == 8
    assert softgen.assemble(str(listing), "kbl", compact=True) == code
    assert "<td style='text-align:left'>0x0010</td>" in listing._repr_html_()
    assert str(softgen.disassemble(code, "kbl", syntax="mesa")[0]).startswith("add(8)")


def test_spec_records() -> None:
    vs = softgen.spec("3DSTATE_VS", "kbl")
    assert vs["kernel_start_pointer"].bits == "63:6" or vs["kernel_start_pointer"].low == 38
    assert (vs["maximum_number_of_threads"].dword, vs["maximum_number_of_threads"].bits) == (7, "31:23")
    assert "kernel_start_pointer" in str(vs) and "3DSTATE_VS" in vs._repr_html_()
    assert softgen.spec("3DSTATE_VS", "ivb").dwords == 6
    with pytest.raises(KeyError, match="has no field 'nothing'"):
        vs["nothing"]
    with pytest.raises(softgen.SpecError, match="did you mean 3DSTATE_VS"):
        softgen.spec("3DSTAT_VS", "kbl")
    with pytest.raises(softgen.SpecError, match=r"gen 4\.5 has no 3DSTATE_VS"):
        softgen.spec("3DSTATE_VS", "g45")


@pytest.mark.parametrize("high, low, dword, bits", [(31, 0, 0, "31:0"), (5, 5, 0, "5"), (31, 31, 0, "31"), (32, 32, 1, "0"),
                                                    (63, 38, 1, "31:6"), (63, 32, 1, "31:0"), (95, 64, 2, "31:0"), (79, 38, 1, "47:6"),
                                                    (1055, 1024, 32, "31:0")])  # fmt: skip
def test_bits_of_a_field_count_from_its_dword(high: int, low: int, dword: int, bits: str) -> None:
    field = Field("f", high, low, "", {})
    assert (field.dword, field.bits) == (dword, bits)


def test_a_record_as_a_table() -> None:
    """A field with named values lists them in place of its type, one of a group has the group's name in front."""
    rows = {"PIPELINE_SELECT": [("0", "15:8", "mask_bits", "uint"), ("0", "1:0", "pipeline_selection", "3d | media | gpgpu")],
            "MI_LOAD_REGISTER_IMM": [("0", "12", "force_posted", "bool"), ("1", "22:2", "entry.register_offset", "offset"),
                                     ("2", "31:0", "entry.data_dword", "uint")],
            "BINDING_TABLE_STATE": [("0", "31:6", "surface_state_pointer", "address surface RENDER_SURFACE_STATE")]}  # fmt: skip
    for name, expected in rows.items():
        record = softgen.spec(name, "kbl")
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", record._repr_html_())
        table = list(zip(cells[::5], cells[1::5], cells[2::5], cells[3::5], strict=True))
        assert [row for row in table if row in expected] == expected and len(table) == len(record.fields)
        assert cells[4::5] == [field.source for field in record.fields]


def test_records_of_the_same_page_are_equal() -> None:
    assert softgen.spec("3DSTATE_VS", "kbl") == softgen.spec("3DSTATE_VS", "kbl")
    assert softgen.spec("3DSTATE_VS", "kbl") != softgen.spec("3DSTATE_VS", "skl")


def test_fields_of_groups_are_where_their_first_element_is() -> None:
    """MI_LOAD_REGISTER_IMM: pairs of a register's offset and its value, from dword 1 on."""
    load = softgen.spec("MI_LOAD_REGISTER_IMM", "kbl")
    assert [(load[name].dword, load[name].bits, load[name].group) for name in ("register_offset", "data_dword")] == [
        (1, "22:2", "entry"), (2, "31:0", "entry")]  # fmt: skip
    assert "entry.data_dword" in load._repr_html_() and repr(load).startswith("Spec(MI_LOAD_REGISTER_IMM: command, kbl, ")


def test_commands_are_those_of_the_command_line() -> None:
    command = [sys.executable, "-m", "softgen", "decode", str(CAPTURE), "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    lines = [json.loads(line) for line in told.splitlines()]
    commands = list(softgen.decode(CAPTURE))
    assert [command.name for command in commands] == [line["name"] for line in lines if "name" in line and "batch" in line]
    assert sum(len(command.states) for command in commands) == sum("state" in line for line in lines)
    assert sum(len(command.kernels) for command in commands) == sum("kernel" in line for line in lines)
    walker = next(command for command in commands if command.name == "GPGPU_WALKER")
    assert walker["simd_size"] == "simd16" and "simd_size" in walker._repr_html_() and "GPGPU_WALKER" in str(walker)


def test_a_batch_in_bytes() -> None:
    batch = b"".join(word.to_bytes(4, "little") for word in (0, 0x05000000))
    assert [command.name for command in softgen.decode(batch, gpu="icl")] == ["MI_NOOP", "MI_BATCH_BUFFER_END"]
    with pytest.raises(softgen.UsageError, match="gpu="):
        softgen.decode(batch)


@pytest.mark.parametrize("engine", ["reference", "t0"])
def test_replay(engine: str) -> None:
    report = softgen.open(CAPTURE).replay(engine=engine, threads=1)
    assert report.fine and report.threads == 4 and report.submissions == 3 and report.faults == [] and report.images == []
    assert "4 threads" in str(report) and "instructions" in report._repr_html_()
    with pytest.raises(softgen.UsageError, match="no engine"):
        softgen.open(CAPTURE).replay(engine="fast")


def test_a_time_limit_counts_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    timed_out, never = deadline(1.5), deadline(None)
    for now[0], expected in ((5.0, False), (6.25, False), (6.5, True), (100.0, True)):
        assert (timed_out(), never()) == (expected, False)


def test_a_time_limit_is_over_as_soon_as_so_many_seconds_have_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """None have to pass for a limit of zero."""
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    code = softgen.assemble("(W) send (8|M0) null r127 0x27 0x02000010 {EOT}", "kbl")
    with softgen.Gpu("kbl", engine="reference") as gpu:
        assert gpu.execute(code, time_limit=0.25).threads == gpu.execute(code, time_limit=None).threads == 1
        with pytest.raises(softgen.SoftgenError, match="time is up"):
            gpu.execute(code, time_limit=0)
        assert gpu.execute(code).threads == 1


def test_what_cannot_be_opened() -> None:
    with pytest.raises(softgen.DecodeError, match="cannot be read"):
        softgen.open("no such file")


def test_a_run_of_nothing() -> None:
    run = softgen.Run()
    assert (run.threads, run.instructions, run.seconds, run.faults, run.remarks, len(run.trace)) == (0, 0, 0.0, [], [], 0)
