"""Compiled OpenCL programs: kernels found in every container, and nothing but DecodeError from files that are damaged."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from softgen.errors import DecodeError
from softgen.eu import binary
from softgen.eu.binary import tokens as patch_tokens
from softgen.eu.binary import zebin
from softgen.eu.binary.launch import Relocation
from softgen.eu.binary.view import FileView
from softgen.eu.encoding import program
from tests.conftest import SHARED, needs_shared
from tests.eu.corpus import DATA, GENERATION

FILES = sorted((DATA / "kernels").glob("*.bin"))
PATCH, ZEBIN = DATA / "kernels" / "cf_collatz.kbl.bin", DATA / "kernels" / "cf_collatz.kbl.zebin.bin"


def archive(*members: tuple[bytes, bytes]) -> bytes:
    """As `ar` writes it."""
    out = b"!<arch>\n"
    for name, data in members:
        head = b"%-16s%-12s%-6s%-6s%-8s%-10s`\n" % (name, b"0", b"0", b"0", b"644", str(len(data)).encode())
        out += head + data + b"\n" * (len(data) % 2)
    return out


def tokens(width: int) -> bytes:
    """Another token, then the execution environment."""
    return struct.pack("<2I4x", 25, 12) + struct.pack("<2I3I2I", 23, 28, 0, 0, 0, width, 0)


def patch_program(*kernels: tuple[bytes, bytes, int], core: int = 12, patches: bytes = b"") -> bytes:
    """Kernels of name, code and width; each code is followed by padding."""
    out = struct.pack("<4s6I", b"CTNI", 1081, core, 8, len(kernels), 9, len(patches)) + patches
    for name, code, width in kernels:
        name = name + bytes(4 - len(name) % 4)
        out += struct.pack("<IQ7I", 0, 0, len(name), len(tokens(width)), len(code) + 128, 4, 8, 12, len(code))
        out += name + code + bytes(128) + bytes(4 + 8 + 12) + tokens(width)
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_bundled_programs(path: Path) -> None:
    (kernel,) = binary.kernels(path.read_bytes(), path.name)
    name, gpu, *rest = path.name.split(".")
    assert kernel.name == name and kernel.gen == GENERATION[gpu] and kernel.container == ("zebin" if "zebin" in rest else "patch tokens")
    assert kernel.simd == (8 if name == "cf_calls_stack" else 16)
    assert program.kernel_end(kernel.code, kernel.gen) == (len(kernel.code), True)


def test_both_containers_hold_the_same_code() -> None:
    assert binary.kernels(PATCH.read_bytes())[0].code == binary.kernels(ZEBIN.read_bytes())[0].code


def test_a_program_without_elf_and_several_kernels() -> None:
    found = binary.kernels(patch_program((b"one", b"\x01" * 16, 8), (b"second", b"\x02" * 32, 32), core=11, patches=bytes(12)))
    assert [(kernel.name, kernel.code, kernel.simd, kernel.gen)
            for kernel in found] == [("one", b"\x01" * 16, 8, 8.0), ("second", b"\x02" * 32, 32, 8.0)]


def test_an_unknown_gpu_is_left_open() -> None:
    assert binary.kernels(patch_program((b"k", b"\x01" * 16, 8), core=99))[0].gen is None


def test_archives() -> None:
    programs = (b"9.0.0/", PATCH.read_bytes()), (b"/0", ZEBIN.read_bytes())
    data = archive((b"pad/", b"xx"), (b"//", b"a name too long for the header/\n"), *programs, (b"generic_ir/", b"SPIR-V"))
    found = binary.kernels(data, "fat.ar")
    assert [(kernel.member, kernel.container)
            for kernel in found] == [("9.0.0", "patch tokens"), ("a name too long for the header", "zebin")]


@pytest.mark.parametrize("data, message", [
    (b"", "x: at 0x0: is neither a compiled OpenCL program nor an archive"),
    (b"hello", "x: at 0x0: is neither"),
    (b"\x7fELF", "x: at 0x0: the ELF header of 64 bytes runs past the end, 4 bytes on"),
    (b"CTNI", "x: at 0x0: a program's header of 28 bytes runs past the end"),
    (b"!<arch>\n", "x: holds no kernel"),
    (archive((b"a/", b"text")), "x: holds no kernel"),
    (b"!<arch>\n" + b"x" * 60, "x: at 0x8: an archive member's header must end with its size and a mark"),
    (archive((b"9/", PATCH.read_bytes()))[:3000], "x: at 0x44: an archive member of 4,160 bytes runs past the end"),
    (patch_program((b"k", b"\x01" * 16, 8))[:100], "x: at 0x48: a kernel's code of 144 bytes runs past the end, 28 bytes on"),
    (struct.pack("<4s6I", b"CTNI", 0, 12, 8, 1, 0, 1 << 31), "a program's patch list of 2,147,483,648 bytes runs past the end"),
    (struct.pack("<4s6I", b"CTNI", 0, 12, 8, 0xFFFFFFFF, 0, 0), "x: at 0x1c: a kernel's header of 40 bytes runs past the end"),
    (patch_program((b"k", b"\x01" * 16, 8))[:-36] + bytes(36), "x: at 0xf0: a patch token has 8 bytes at least, not 0"),
    (PATCH.read_bytes()[:5] + b"\x02" + PATCH.read_bytes()[6:], "x: at 0x4: must be ELF of 64 bits, little end first"),
])  # fmt: skip
def test_damage_is_told_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as found:
        binary.kernels(data, "x")
    assert message in str(found.value)


def test_more_code_than_bytes_is_refused() -> None:
    """Section headers that all point at the same bytes."""
    raw = bytearray(ZEBIN.read_bytes())
    table = struct.unpack_from("<Q", raw, 40)[0]
    text = bytes(raw[table + 64 : table + 128])
    raw = raw[:table] + raw[table:] + text * 200
    struct.pack_into("<H", raw, 60, struct.unpack_from("<H", raw, 60)[0] + 200)
    with pytest.raises(DecodeError, match="its kernels overlap"):
        binary.kernels(bytes(raw))


def refuses_or_reads(data: bytes) -> bool:
    try:
        found = binary.kernels(data)
    except DecodeError:
        return False
    assert sum(len(kernel.code) for kernel in found) <= len(data)
    for kernel in found:
        with contextlib.suppress(DecodeError):
            kernel.launch()
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_cut_short(path: Path) -> None:
    data = path.read_bytes()
    assert not any(refuses_or_reads(data[:size]) for size in range(64))
    assert sum(refuses_or_reads(data[:size]) for size in range(0, len(data), 61)) < len(data) // 61


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_with_bits_turned_over(path: Path) -> None:
    data, chance = path.read_bytes(), random.Random(path.name)
    refused = 0
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            places = chance.randrange(256), chance.randrange(len(data)), chance.randrange(len(data) - 700, len(data))
            damaged[chance.choice(places)] ^= 1 << chance.randrange(8)
        refused += not refuses_or_reads(bytes(damaged))
    assert refused > 1


@given(start=st.sampled_from((b"CTNI", b"\x7fELF\x02\x01", b"!<arch>\n", b"")), data=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(start: bytes, data: bytes) -> None:
    refuses_or_reads(start + data)


@needs_shared("kernels")
def test_every_program_at_hand() -> None:
    """Names, widths and sizes as an independent reader of the containers wrote them down."""
    files = sorted((SHARED / "kernels").glob("*/*/*.bin"))
    assert len(files) > 300
    for path in files:
        found = binary.kernels(path.read_bytes(), path.name)
        said = json.loads(path.with_suffix(".json").read_text("utf-8"))
        assert all(kernel.gen == GENERATION[path.parent.name] for kernel in found)
        if said["format"] == "zebin":
            known = {value["name"]: value["execution_env"]["simd_size"] for value in said["ze_info"]["kernels"]}
            assert {kernel.name: kernel.simd for kernel in found if kernel.name in known} == known
            raw = path.with_suffix(".dat").read_bytes()
            assert any(raw.startswith(kernel.code) and not raw[len(kernel.code) :].strip(b"\0") for kernel in found), path
        else:
            assert [(kernel.name, len(kernel.code)) for kernel in found] == [(value["name"], value["unpadded_size"])
                                                                             for value in said["kernels"]]
            environments = [token for value in said["kernels"] for token in value["tokens"] if token["token"] == "EXECUTION_ENVIRONMENT"]
            assert [kernel.simd for kernel in found] == [token["LargestCompiledSIMDSize"] for token in environments]
            assert path.with_suffix(".dat").read_bytes() in [kernel.code for kernel in found], path


# -- launch descriptions -----------------------------------------------------------------------------------------------


def bytes_of(launch: binary.Launch) -> dict[int, tuple[str, int, int]]:
    """Every byte of the cross-thread payload: which value it belongs to."""
    return {value.offset + at: (value.kind, value.argument, value.source + at) for value in launch.values for at in range(value.size)}


@pytest.mark.parametrize("path", [PATCH, ZEBIN], ids=["patch tokens", "zebin"])
def test_a_launch_description(path: Path) -> None:
    launch = binary.kernels(path.read_bytes())[0].launch()
    arguments = [(argument.name, argument.type, argument.kind, argument.surface) for argument in launch.arguments]
    assert arguments == [("a", "uint*", "buffer", 0), ("o", "uint*", "buffer", 1)]
    assert launch.payload_bytes == 96 and launch.local_ids and not launch.barrier and launch.scratch_bytes == launch.local_bytes == 0
    found = bytes_of(launch)
    assert found[0] == ("global_id_offset", -1, 0) and found[16] == ("local_size", -1, 4) and ("buffer_address", 1, 0) in found.values()


def test_an_argument_by_value_ends_with_its_last_part() -> None:
    def parameter(index: int, size: int, source: int) -> FileView:
        return FileView(struct.pack("<5I", 1, index, 0, size, source), "a token")

    parts = [parameter(0, 8, 0), parameter(0, 4, 8), parameter(0, 2, 4), parameter(1, 0, 0)]
    found = patch_tokens._arguments({patch_tokens.DATA_PARAMETER: parts}, {})
    assert [(argument.index, argument.size) for argument in found] == [(0, 12), (1, 0)]


def token(*fields: int) -> FileView:
    return FileView(struct.pack(f"<{len(fields)}I", *fields), "a token")


def test_a_launch_says_what_its_tokens_say() -> None:
    t = patch_tokens
    constants = struct.pack("<4I4s", t.CONSTANT_DATA, 16, 7, 4, b"cons")
    program = FileView(constants + struct.pack("<5I6s", t.GLOBAL_DATA, 20, 0, 0, 6, b"global"), "a program")
    dynamic, surface = FileView(bytes(range(80)), "dynamic"), token(0, 0, 64, 128, 192, 64)
    tokens = [(t.BINDING_TABLE_STATE, token(8, 4)), (t.THREAD_PAYLOAD, token(0, 0, 0, 1)),
              (t.EXECUTION_ENVIRONMENT, token(4, 2, 3, 16, 0, 1)), (t.LOCAL_SURFACE, token(0, 512, 1)),
              (t.MEDIA_VFE_STATE, token(0, 1024, 2)), (t.PRIVATE_MEMORY, token(192, 24, 8, 96, 1)),
              (t.CONSTANT_SURFACE, token(9, 64, 32, 8)), (t.GLOBAL_SURFACE, token(9, 128, 40, 8)), (t.PARAMETER_STREAM, token(96)),
              (t.SAMPLER_STATE_ARRAY, token(32, 2))]  # fmt: skip
    launch = t._launch(program, dynamic, surface, tokens)
    assert (launch.payload_bytes, launch.local_ids, launch.barrier) == (96, True, True)
    assert (launch.local_bytes, launch.scratch_bytes, launch.private_bytes, launch.required_local_size) == (512, 1024, 96 * 16, (4, 2, 3))
    assert (launch.constant_data, launch.global_data) == (b"cons", b"global")
    assert (launch.constant_surface, launch.global_surface, launch.private_surface) == (0, 1, 2)
    assert [(sampler.index, sampler.state) for sampler in launch.samplers] == [(0, bytes(range(32, 48))), (1, bytes(range(48, 64)))]
    assert [(value.kind, value.offset, value.size) for value in launch.values] == [
        ("private_base_stateless", 24, 8), ("global_base", 32 + 8, 8), ("const_base", 32, 8)]  # fmt: skip
    plain = t._launch(token(), dynamic, surface, [(t.PRIVATE_MEMORY, token(192, 24, 8, 96, 0)), (t.THREAD_PAYLOAD, token(1, 0, 0, 0))])
    assert (plain.private_bytes, plain.private_surface, plain.local_ids, plain.constant_surface) == (96, None, False, None)


def test_arguments_of_every_kind() -> None:
    t = patch_tokens
    found = {argument.index: argument for argument in t._arguments({
        t.DATA_PARAMETER: [token(8, index, 0, 4, alignment) for index, alignment in enumerate((0, 1, 2, 16))],  # of __local memory
        t.GLOBAL_ARGUMENT: [token(4, 64, 0, 8)], t.CONSTANT_ARGUMENT: [token(5, 128, 0, 8)],
        t.IMAGE_ARGUMENT: [token(6, 0, 192, 0, 0, 1), token(7, 0, 64, 0, 0, 0)],
        t.SAMPLER_STATE_ARRAY: [token(32, 3)], t.SAMPLER_ARGUMENT: [token(8, 0, 32), token(9, 0, 32 + 15 * 16)],
    }, {64: 1, 128: 2, 192: 3})}  # fmt: skip
    assert [(found[index].kind, found[index].alignment) for index in range(4)] == [("local", 1), ("local", 1), ("local", 2), ("local", 16)]
    assert [(found[index].kind, found[index].surface, found[index].writable) for index in range(4, 8)] == [
        ("buffer", 1, True), ("buffer", 2, False), ("image", 3, True), ("image", 1, False)]  # fmt: skip
    assert [(found[index].kind, found[index].sampler) for index in (8, 9)] == [("sampler", 0), ("sampler", 15)]


def described(index: int, *texts: bytes, cut: int = 0) -> FileView:
    """An argument's description, without the last `cut` bytes: its number, the sizes of five strings, the strings."""
    raw = struct.pack("<6I", index, *map(len, texts)) + b"".join(texts)
    return FileView(raw[: len(raw) - cut], "a token")


def test_an_argument_has_the_name_and_type_that_its_description_says() -> None:
    t = patch_tokens
    texts = (b"__global\0", b"NONE\0", b"pixels\0", b"float4*;8\0", b"const\0")
    (found,) = t._arguments({t.GLOBAL_ARGUMENT: [token(3, 64, 0, 8)], t.ARGUMENT_INFO: [described(3, *texts)]}, {64: 1})
    assert (found.index, found.name, found.type) == (3, "pixels", "float4*")
    for cut in (1, len(texts[4]), len(texts[4]) + 1, sum(map(len, texts))):
        with pytest.raises(DecodeError, match=r"a token: at 0x[0-9a-f]+: a string of [0-9]+ bytes runs past the end"):
            list(t._arguments({t.ARGUMENT_INFO: [described(3, *texts, cut=cut)]}, {}))


@pytest.mark.parametrize("said, found", [("0", 0), ("16", 16), ("999999999", 999_999_999), ("1000000000", None), ("9" * 5000, None),
                                         ("-1", None), ("1e3", None), ("0x10", None), ("", None), (["1"], None), (None, None)])  # fmt: skip
def test_numbers_of_a_zebin(said: object, found: int | None) -> None:
    """What is no number counts as not said, and so does one of ten digits or more, which no kernel has."""
    assert zebin._number({"size": said}, "size", 7) == (7 if found is None else found)


@pytest.mark.parametrize("said, found", [(["8", "4", "2"], (8, 4, 2)), (["8", "4"], (0, 0, 0)), (["8", "4", "2", "1"], (0, 0, 0)),
                                         (["8", "x", "2"], (0, 0, 0)), (["1", "1", "9" * 5000], (0, 0, 0)), ("8", (0, 0, 0))])  # fmt: skip
def test_the_local_size_that_a_zebin_requires(said: object, found: tuple[int, int, int]) -> None:
    """Three numbers, or any size will do. A number of five thousand digits once was an error of Python."""
    assert zebin._triple(said) == found


def elf_structs() -> Any:
    """How rows of 64-bit ELF files are read."""
    from elftools.elf.structs import ELFStructs

    structs = ELFStructs(little_endian=True, elfclass=64)
    structs.create_basic_structs()
    structs.create_advanced_structs()
    return structs


@pytest.mark.parametrize("before", [[], [(2, b"12"), (3, b"123456789")], [(1, b"12")], [(0, b""), (2, bytes(4))], [(2, bytes(8))]])
@pytest.mark.parametrize("product, gen", [(16, 8.0), (18, 9.0), (26, 11.0), (999, None)])
def test_the_note_that_names_the_gpu_of_a_zebin(before: list[tuple[int, bytes]], product: int, gen: float | None) -> None:
    """It is of type 1 and has four bytes, and may come after others, each of whole words; a section of another name has none."""
    notes = b""
    for kind, value in [*before, (1, product.to_bytes(4, "little"))]:
        notes += struct.pack("<3I8s", 8 - kind, len(value), kind, b"IntelGT") + value + bytes(-len(value) % 4)
    section = zebin.Section(1, ".note.intelgt.compat", "SHT_NOTE", 0, FileView(notes, "f"))
    assert zebin._generation(elf_structs(), [replace(section, index=0, name=".text.k"), section]) == gen
    assert zebin._generation(elf_structs(), [replace(section, name=".note.other")]) is None
    assert zebin._generation(elf_structs(), [replace(section, content=FileView(notes[:-24], "f"))]) is None
    for cut in (12, 4, 1):
        with pytest.raises(DecodeError, match="a note's value of 4 bytes runs past the end"):
            zebin._generation(elf_structs(), [replace(section, content=FileView(notes[:-cut], "f"))])


def test_a_launch_says_what_a_zebin_says() -> None:
    information = {
        "execution_env": {"simd_size": "16", "barrier_count": "1", "slm_size": "512", "required_work_group_size": ["4", "2", "1"]},
        "payload_arguments": [
            {"arg_type": "arg_bypointer", "offset": "0", "size": "8", "arg_index": "0", "addrspace": "global", "access_type": "readonly"},
            {"arg_type": "arg_byvalue", "offset": "40", "size": "4", "arg_index": "1", "source_offset": "0"},
            {"arg_type": "arg_byvalue", "offset": "44", "size": "2", "arg_index": "1", "source_offset": "4"},
            {"arg_type": "arg_bypointer", "offset": "48", "size": "4", "arg_index": "2", "addrspace": "local", "slm_alignment": "16"},
            {"arg_type": "arg_bypointer", "size": "0", "arg_index": "3", "addrspace": "sampler", "sampler_index": "5"},
            {"arg_type": "local_size", "offset": "52", "size": "12"}],
        "binding_table_indices": [{"arg_index": "0", "bti_value": "7"}],
        "per_thread_memory_buffers": [
            {"type": "scratch", "size": "1024"}, {"type": "scratch", "size": "64"}, {"type": "global", "size": "24"},
            {"type": "global", "size": "8", "is_simt_thread": "true"}],
    }  # fmt: skip
    sections = [zebin.Section(number, f".data.{name}", "SHT_PROGBITS", 0, FileView(name.encode(), "f"))
                for number, name in enumerate(("const", "global"))]  # fmt: skip
    launch = zebin._launch(elf_structs(), sections, [], "k", information, [{"index": "1", "name": "n", "type_name": "int2;8"}])
    assert [(argument.kind, argument.surface, argument.size, argument.alignment, argument.sampler, argument.writable)
            for argument in launch.arguments] == [("buffer", 7, 0, 1, None, False), ("value", None, 6, 1, None, True),
                                                  ("local", None, 0, 16, None, True), ("sampler", None, 0, 1, 5, True)]  # fmt: skip
    assert [(argument.index, argument.name, argument.type) for argument in launch.arguments] == [
        (0, "", ""), (1, "n", "int2"), (2, "", ""), (3, "", "")]  # fmt: skip
    assert [(value.kind, value.offset, value.size, value.argument, value.source) for value in launch.values] == [
        ("buffer_address", 0, 8, 0, 0), ("arg_byvalue", 40, 4, 1, 0), ("arg_byvalue", 44, 2, 1, 4), ("local_address", 48, 4, 2, 0),
        ("local_size", 52, 12, -1, 0)]  # fmt: skip
    assert (launch.payload_bytes, launch.local_ids, launch.barrier, launch.local_bytes) == (64, False, True, 512)
    assert launch.scratch_bytes == 1024 and launch.private_bytes == 24 + 8 * 16 and launch.required_local_size == (4, 2, 1)
    assert (launch.constant_data, launch.global_data) == (b"const", b"global")
    private = {"per_thread_memory_buffers": [{"type": "global", "size": "8", "is_simt_thread": "true"}]}
    assert zebin._launch(elf_structs(), [], [], "k", private, []) == binary.Launch(local_ids=False, private_bytes=8)


def test_relocations_of_a_zebin() -> None:
    """An address as a whole and its two halves; of constant and global data, and of what else there is. Other kernels have others."""
    structs = elf_structs()
    names = ("", ".data.const", ".data.global", ".text.k", ".rel.text.k", ".rel.text.other", ".rel.text.k")
    kinds = ("SHT_NULL", *["SHT_PROGBITS"] * 3, "SHT_REL", "SHT_REL", "SHT_NOTE")
    held = [(0, 1), (1, 2), (1, 3), (2, 1)]
    rows = b"".join(struct.pack("<2Q", 16 * number, symbol << 32 | kind) for number, (symbol, kind) in enumerate(held))
    sections = [zebin.Section(index, name, kind, 0, FileView(rows if kind == "SHT_REL" and index == 4 else b"", "f", 0x100))
                for index, (name, kind) in enumerate(zip(names, kinds, strict=True))]  # fmt: skip
    symbols = [zebin.Symbol(1, 8, 0, False), zebin.Symbol(2, 24, 0, False), zebin.Symbol(9, 5, 0, False)]
    assert list(zebin._relocations(structs, sections, symbols, "k")) == [
        Relocation(0, "constant", 8, 8), Relocation(16, "global", 24, 4, 0), Relocation(32, "global", 24, 4, 32),
        Relocation(48, "code", 5, 8)]  # fmt: skip
    assert not list(zebin._relocations(structs, sections, symbols, "other"))
    for symbol, kind in ((0, 0), (0, 4), (3, 1)):
        bad = replace(sections[4], content=FileView(struct.pack("<2Q", 0, symbol << 32 | kind), "f", 0x100))
        with pytest.raises(DecodeError, match=rf"f: at 0x100: relocation type {kind}, symbol {symbol}: types \[1, 2, 3\] are known"):
            list(zebin._relocations(structs, [bad], symbols, "k"))


@needs_shared("kernels")
def test_both_containers_describe_the_same_launch() -> None:
    """Where program-scope data is absent: the one relocates it, the other passes its address."""
    compared = 0
    for path in sorted((SHARED / "kernels").glob("*/*/*.zebin.bin")):
        zebin, tokens = (next(kernel for kernel in binary.kernels(file.read_bytes()) if kernel.name == path.parent.parent.name).launch()
                         for file in (path, path.with_name(path.name.replace(".zebin", ""))))  # fmt: skip
        if zebin.constant_data or tokens.constant_data:
            assert zebin.relocations and {"const_base"} <= {value.kind for value in tokens.values}
            continue
        assert bytes_of(zebin) == bytes_of(tokens), path
        for name in ("payload_bytes", "local_ids", "barrier", "local_bytes", "scratch_bytes", "private_bytes", "required_local_size"):
            assert getattr(zebin, name) == getattr(tokens, name), (path, name)
        assert [replace(argument, writable=True) for argument in zebin.arguments] == [replace(argument, writable=True)
            for argument in tokens.arguments], path
        assert len(zebin.samplers) == len(tokens.samplers)
        compared += 1
    assert compared > 150


@needs_shared("kernels")
def test_names_that_yaml_would_take_for_booleans() -> None:
    """An argument called `off`."""
    file = SHARED / "kernels" / "unaligned_vload" / "kbl" / "unaligned_vload.zebin.bin"
    assert "off" in [argument.name for argument in binary.kernels(file.read_bytes())[0].launch().arguments]


@pytest.mark.parametrize("text, message", [(b"kernels: [", "is no YAML"), (b"kernels: 7\n", None), (b"- 1\n", None),
                                           (b"a: &a [*a]\n", "is no YAML")])
def test_information_that_is_no_yaml(text: bytes, message: str | None) -> None:
    raw = ZEBIN.read_bytes()
    at = raw.index(b"---\nversion:")
    end = raw.index(b"...\n", at) + 4
    damaged = raw[:at] + text.ljust(end - at, b" ") + raw[end:]
    if message is None:
        (kernel,) = binary.kernels(damaged)
        assert kernel.simd == 0
        with pytest.raises(DecodeError, match="does not describe its arguments"):
            kernel.launch()
    else:
        with pytest.raises(DecodeError, match=message):
            binary.kernels(damaged)
