"""iga64, the witness for IGA's dialect, and random instructions to show it.

Pinned: what the differences lists say was found with Debian's libigc-tools 1.0.12504. `absent()` says why the witness cannot be heard.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from softgen.eu.encoding.encode import encode
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.text.iga.format import normal

PACKAGE, VERSION = "libigc-tools", "1.0.12504"
PLATFORMS = {7.5: "7p5", 8.0: "8", 9.0: "9", 11.0: "11"}

_ERROR_BYTE = re.compile(r"byte offset 0x([0-9A-Fa-f]+): error")
_ERROR_LINE = re.compile(r"^line (\d+)\.\d+: error", re.MULTILINE)
_LABEL_LINE = re.compile(r"L\w*:$")


def absent() -> str:
    """Why there is no witness; nothing where it is there and the one that is meant."""
    if shutil.which("iga64") is None:
        return f"iga64 is not installed ({PACKAGE} {VERSION})"
    if shutil.which("dpkg-query") is None:
        return "the version of iga64 cannot be told without dpkg-query"
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE], capture_output=True, text=True, check=False).stdout
    return "" if found.startswith(f"{VERSION}.") else f"iga64 is of {PACKAGE} {found or 'of unknown version'}, not {VERSION}"


def plain(line: str) -> str:
    """A line without comments, with single blanks."""
    return " ".join(re.sub(r"//.*|/\*.*?\*/", "", line).split())


def _run(gen: float, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["iga64", f"-p={PLATFORMS[gen]}", *map(str, words)], capture_output=True, text=True, check=False)


def disassemble(data: bytes, gen: float) -> tuple[list[str], set[int]]:
    """A line for each instruction, and the byte offsets of those it complains about."""
    with tempfile.TemporaryDirectory() as folder:
        code, text = Path(folder, "code.bin"), Path(folder, "code.txt")
        code.write_bytes(data)
        found = _run(gen, "-d", "-Xprint-hex-floats", "--output-on-fail", code, "-o", text)
        lines = [stripped for line in text.read_text().splitlines() if (stripped := plain(line)) and not _LABEL_LINE.match(stripped)]
    return lines, {int(digits, 16) for digits in _ERROR_BYTE.findall(found.stderr)}


def assemble(text: str, gen: float) -> tuple[bytes | None, list[int]]:
    """The bytes, or the numbers of the lines that were refused."""
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder, "code.asm"), Path(folder, "code.bin")
        source.write_text(text)
        found = _run(gen, "-a", source, "-o", code)
        if code.exists() and found.returncode == 0:
            return code.read_bytes(), []
    return None, sorted({int(digits) for digits in _ERROR_LINE.findall(found.stderr + found.stdout)})


# -- random instructions that IGA has words for ------------------------------------------------------------------------

REGIONS = [(8, 8, 1), (16, 16, 1), (4, 4, 1), (0, 1, 0), (2, 1, 0), (16, 8, 2), (32, 8, 4), (1, 1, 0), (4, 1, 0), (8, 4, 2), (2, 2, 1)]
ARCHITECTURE = [0x20, 0x21, 0x30, 0x31]  # acc0, acc1, f0, f1
IDENTITY = 0xE4


class Builder:
    """Random instructions of one opcode."""

    def __init__(self, row: Opcode, dice: random.Random) -> None:
        self.row, self.gen, self.dice = row, row.gen, dice

    def kinds(self) -> tuple[list[str], list[str]]:
        """Types that may stand together, as far as the encoding has them."""
        known = types.codes("register", self.gen)
        pairs = [(sorted(a & known.keys()), sorted(b & known.keys())) for a, b in self.row.legal]
        return self.dice.choice([pair for pair in pairs if all(pair)] or [(["ud"], ["ud"])])

    def sub(self, kind: str) -> int:
        size = types.size(kind)
        return self.dice.randrange(0, 32, max(size, 1)) // size * size if self.dice.random() < 0.3 else 0

    def destination(self, kind: str) -> Operand:
        dice = self.dice
        if "function" in self.row.takes:  # whole registers, direct
            return Operand("grf", kind, dice.randrange(128), horizontal=1)
        stride = dice.choice((1, 1, 1, 2, 4))
        chance = dice.random()
        if chance < 0.1:
            return Operand("grf", kind, indirect=True, address_sub=dice.randrange(8), offset=dice.randrange(-512, 512), horizontal=stride)
        if chance < 0.2:
            return Operand("arf", kind, dice.choice([0, *ARCHITECTURE]), horizontal=stride)
        return Operand("grf", kind, dice.randrange(128), self.sub(kind), horizontal=stride)

    def source(self, kind: str, place: int = 0) -> Operand:
        """Architecture registers only as the first source; addressed ones not in math."""
        dice, math = self.dice, "function" in self.row.takes
        vertical, width, horizontal = dice.choice(REGIONS)
        region: dict[str, Any] = {"vertical": vertical, "width": width, "horizontal": horizontal}
        if "modifiers" in self.row.takes:
            region |= {"negate": dice.random() < 0.2, "absolute": dice.random() < 0.2 and "bitwise" not in self.row.takes}
        if math and types.type_of(kind) and not types.size(kind) < 4 and kind not in ("f", "df"):
            region |= {"negate": False, "absolute": False}  # INT DIV takes none
        chance = 1.0 if math else dice.random()
        if chance < 0.1 or self.row.name == "movi":
            region["vertical"] = dice.choice((vertical, VXH))
            return Operand("grf", kind, indirect=True, address_sub=dice.randrange(8), offset=dice.randrange(-512, 512), **region)
        if chance < 0.2 and not place:
            return Operand("arf", kind, dice.choice(ARCHITECTURE), **region)
        return Operand("grf", kind, dice.randrange(128), self.sub(kind), **region)

    def immediate(self, kinds: list[str], wide: bool) -> Operand | None:
        known = [kind for kind in kinds if kind in types.codes("immediate", self.gen) and (wide or types.size(kind) <= 4)]
        if not known:
            return None
        kind = self.dice.choice(known)
        value = self.dice.getrandbits(8 * types.size(kind))
        return Operand("imm", kind, immediate=value * 0x10001 if types.size(kind) == 2 else value)

    def controls(self) -> dict[str, Any]:
        dice, takes = self.dice, self.row.takes
        found: dict[str, Any] = {"exec_size": dice.choice((1, 2, 4, 8, 8, 16, 16)), "quarter": dice.randrange(4),
                                 "no_mask": dice.random() < 0.3,
                                 "thread_control": dice.choice((0, 0, 0, 2)), "breakpoint": dice.random() < 0.1}  # fmt: skip
        predicated = "predicate" in takes and dice.random() < 0.4
        conditional = "condition" in takes and dice.random() < 0.4 and not ("select" in takes and predicated)
        if predicated:
            codes = (1, 6, 7) if self.row.form == "three_source" else (1, 1, 2, 3, 6, 9)  # align16 has channels for some
            found |= {"predicate": dice.choice(codes), "predicate_invert": dice.random() < 0.5}
        if conditional:
            found["condition"] = dice.choice((1, 2, 3, 4, 5, 6, 8, 9))
        if predicated or conditional:
            found |= {"flag": dice.randrange(2), "flag_sub": dice.randrange(2)}
        if self.row.form in ("basic", "three_source", "three_source_align1"):
            found |= {"no_dd_clear": dice.random() < 0.1, "no_dd_check": dice.random() < 0.1,
                      "saturate": "saturate" in takes and dice.random() < 0.2, "acc_write": dice.random() < 0.1}  # fmt: skip
        return found

    def build(self) -> Instruction:
        row = self.row
        bodies = {"basic": self.basic, "branch": self.branch, "send": self.send, "sends": self.send, "three_source": self.three,
                  "three_source_align1": self.three_align1}  # fmt: skip
        values = self.controls()
        if row.name in ("nop", "illegal"):
            values = {}
        if row.name in ("jmpi", "wait"):
            values |= {"exec_size": 1, "quarter": 0, "no_mask": True}
        body = bodies[row.form](values)
        return Instruction(row.gen, row.name, row.number, row.form, **{**values, **body})

    def basic(self, values: dict[str, Any]) -> dict[str, Any]:
        row, dice = self.row, self.dice
        if "dst" not in row.shape:
            return {}
        into, out = self.kinds()
        found: dict[str, Any] = {"dst": self.destination(dice.choice(into))}
        if row.name == "wait":
            register = Operand("arf", "ud", 0x90, 4 * dice.randrange(2))
            return {"dst": replace(register, horizontal=1), "sources": (register, Operand("arf", "ud"))}
        if "function" in row.takes:
            return found | self.math(values, into, out)
        sources = [self.source(dice.choice(out), place) for place in range(row.sources)]
        if row.name == "movi":
            sources[1:] = [Operand("arf", "ud")] * (row.sources - 1)
        elif row.name == "smov":
            sources[1] = Operand("imm", "uw", immediate=dice.getrandbits(16) * 0x10001)
        elif dice.random() < 0.3 or "wide" in row.takes:
            sources[-1] = self.immediate(out, row.sources == 1) or sources[-1]
        return found | {"sources": tuple(sources)}

    def math(self, values: dict[str, Any], into: list[str], out: list[str]) -> dict[str, Any]:
        dice = self.dice
        whole = out[0] in ("d", "ud")
        codes = [
            n for n in range(16) if (math_function := opcodes.math_function(n,
                self.gen)) and (math_function.name.startswith("int") == whole) and not math_function.macro
        ]
        code = dice.choice(codes)
        function = opcodes.math_function(code, self.gen)
        assert function is not None
        sources = [self.source(dice.choice(out), place) for place in range(function.sources)]
        return {"function": code, "sources": (*sources, *[Operand("arf", "ud")] * (2 - len(sources)))}

    def three(self, values: dict[str, Any]) -> dict[str, Any]:
        row, dice = self.row, self.dice
        into, out = self.kinds()
        shared = dice.choice(out)
        size = types.size(shared)
        values["align16"] = True
        values["exec_size"] = dice.choice((4, 8, 16))
        if "macro" in row.takes:
            dst = Operand("grf", dice.choice(into), dice.randrange(128), special=dice.randrange(9))
            return {"dst": dst, "sources": tuple(self.selected(dst.type) for _ in range(3))}
        dst = Operand("grf", dice.choice(into), dice.randrange(128), dice.choice((0, 16)), write_mask=0xF)
        sources = []
        for _ in range(3):
            replicate = dice.random() < 0.3 and size < 8
            sub = dice.randrange(0, 32, max(size, 4)) if replicate else dice.choice((0, 16))
            negate = "modifiers" in row.takes and dice.random() < 0.2
            sources.append(Operand("grf", shared, dice.randrange(128), sub, swizzle=IDENTITY, replicate=replicate, negate=negate))
        return {"dst": dst, "sources": tuple(sources)}

    def selected(self, kind: str) -> Operand:
        """A source with an accumulator selector."""
        dice = self.dice
        return Operand("grf", kind, dice.randrange(128), special=dice.randrange(9), negate=dice.random() < 0.2)

    def three_align1(self, values: dict[str, Any]) -> dict[str, Any]:
        row, dice = self.row, self.dice
        into, out = self.kinds()
        macro = "macro" in row.takes
        operands = []
        for place in range(4):
            kind = dice.choice(into if not place else out)
            where: dict[str, Any] = {"special": dice.randrange(9)} if macro else {"sub": dice.randrange(0, 32, 8)}
            region: dict[str, Any] = {"horizontal": dice.choice((1, 2)) if not place and not macro else 1}
            if place in (1, 2):
                region["vertical"] = 4 if macro else dice.choice((0, 2, 4, 8))
            negate = bool(place) and "modifiers" in row.takes and dice.random() < 0.2
            operands.append(Operand("grf", kind, dice.randrange(128), **where, **region, negate=negate))
        if row.name == "mad" and dice.random() < 0.3 and operands[3].type in ("w", "hf"):
            operands[3] = Operand("imm", operands[3].type, immediate=dice.getrandbits(16))
        return {"dst": operands[0], "sources": tuple(operands[1:])}

    def send(self, values: dict[str, Any]) -> dict[str, Any]:
        dice, split = self.dice, self.row.form == "sends"
        kind = dice.choice(("ud", "uw", "f", "d"))
        stride = 0 if split else 1
        dst = (
            Operand("arf", kind, 0, horizontal=stride)
            if dice.random() < 0.3
            else Operand("grf", kind, dice.randrange(128), horizontal=stride)
        )
        a = Operand("grf", "" if split else dice.choice(("ud", "f", "uw")), dice.randrange(128))
        found: dict[str, Any] = {"dst": dst, "sources": (a,), "sfid": dice.choice((2, 3, 5, 6, 10, 12)), "eot": dice.random() < 0.1}
        found["descriptor"] = Operand("arf", "ud", 0x10) if dice.random() < 0.2 else dice.getrandbits(29)
        if split:
            found |= {"sources": (a, Operand("grf", "", dice.randrange(128))), "extended": dice.randrange(16) << 6}
            if dice.random() < 0.2:
                found |= {"extended": Operand("arf", "ud", 0x10, 4 * dice.randrange(4)), "sfid": 0}
        return found

    def branch(self, values: dict[str, Any]) -> dict[str, Any]:
        from softgen.eu.text.iga.names import iga_words

        implied, dice = iga_words(self.gen).implied, self.dice
        how = dice.choice([item for item in ("label", "register") if (item, self.row.name) in implied])
        operands = []
        for item in implied[how, self.row.name]:
            operands.append(replace(item, file="grf", number=dice.randrange(128), sub=4 * dice.randrange(8))
                            if item.file == "said" else item)
        found: dict[str, Any] = {"dst": operands[0], "sources": tuple(operands[1:])}
        if how == "label":
            found |= {"jip": 0, "uip": 0 if "uip" in self.row.shape else None}
        if "branch_control" in self.row.takes:
            found["branch_control"] = dice.random() < 0.3
        return found


def legal(gen: float, each: int, seed: int = 1) -> Iterator[Instruction]:
    """Random instructions that IGA has words for, of every opcode."""
    dice = random.Random(f"{gen:g} {seed}")
    for row in opcodes.of_generation(gen):
        for _ in range(each):
            inst = Builder(row, dice).build()
            assert encode(normal(inst)) == encode(inst), inst
            yield inst
