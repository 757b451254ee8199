"""zebin programs: an ELF file with a `.text.` section for each kernel, and `.ze_info`, YAML that describes how to launch them.

The format is public: zebin_zeinfo.md and zebin_elf in intel-graphics-compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from softgen.bits.generation import device
from softgen.bits.units import GRF_BYTES
from softgen.eu.binary.launch import Argument, ArgumentKind, BinaryKernel, InlineSampler, Launch, PayloadValue, Relocation
from softgen.eu.binary.view import FileView

DEVICE_BINARY = 0xFF000005  # section type of a patch-token program
CONTENTS = ("SHT_PROGBITS", "SHT_SYMTAB", "SHT_NOTE", "SHT_REL", "SHT_STRTAB")
TEXT, RELOCATED = ".text.", ".rel.text."
DATA = {".data.const": "constant", ".data.global": "global"}
PRODUCT = "NT_GNU_ABI_TAG"  # note type 1, the GPU it was compiled for: pyelftools gives it a GNU name
PRODUCTS = {16: "bdw", 18: "skl", 19: "kbl", 26: "icl"}  # product family -> GPU
ADDRESS_PARTS = {1: (8, 0), 2: (4, 0), 3: (4, 32)}  # R_ZE_SYM_ADDR, its low half, its high half -> bytes, shift
SPACES: dict[str, ArgumentKind] = {"global": "buffer", "constant": "buffer", "local": "local", "image": "image", "sampler": "sampler"}
LONGEST_NAME = 256


@dataclass(frozen=True)
class Section:
    """A section of an ELF file; contents are read for the types that matter here."""

    index: int
    name: str
    type: str | int
    link: int
    content: FileView


def sections(structs: Any, header: Any, view: FileView) -> list[Section]:
    """The section table."""
    shape = structs.Elf_Shdr
    size, count, names = header["e_shentsize"], header["e_shnum"], header["e_shstrndx"]
    if count and size != shape.sizeof():
        raise view.error(58, f"section headers must have {shape.sizeof()} bytes, not {size}")
    table = view.part(header["e_shoff"], size * count, "the section table")
    rows = [shape.parse(bytes(table.data[at : at + size])) for at in range(0, len(table), shape.sizeof())]
    if rows and names >= len(rows):
        raise view.error(62, f"section {names} is to hold the names, but there are {len(rows)}")
    texts = view.part(rows[names]["sh_offset"], rows[names]["sh_size"], "the section names") if rows else view
    found = []
    for index, row in enumerate(rows):
        wanted = row["sh_type"] in CONTENTS or isinstance(row["sh_type"], int)
        content = view.part(row["sh_offset"], row["sh_size"], f"section {index}") if wanted else FileView(b"", view.name)
        found.append(Section(index, _string(texts, row["sh_name"]), row["sh_type"], row["sh_link"], content))
    return found


def _string(table: FileView, offset: int) -> str:
    return FileView(table.data[offset : offset + LONGEST_NAME], table.name).text()


def kernels(structs: Any, sections: list[Section], member: str) -> Iterator[BinaryKernel]:
    texts = [section for section in sections if section.name.startswith(TEXT) and section.type == "SHT_PROGBITS"]
    if not texts:
        return
    symbols = list(_symbols(structs, sections))
    described = _information(sections)
    gen = _generation(structs, sections)
    for section in texts:
        name = section.name.removeprefix(TEXT)
        ends = [symbol.value + symbol.size for symbol in symbols if symbol.section == section.index and symbol.function and symbol.size]
        end = max(ends, default=len(section.content))
        if end > len(section.content):
            raise section.content.error(0, f"{section.name} has {len(section.content):,} bytes, but a function ends at {end:,}")
        information = described.get(name, {})
        describe = partial(_launch, structs, sections, symbols, name, information, _list(described.get("", {}), "args_info", name))
        simd = _number(_dict(information, "execution_env"), "simd_size")
        yield BinaryKernel(name, bytes(section.content.data[:end]), simd, gen, "zebin", member, describe if information else None)


# -- symbols and notes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Symbol:
    section: int
    value: int
    size: int
    function: bool


def _symbols(structs: Any, sections: list[Section]) -> Iterator[Symbol]:
    shape = structs.Elf_Sym
    size = shape.sizeof()
    for table in sections:
        if table.type == "SHT_SYMTAB":
            for offset in range(0, len(table.content), size):
                row = shape.parse(bytes(table.content.part(offset, size, "a symbol").data))
                index = row["st_shndx"] if isinstance(row["st_shndx"], int) else 0
                yield Symbol(index, row["st_value"], row["st_size"], row["st_info"]["type"] == "STT_FUNC")


def _generation(structs: Any, sections: list[Section]) -> float | None:
    """From the product family in `.note.intelgt.compat`."""
    shape = structs.Elf_Nhdr
    for section in sections:
        if section.name != ".note.intelgt.compat":
            continue
        offset, view = 0, section.content
        while offset + shape.sizeof() <= len(view):
            note = shape.parse(bytes(view.data[offset : offset + shape.sizeof()]))
            at = offset + shape.sizeof() + (note["n_namesz"] + 3) // 4 * 4
            if note["n_type"] == PRODUCT and note["n_descsz"] == 4:
                product = int.from_bytes(view.part(at, 4, "a note's value").data, "little")
                return device(PRODUCTS[product]).generation.number if product in PRODUCTS else None
            offset = at + (note["n_descsz"] + 3) // 4 * 4
    return None


def _relocations(structs: Any, sections: list[Section], symbols: list[Symbol], name: str) -> Iterator[Relocation]:
    shape = structs.Elf_Rel
    places = {section.index: DATA.get(section.name, "code") for section in sections}
    for section in sections:
        if section.name != f"{RELOCATED}{name}" or section.type != "SHT_REL":
            continue
        for offset in range(0, len(section.content), shape.sizeof()):
            row = shape.parse(bytes(section.content.part(offset, shape.sizeof(), "a relocation").data))
            number, kind = row["r_info_sym"], row["r_info_type"]
            if kind not in ADDRESS_PARTS or number >= len(symbols):
                raise section.content.error(offset, f"relocation type {kind}, symbol {number}: types {list(ADDRESS_PARTS)} are known")
            size, shift = ADDRESS_PARTS[kind]
            symbol = symbols[number]
            yield Relocation(row["r_offset"], places.get(symbol.section, "code"), symbol.value, size, shift)  # type: ignore[arg-type]


# -- .ze_info --------------------------------------------------------------------------------------------------------


def _information(sections: list[Section]) -> dict[str, dict[str, Any]]:
    """Kernels of `.ze_info` by name; under "" the arguments of each, as the source declares them."""
    import yaml

    content = next((section.content for section in sections if section.name == ".ze_info"), None)
    if content is None:
        return {}
    try:
        parsed = yaml.load(content.text(), Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # strings only: `name: off` is no boolean
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise content.error(0, f".ze_info is no YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(parsed, dict):
        return {}
    found = {kernel["name"]: kernel for kernel in _records(parsed, "kernels") if isinstance(kernel.get("name"), str)}
    sources = {kernel["name"]: kernel for kernel in _records(parsed, "kernels_misc_info") if isinstance(kernel.get("name"), str)}
    return {**found, "": {"args_info": {name: _records(kernel, "args_info") for name, kernel in sources.items()}}}


def _records(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = parent.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _dict(parent: dict[str, Any], key: str) -> dict[str, Any]:
    found = parent.get(key)
    return found if isinstance(found, dict) else {}


def _list(parent: dict[str, Any], key: str, name: str) -> list[dict[str, Any]]:
    return list(_dict(parent, key).get(name, ()))


def _flag(parent: dict[str, Any], key: str) -> bool:
    return parent.get(key) == "true"


def _integer(text: object) -> int | None:
    """A number; None for what is none, or has ten digits or more: no kernel has such numbers."""
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 10 else None


def _number(parent: dict[str, Any], key: str, default: int = 0) -> int:
    found = _integer(parent.get(key))
    return default if found is None else found


def _launch(structs: Any, sections: list[Section], symbols: list[Symbol], name: str, information: dict[str, Any],
            source: list[dict[str, Any]]) -> Launch:  # fmt: skip
    environment = _dict(information, "execution_env")
    payload = _records(information, "payload_arguments")
    surfaces = {_number(row, "arg_index", -1): _number(row, "bti_value") for row in _records(information, "binding_table_indices")}
    values = tuple(_values(payload))
    memories = _records(information, "per_thread_memory_buffers")
    simd = _number(environment, "simd_size", 1)
    data = {DATA[section.name]: bytes(section.content.data) for section in sections if section.name in DATA}
    size = max((value.offset + value.size for value in values), default=0)
    return Launch(
        arguments=tuple(_arguments(payload, surfaces, source)), values=values, payload_bytes=-(-size // GRF_BYTES) * GRF_BYTES,
        local_ids=bool(_records(information, "per_thread_payload_arguments")), barrier=bool(_number(environment, "barrier_count")),
        local_bytes=_number(environment, "slm_size"),
        scratch_bytes=max((_number(row, "size") for row in memories if row.get("type") == "scratch"), default=0),
        private_bytes=sum(_number(row, "size") * (simd if _flag(row, "is_simt_thread") else 1)
                          for row in memories if row.get("type") == "global"),
        samplers=tuple(InlineSampler(_number(row, "sampler_index"), str(row.get("addrmode", "")), str(row.get("filtermode", "")),
                                     _flag(row, "normalized")) for row in _records(information, "inline_samplers")),
        relocations=tuple(_relocations(structs, sections, symbols, name)),
        constant_data=data.get("constant", b""), global_data=data.get("global", b""),
        required_local_size=_triple(environment.get("required_work_group_size")),
    )  # fmt: skip


def _triple(texts: object) -> tuple[int, int, int]:
    numbers = [number for text in texts if (number := _integer(text)) is not None] if isinstance(texts, list) else []
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else (0, 0, 0)


def _values(payload: list[dict[str, Any]]) -> Iterator[PayloadValue]:
    for row in payload:
        if size := _number(row, "size"):
            kind = str(row.get("arg_type"))
            kind = f"{row.get('addrspace')}_address" if kind == "arg_bypointer" else kind
            kind = "buffer_address" if kind in ("global_address", "constant_address") else kind
            yield PayloadValue(kind, _number(row, "offset"), size, _number(row, "arg_index", -1), _number(row, "source_offset"))


def _arguments(payload: list[dict[str, Any]], surfaces: dict[int, int], source: list[dict[str, Any]]) -> Iterator[Argument]:
    declared = {_number(row, "index", -1): row for row in source}
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in payload:
        if (index := _number(row, "arg_index", -1)) >= 0:
            rows.setdefault(index, []).append(row)
    for index, own in sorted(rows.items()):
        pointers = [row for row in own if row.get("arg_type") == "arg_bypointer"]
        first = pointers[0] if pointers else own[0]
        kind = SPACES.get(str(first.get("addrspace")), "buffer" if pointers else "value")
        values = [_number(row, "source_offset") + _number(row, "size") for row in own if row.get("arg_type") == "arg_byvalue"]
        declaration = declared.get(index, {})
        yield Argument(
            index, kind, str(declaration.get("name", "")), str(declaration.get("type_name", "")).partition(";")[0], max(values, default=0),
            _number(first, "slm_alignment", 1) or 1, surfaces.get(index), _number(first, "sampler_index") if kind == "sampler" else None,
            first.get("access_type") != "readonly",
        )  # fmt: skip
