"""Message descriptors against two witnesses: the texts of Mesa's assembler tests, and iga64's comments on OpenCL kernels."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from softgen.bits.describe import values_of
from softgen.bits.layout import GENERATIONS
from softgen.shared_functions import descriptors
from softgen.shared_functions.descriptors import Descriptor
from tests.conftest import SHARED, needs_shared
from tests.shared_functions.test_message import must


def label(found: Descriptor, field: str) -> str:
    """The name of an enumerated field's value."""
    return values_of(found.layout.field(field).type, found.layout.gen)[getattr(found.values, field)]


# -- Mesa's assembler tests ----------------------------------------------------------------------------------------

MESA = {4.5: "elk/tests/gen4.5", 7.0: "elk/tests/gen7", 7.5: "elk/tests/gen7.5", 8.0: "elk/tests/gen8", 9.0: "brw/tests/gen9"}
COMPARED = {4.5: 111, 7.0: 632, 7.5: 802, 8.0: 2239, 9.0: 2066, 11.0: 358}
UNITS = {
    "sampler": 2,
    "gateway": 3,
    "read": 4,
    "write": 5,
    "render": 5,
    "urb": 6,
    "thread_spawner": 7,
    "ts/btd": 7,
    "const": 9,
    "hdc:ro": 9,
    "data": 10,
    "hdc0": 10,
    "pixel interp": 11,
    "pi": 11,
    "dp data 1": 12,
    "hdc1": 12,
    "math": 1,
}


class Send(NamedTuple):
    gen: float
    sfid: int
    descriptor: int
    unit: str
    said: str  # what stands between the unit and the lengths


def sends(gen: float) -> Iterator[Send]:
    """Each send of Mesa's tests: descriptor and function from the bytes, the rest from the text."""
    if gen not in MESA:
        lines = (SHARED / "oracles" / "asm" / "gen11-from-gen9" / "all.txt").read_text().splitlines()
        pairs = [tuple(reversed(line.split(" ; ", 1))) for line in lines if "MsgDesc" in line]
    else:
        pairs = []
        for path in sorted((SHARED / "oracles" / "asm" / MESA[gen]).glob("send*.asm")):
            texts = [" ".join(text.split()) for text in path.read_text().split("};") if text.strip()]
            pairs += zip(texts, path.with_suffix(".expected").read_text().splitlines(), strict=True)
    for text, code in pairs:
        word = bytes.fromhex(code.replace(" ", ""))
        unit = re.search(r"([a-z][\w:/ ]*?) MsgDesc:", text.replace("0x", "#"))
        if "MsgDesc: indirect" in text or not unit:
            continue
        sfid = word[15] & 15 if gen in GENERATIONS[:2] else word[3] & 15
        said = re.search(r"MsgDesc: (.*?)\s*mlen", text)
        lengths = re.search(r"mlen (\d+)(?: ex_mlen (\d+))? rlen (\d+)", text)
        assert said and lengths
        descriptor = int.from_bytes(word[12:], "little")
        assert (descriptors.mlen(descriptor, gen), descriptors.rlen(descriptor, gen)) == (int(lengths[1]), int(lengths[3])), text
        name = next(name for name in sorted(UNITS, key=len, reverse=True) if unit[1].endswith(name))
        yield Send(gen, sfid, descriptor, name, said[1])


@needs_shared("oracles/asm")
@pytest.mark.parametrize("gen", COMPARED)
def test_mesa_agrees(gen: float) -> None:
    count: Counter[str] = Counter()
    for send in sends(gen):
        assert send.sfid == UNITS[send.unit], send
        found = must(send.sfid, send.descriptor, gen)
        assert descriptors.problems(found) == [] or send.unit == "render", (send, descriptors.problems(found))
        check(send, found)
        count[found.name] += 1
    assert count.total() == COMPARED[gen], count


def check(send: Send, found: Descriptor) -> None:
    """Everything the text names stands in the fields."""
    said, values = send.said, found.values
    surface = re.search(r"Surface = (\d+)", said)
    if surface:
        assert values.binding_table_index == int(surface[1]), send
    sampler = re.search(r"Sampler = (\d+)", said)
    if sampler:
        assert values.sampler_index == int(sampler[1]), send
    checks = {
        "sampler": check_sampler,
        "urb": check_urb,
        "render": check_render,
        "write": check_render,
        "read": check_render,
        "data": check_data,
        "hdc0": check_data,
        "dp data 1": check_data_1,
        "hdc1": check_data_1,
        "const": check_constant,
        "hdc:ro": check_constant,
        "pi": check_interpolator,
        "pixel interp": check_interpolator,
        "math": check_math,
    }
    if send.unit in checks:
        checks[send.unit](send, found)
    else:
        assert found.name == {"gateway": "barrier"}.get(send.unit, "dereference_resource"), send


def check_sampler(send: Send, found: Descriptor) -> None:
    numbers = re.match(r"\((\d+), (\d+), (\d+), \)", send.said)
    if numbers:
        values = (found.values.binding_table_index, found.values.sampler_index, found.values.message_type)
        assert values == tuple(map(int, numbers.groups())), send
        return
    name, mode = send.said.split()[:2]
    assert found.name == name and label(found, "simd_mode") == mode.lower(), send


def check_urb(send: Send, found: Descriptor) -> None:
    said, values = send.said.split(), found.values
    assert values.global_offset == int(said[0]), send
    flags = {
        "interleave": "swizzle_control",
        "complete": "complete",
        "used": "used",
        "per-slot": "per_slot_offset_present",
        "masked": "channel_mask_present",
    }
    for word, field in flags.items():
        assert bool(getattr(values, field, 0)) == (word in said), send
    operation = [word.lower() for word in said[1:] if word not in flags]
    assert found.name == "_".join(["urb", *operation]).replace("urb_urb", "urb"), send


def check_render(send: Send, found: Descriptor) -> None:
    said = send.said
    known = {
        "RT write": "render_target_write",
        "RT read": "render_target_read",
        "typed atomic op": "typed_atomic",
        "typed surface": "typed_surface_",
        "OWord Dual Block Read": "oword_dual_block_read",
        "OWord dual block write": "oword_dual_block_write",
        "OWord Block Read": "oword_block_read",
    }
    assert next(found.name.startswith(name) for text, name in known.items() if said.startswith(text)), send
    control = re.search(r"MsgCtrl = 0x(\d+)", said)
    if control:  # printed in decimal, whatever the prefix says
        wide = 6 if send.unit == "render" else 3
        assert send.descriptor >> 8 & (1 << wide) - 1 == int(control[1]), send
    if said.startswith("RT write"):
        kinds = {"": "", "/DualSrcLow": "_dual_source_low", "/DualSrcHigh": "_dual_source_high", "/RepData": "_replicated"}
        kind = re.match(r"RT write SIMD(\d+)(\S*)", said)
        assert kind and label(found, "message_subtype") == f"simd{kind[1]}{kinds[kind[2]]}", send
        assert bool(found.values.last_render_target) == ("LastRT" in said), send


def check_data(send: Send, found: Descriptor) -> None:
    if send.descriptor >> 18 & 1:  # Mesa names no scratch block: it says that the type is wrong, or reads only the type's low four bits
        assert found.name.startswith("scratch_block_"), send
        return
    said = re.match(r"\( DC ([\w ]+), (\d+), +(\w+)\)", send.said)
    assert said, send
    name = said[1].lower().replace("oword ", "oword_").replace("mfence", "memory_fence").replace(" ", "_")
    assert found.name == name and found.values.binding_table_index == int(said[2]), send
    if said[3].isdigit():
        assert send.descriptor >> 8 & 0x3F == int(said[3]), send
    else:
        assert label(found, "operation") == said[3], send


def check_data_1(send: Send, found: Descriptor) -> None:
    said = re.match(r"\( (?:DC )?([\w ]+), Surface = \d+,(?: SIMD(\w+),)? (?:Mask = )?(\w+)\)", send.said)
    assert said, send
    name, four = re.subn(" 4x2", "", said[1].removesuffix(" op"))
    assert found.name == name.replace(" ", "_") + "_simd4x2" * four, send
    if four:
        assert said[2] is None, send
    elif "simd_mode" in found.values._fields:
        assert label(found, "simd_mode") == f"simd{said[2]}", send
    elif "atomic" in found.name:
        assert label(found, "slot_group") == {"16": "low_8", "8": "high_8"}[said[2]], send  # Mesa reads the slot group as a SIMD mode
    else:
        assert label(found, "slot_group") == {"16": "low_8", "8": "high_8", "4x2": "simd4x2"}[said[2]], send
    assert found.values.channel_mask == int(said[3], 16) if "0x" in said[3] else label(found, "operation") == said[3], send


def check_constant(send: Send, found: Descriptor) -> None:
    numbers = re.match(r"\((\d+), (\d+), (\d+), \d+\)", send.said)
    assert numbers and (found.values.binding_table_index, found.values.data_blocks, found.values.message_type) == tuple(
        map(int, numbers.groups())
    ), send


def check_interpolator(send: Send, found: Descriptor) -> None:
    said = re.match(r"\((\w+), (\w+), (0x\w+)\)", send.said)
    kinds = {
        "per_message_offset": "shared_offset",
        "sample_position": "sample_position",
        "per_slot_offset": "per_slot_offset",
        "centroid": "centroid",
    }
    assert said and found.name == f"interpolate_{kinds[said[2]]}" and found.values.message_data == int(said[3], 16), send
    assert label(found, "interpolation_mode").startswith(said[1]), send


def check_math(send: Send, found: Descriptor) -> None:
    function, *flags = send.said.split()
    assert label(found, "function") == function.replace("intdiv", "int_div_quotient"), send
    assert (found.values.saturate, found.values.integer_type, found.values.data_type) == tuple(
        word in flags for word in ("sat", "signed", "scalar")
    ), send


# -- iga64 on OpenCL kernels ---------------------------------------------------------------------------------------

GPUS = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
IGA = re.compile(r"sendsc? \(|sendc? \(")
SAYS = re.compile(r"(0x[0-9A-F]+)\s+(0x[0-9A-F]+)\s.*// wr:(\d+)(h?)\+(\d+), rd:(\d+); ([\w.]+)(?:; (.*))?$")
UNIT = {"hdc.dc0": "data_cache_0", "hdc.dc1": "data_cache_1", "spawner": "thread_spawner"}
WORDS = {
    "gathering read": "scattered_read",
    "scattering write": "scattered_write",
    "signal barrier": "barrier",
    "end of thread": "dereference_resource",
    "SLM fence": "memory_fence",
    "global fence": "memory_fence",
    "oword aligned block": "oword_unaligned_block",
    "a64 unaligned oword block": "a64_oword_block",
    "sample with lod forced to 0": "sample_lz",
    "sample override LOD": "sample_l",
    "untyped a64 atomic int32": "a64_untyped_atomic",
    "untyped atomic int32": "untyped_atomic",
}  # where iga64 speaks otherwise


@needs_shared("kernels")
def test_iga64_agrees_on_kernels() -> None:
    count = 0
    for path in sorted((SHARED / "kernels").glob("*/*/*.asm")):
        gen = GPUS[path.parent.name]
        for line in path.read_text().splitlines():
            if IGA.search(line):
                agrees(line, gen, path)
                count += 1
    assert count > 5000


def agrees(line: str, gen: float, path: Path) -> None:
    said = SAYS.search(line)
    assert said, line
    sfid, descriptor, text = int(said[1], 16) & 15, int(said[2], 16), said[8] or ""
    found = must(sfid, descriptor, gen)
    assert (found.mlen, found.header, found.rlen) == (int(said[3]), said[4] == "h", int(said[6])), (path, line)
    assert found.function == UNIT.get(said[7], said[7]) and descriptors.problems(found) == [], (path, line, descriptors.problems(found))
    more = descriptors.extended(sfid, int(said[1], 16), gen)
    assert (more.extended_message_length if more else 0) == int(said[5]), (path, line)
    for words, name in WORDS.items():
        text = text.replace(words, name)
    assert found.name in text.replace(" ", "_"), (path, line, found.name)
    channels = re.search(r" with (x?y?z?w?)$", text)
    if channels:
        assert label(found, "channel_mask") == channels[1].translate(str.maketrans("xyzw", "rgba")), (path, line)
    size = re.search(r" (8|16|32)b$", text)
    if size:
        field = "data_elements" if found.name.startswith("a64") else "data_size"
        assert 8 << getattr(found.values, field) == int(size[1]), (path, line)


# -- the Broadwell manual's descriptors ----------------------------------------------------------------------------

MANUAL = SHARED / "manuals" / "bdw_fields.json"
PORTS = {"MSDO": 10, "MSD1": 12, "MSDRTW": 5, "MSDCC": 9, "MSDMEMFENCE": 10}
MNEMONIC = re.compile(r"(MSD(?:[1O][RW]|[ _]CC|_RTW|_MEMFENCE)[\w ]*?) ?- (.*)")
LOST = {"MSD1RA64HWB": 3 << 11}  # the scan lost the subtype's row (BDW 15123-15146)
SPLIT = {(18, 18), (17, 14), (10, 8), (9, 8)}  # one field of ours, or several: type with the legacy bit, line stride, SIMD modes
DEFAULT = re.compile(r"([0-9A-FOT]+)h")


class Section(NamedTuple):
    mnemonic: str
    title: str
    descriptor: int  # what the manual's defaults add up to
    fields: list[tuple[int, int, str]]


def sections() -> Iterator[Section]:
    """The message descriptors of manual 000 as its tables were read; a letter O or T in a number is a 0 or 1 of the scan."""
    for section in json.loads(MANUAL.read_text()):
        text = " ".join(section["titles"])
        mnemonic = MNEMONIC.search(text)
        if not mnemonic:
            assert "MSD" not in text, text
            continue
        descriptor, fields = 0, []
        for field in section["fixed"]:
            default = DEFAULT.match(field["default"] or "")
            fields.append((field["hi"], field["lo"], field["name"]))
            if default and field["name"] != "Reserved" and field["format"] == "Opcode":
                descriptor |= int(default[1].replace("O", "0").replace("T", "1"), 16) << field["lo"]
        name = re.sub("[ _]", "", mnemonic[1])
        yield Section(name, mnemonic[2], descriptor | LOST.get(name, 0), fields)


def expected(section: Section) -> str:
    """Our name for a message of the manual."""
    title = section.title.split(" MSD")[0].lower()
    a64 = "a64_" if "a64" in title else ""
    four = "_simd4x2" if "4x2" in section.mnemonic else ""
    for words, name in {"typed atomic integer": "typed_atomic", "atomic counter": "atomic_counter"}.items():
        if words in title:
            return f"{a64}{'un' if 'untyped' in title else ''}{name}{four}"
    if "render target write" in title:
        return "render_target_write"
    for words, name in {"constant cache oword": "constant_oword", "media transpose": "transpose", "oword unaligned": "oword_unaligned",
                        "unaligned oword": "oword_unaligned"}.items():  # fmt: skip
        title = title.replace(words, name)
    return title.replace("constant cache", "constant").replace(" ", "_")


@needs_shared("manuals/bdw_fields.json")
def test_the_broadwell_manual_agrees() -> None:
    count = 0
    for section in sections():
        sfid = next(number for prefix, number in PORTS.items() if section.mnemonic.startswith(prefix))
        found = must(sfid, section.descriptor, 8)
        assert found.name == expected(section), section
        ours = {bits for field in found.layout.fields for bits in field.pieces} | SPLIT
        for high, low, name in section.fields:
            assert name == "Reserved" or (high, low) in ours, (section.title, high, low, name)
        count += 1
    assert count == 73
