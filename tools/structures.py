"""What C and Python share: Python modules made of C headers while softgen is built (setup.py).

A header is the one place where a structure, an enumeration or a constant is written. The module beside it has them for Python: guard_h.py
those of guard.h, a ctypes class FaultRecord for `struct fault_record`, an IntEnum for an enumeration with a name, numbers for one
without. Sizes, offsets and values are the compiler's, out of the debug information that it writes (DWARF); comments come along.

Pointers are addresses in Python, c_uint64; a `const char *` holds bytes, c_char_p. What has no such form is an error of the build.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

# The headers that Python has too.
HEADERS = (
    "softgen/blitter/blit.h",
    "softgen/driver/shim/shim.h",
    "softgen/eu/native.h",
    "softgen/lanes/bytecode/assembly.h", "softgen/lanes/bytecode/bytecode.h", "softgen/lanes/bytecode/memory.h",
    "softgen/latches.h", "softgen/walk.h",
    "softgen/media/object_actor.h",
    "softgen/memory/graphics_memory.h", "softgen/memory/guard.h", "softgen/memory/read_set.h",
    "softgen/shared_functions/avs/scaler.h", "softgen/shared_functions/context.h", "softgen/shared_functions/dataport/media_block.h",
    "softgen/shared_functions/pixel_backend/blocks.h", "softgen/shared_functions/pixel_dispatch.h",
    "softgen/streamer/latch_rules.h", "softgen/streamer/write_actors.h",
    "softgen/surface/astc.h", "softgen/surface/detile.h",
    "softgen/threads/native/scheduler.h", "softgen/threads/native/tables.h", "softgen/threads/native/threads.h",
    "softgen/three_d/clip_setup/geometry.h", "softgen/three_d/draw/draw.h", "softgen/three_d/draw/draw_actor.h",
    "softgen/three_d/geometry_shader/geometry_shader.h", "softgen/three_d/stream_out/stream_output.h",
    "softgen/three_d/tessellation/tessellation.h", "softgen/three_d/tessellation/tessellator.h", "softgen/three_d/three_d.h",
    "softgen/three_d/vertices/vertex_fetch.h", "softgen/three_d/visibility/recording.h",
)  # fmt: skip
# Python names of structures whose own name a class of the package has.
NAMES = {"bins_stage": "BinStagePlan", "clip_stage": "ClipStagePlan", "draw": "DrawStruct", "draw_record": "RecordStruct",
         "geometry": "GeometryStruct", "setup_stage": "SetupStagePlan", "stage": "StageStruct"}  # fmt: skip
DEBUG = ("-g", "-gdwarf-5", "-O0", "-fno-eliminate-unused-debug-types", "-x", "c", "-c")
WRAPPERS = {"DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_atomic_type", "DW_TAG_restrict_type"}
KINDS = ("DW_TAG_structure_type", "DW_TAG_enumeration_type", "DW_TAG_union_type")
FLOATS = {4: "c_float", 8: "c_double"}
FLOAT, SIGNED = 4, (5, 6, 13)  # DW_ATE_float; DW_ATE_signed, DW_ATE_signed_char
INDENT = "    "


def included(sources: Sequence[str]) -> list[str]:
    """The headers that C files include, also through others; paths are relative to the current folder."""
    found, left = set[Path](), [Path(source) for source in sources]
    while left:
        file = left.pop()
        named = re.findall(r'^#include "(.+)"', file.read_text("utf-8"), re.MULTILINE)
        new = {(file.parent / name).resolve().relative_to(Path.cwd()) for name in named} - found
        found |= new
        left += new
    return sorted(map(str, found))


def module_path(header: Path) -> Path:
    """Where the Python side of a header is."""
    return header.with_name(f"{header.stem}_h.py")


def write(root: Path, header: Path, compiler: Sequence[str], into: Path) -> None:
    """Makes the module of a header, whose path is relative to the root; `into` is the root that it is written below."""
    path, text = module_path(into / header), module_text(root, header, compiler)
    if not path.is_file() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def module_text(root: Path, header: Path, compiler: Sequence[str]) -> str:
    """The text of that module."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "header.o")
        subprocess.run([*compiler, *DEBUG, str(header), "-o", str(made)], cwd=root, check=True)
        with made.open("rb") as file:
            return HeaderReader(root, header, ELFFile(file)).text()


class HeaderReader:
    """A header, as the compiler described it."""

    def __init__(self, root: Path, header: Path, elf: ELFFile) -> None:
        self.root, self.header, self.source = root, header, (root / header).read_text("utf-8")
        self.lines = self.source.splitlines()
        (self.unit,) = elf.get_dwarf_info().iter_CUs()
        program = elf.get_dwarf_info().line_program_for_CU(self.unit)
        folders = [item.decode() for item in program["include_directory"]]
        self.files = [(root / folders[item.dir_index] / item.name.decode()).resolve() for item in program["file_entry"]]
        self.imports: dict[str, set[str]] = {}  # names by module
        self.classes: dict[int, type[ctypes.Structure]] = {}

    def text(self) -> str:
        parts, enums = [], False
        own = [die for die in self.unit.get_top_DIE().iter_children()
               if die.tag in KINDS and "DW_AT_declaration" not in die.attributes and self._is_own(die)]  # fmt: skip
        for die in sorted(own, key=self._line):
            if die.tag == "DW_TAG_structure_type":
                parts.append("\n".join(self._structure(die)))
            elif die.tag == "DW_TAG_enumeration_type":
                enums |= "DW_AT_name" in die.attributes
                parts.append("\n".join(self._enumeration(die)))
            else:
                raise TypeError(f"{self.header}:{self._line(die)}: unions have no Python form")
        imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self.imports.items())]
        head = [f'"""{self.header.name} for Python, made of it when softgen is built (tools/structures.py): change the header."""', "",
                "import ctypes", *(["from enum import IntEnum"] if enums else []), "", *imports, *([""] if imports else [])]  # fmt: skip
        tail = ["", "", "# The header that this was made of: a C part is not loaded where it has changed (softgen/library.py).",
                f"HEADER = {self.header.name!r}", "TEXT = (", *(f"{INDENT}{line!r}" for line in self.source.encode().splitlines(True)), ")"]
        return "\n".join([*head, *parts, *tail, ""])

    # -- structures ---------------------------------------------------------------------------------------------------------------

    def _structure(self, die: DIE) -> Iterator[str]:
        name = self._name(die)
        yield f"\n\nclass {camel(name)}(ctypes.Structure):"
        yield f'{INDENT}"""{self._comment(die) or f"struct {name} of {self.header.name}."}"""'
        yield ""
        yield f"{INDENT}__slots__ = ()"
        yield f"{INDENT}_fields_ = ["
        members = list(self._members(die))
        lines = [self._line(member) for member in members]
        for member, line, following in zip(members, lines, [*lines[1:], 0], strict=True):
            comment = self._comment_behind(line) if line != following else ""
            yield f'{2 * INDENT}("{self._name(member)}", {self._type(self._target(member))[0]}),' + (f"  # {comment}" if comment else "")
        yield f"{INDENT}]"
        self._class(die)

    def _members(self, die: DIE) -> Iterator[DIE]:
        for member in die.iter_children():
            if "DW_AT_bit_size" in member.attributes or "DW_AT_name" not in member.attributes:
                raise TypeError(f"{self.header}:{self._line(die)}: bit fields and fields without a name have no Python form")
            yield member

    def _class(self, die: DIE) -> type[ctypes.Structure]:
        """The structure as ctypes lays it out, which has to be as the compiler does."""
        if die.offset not in self.classes:
            fields = [(self._name(member), self._type(self._target(member))[1]) for member in self._members(die)]
            made = type(camel(self._name(die)), (ctypes.Structure,), {"_fields_": fields})
            self.classes[die.offset] = made
            for member in self._members(die):
                if getattr(made, self._name(member)).offset != member.attributes["DW_AT_data_member_location"].value:
                    raise TypeError(f"{self.header}:{self._line(member)}: {self._name(member)} is elsewhere in C than ctypes has it")
            if ctypes.sizeof(made) != die.attributes["DW_AT_byte_size"].value:
                raise TypeError(f"{self.header}:{self._line(die)}: struct {self._name(die)} has another size in C than in ctypes")
        return self.classes[die.offset]

    # -- types: how Python writes one, and what it is --------------------------------------------------------------------------------

    def _type(self, die: DIE) -> tuple[str, Any]:
        while die.tag in WRAPPERS:
            die = self._target(die)
        size = die.attributes["DW_AT_byte_size"].value if "DW_AT_byte_size" in die.attributes else 0
        match die.tag:
            case "DW_TAG_pointer_type":
                return self._plain("c_char_p" if self._is_text(die) else "c_uint64")
            case "DW_TAG_base_type" if self._name(die) == "char":
                return self._plain("c_char")
            case "DW_TAG_base_type" if die.attributes["DW_AT_encoding"].value == FLOAT:
                return self._plain(FLOATS[size])
            case "DW_TAG_base_type" if die.attributes["DW_AT_encoding"].value in SIGNED:
                return self._plain(f"c_int{8 * size}")
            case "DW_TAG_base_type":
                return self._plain(f"c_uint{8 * size}")
            case "DW_TAG_enumeration_type":
                return self._type(self._target(die))
            case "DW_TAG_structure_type":
                return self._shared_name(die), self._class(die)
            case "DW_TAG_array_type":
                return self._array(die)
        raise TypeError(f"{self.header}: {die.tag} has no Python form")

    def _plain(self, name: str) -> tuple[str, Any]:
        return f"ctypes.{name}", getattr(ctypes, name)

    def _array(self, die: DIE) -> tuple[str, Any]:
        text, kind = self._type(self._target(die))
        for part in reversed(list(die.iter_children())):
            if "DW_AT_upper_bound" not in part.attributes:
                raise TypeError(f"{self.header}: an array without a length has no Python form")
            count = part.attributes["DW_AT_upper_bound"].value + 1
            text, kind = f"{text} * {count}" if "*" not in text else f"({text}) * {count}", kind * count
        return text, kind

    def _is_text(self, pointer: DIE) -> bool:
        """Whether it points at `const char`."""
        kinds = [pointer]
        while "DW_AT_type" in kinds[-1].attributes:
            kinds.append(self._target(kinds[-1]))
        return [die.tag for die in kinds[1:]] == ["DW_TAG_const_type", "DW_TAG_base_type"] and self._name(kinds[-1]) == "char"

    def _shared_name(self, die: DIE) -> str:
        """The class of a structure, imported if another header has it."""
        name = camel(self._name(die))
        if not self._is_own(die):
            module = module_path(self._file(die).relative_to(self.root.resolve())).with_suffix("")
            self.imports.setdefault(".".join(module.parts), set()).add(name)
        return name

    # -- enumerations -----------------------------------------------------------------------------------------------------------------

    def _enumeration(self, die: DIE) -> Iterator[str]:
        values = {self._name(item): item.attributes["DW_AT_const_value"].value for item in die.iter_children()}
        if "DW_AT_name" not in die.attributes:
            yield from (f"{name} = {value}" for name, value in values.items())
            return
        words = zip(*(name.split("_")[:-1] for name in values), strict=False)
        shared = len(list(takewhile(lambda found: len(set(found)) == 1, words)))  # words that all names begin with
        lines = [self._line_of(name, self._line(die)) for name in values]
        yield f"\n\nclass {camel(self._name(die))}(IntEnum):"
        yield f'{INDENT}"""{self._comment(die) or f"enum {self._name(die)} of {self.header.name}."}"""'
        yield ""
        for (name, value), line, following in zip(values.items(), lines, [*lines[1:], 0], strict=True):
            comment = self._comment_behind(line) if line != following else ""
            yield f"{INDENT}{name.split('_', shared)[-1]} = {value}" + (f"  # {comment}" if comment else "")

    # -- of all ---------------------------------------------------------------------------------------------------------------------------

    def _comment(self, die: DIE) -> str:
        """What the header says above a structure or an enumeration, or behind one of a single line."""
        last = self._line(die) - 2
        if last < 0 or not self.lines[last].endswith("*/"):
            return self._comment_behind(self._line(die))
        first = next(number for number in range(last, -1, -1) if "/*" in self.lines[number])
        return "\n".join([_words(self.lines[first]), *(f"{INDENT}{_words(line)}".rstrip() for line in self.lines[first + 1 : last + 1])])

    def _comment_behind(self, line: int) -> str:
        """The comment at the end of a line, which may go on in those below."""
        _, begun, text = self.lines[line - 1].rpartition("/*")
        if not begun:
            return ""
        while "*/" not in text:
            text, line = f"{text.rstrip()} {self.lines[line].strip().lstrip('* ')}", line + 1
        return text.partition("*/")[0].strip()

    def _file(self, die: DIE) -> Path:
        return self.files[die.attributes["DW_AT_decl_file"].value]

    def _is_own(self, die: DIE) -> bool:
        return self._file(die) == (self.root / self.header).resolve()

    def _name(self, die: DIE) -> str:
        return str(die.attributes["DW_AT_name"].value.decode())

    def _line(self, die: DIE) -> int:
        return int(die.attributes["DW_AT_decl_line"].value)

    def _line_of(self, name: str, start: int) -> int:
        """The first line with a name, from one on; the compiler gives none for the names of an enumeration."""
        return next(number for number, line in enumerate(self.lines[start - 1 :], start) if re.search(rf"\b{name}\b", line))

    def _target(self, die: DIE) -> DIE:
        return die.get_DIE_from_attribute("DW_AT_type")


def camel(name: str) -> str:
    """How Python writes a name of C: fault_record is FaultRecord."""
    return NAMES.get(name) or "".join(word.capitalize() for word in name.split("_"))


def _words(line: str) -> str:
    """A line of a comment without what marks it as one."""
    return re.sub(r"^\s*(/?\*(?!/))?\s?|\s*\*/$", "", line)
