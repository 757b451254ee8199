"""`softgen disasm FILE`: EU machine code as text, from raw code, compiled OpenCL programs, captures, AUB files and error states."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from softgen.errors import DecodeError, UsageError
from softgen.eu import binary
from softgen.eu.check import restrictions as check
from softgen.eu.encoding import program
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.text import dialect
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import Progress, complain, counted
from softgen.inspect.cli.source import read_bytes
from softgen.inspect.decode.kernels import kernels
from softgen.trace.file import START, looks_like_trace, open_trace

EXAMPLE = """examples:
  softgen disasm kernel.bin                         every kernel of an OpenCL binary, in IGA's dialect
  softgen disasm --gpu ivb code.dat --address --hex raw code, with addresses and bytes
  softgen disasm tests/data/kbl-vk-compute --check  the kernels of a capture, and broken restrictions
  softgen disasm --gpu kbl code.dat --json | jq .opcode

exit codes: 0 fine, 1 nothing to show or --check found something, 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("disasm", description="Disassemble EU machine code; softgen asm turns the text into the same bytes.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("file", help="raw code, ocloc's .bin, capture directory, AUB file or error state; - for standard input")
    parser.add_argument("--gpu", help="the GPU the code is for, whatever the file says; needed for raw code only (softgen gpus lists them)")
    parser.add_argument("--syntax", choices=dialect.DIALECTS, help="dialect (default: iga where it covers the GPU, from 7.5 on, else mesa)")
    parser.add_argument("--kernel", metavar="NAME", help="one kernel only: its name in a compiled program, its address in a capture")
    parser.add_argument("--check", action="store_true", help="list the restrictions that the code breaks")
    parser.add_argument("--address", action="store_true", help="addresses, as comments before the instructions")
    parser.add_argument("--hex", action="store_true", help="bytes, as comments before the instructions")
    parser.add_argument("--json", action="store_true", help="one JSON object per instruction and line")


@dataclass(frozen=True)
class Code:
    """Machine code of one kernel."""

    name: str  # as --kernel selects it; "" for raw code
    title: str
    gen: float
    code: bytes
    start: int = 0  # the address of its first byte


def run(args: argparse.Namespace) -> int:
    there = sources(args)
    found = [code for code in there if args.kernel in (None, code.name)]
    if args.kernel is not None and not found:
        known = ", ".join(code.name for code in there if code.name)
        raise UsageError(f"{args.file}: no kernel is called {args.kernel!r}; there are {known or 'none with a name'}")
    broken = 0
    write = sys.stdout.write
    for syntax, programs in by_syntax(found, args.syntax):
        listing = ProgramListing(args, syntax, programs)
        for line in listing.lines():
            write(line)
        broken += listing.broken
    if args.check and found and not args.json:
        print(f"// {counted(broken, 'restriction') if broken else 'no restrictions'} broken")
    return 1 if not found or args.check and broken else 0


def by_syntax(programs: list[Code], syntax: str | None) -> Iterator[tuple[str, list[Code]]]:
    """Kernels grouped by generation, of which an archive may hold several; each group is one text."""
    gens = list(dict.fromkeys(code.gen for code in programs))
    for gen in gens:
        yield dialect.select_dialect(syntax, gen), [code for code in programs if code.gen == gen]


# -- where the code is ---------------------------------------------------------------------------------------------


def sources(args: argparse.Namespace) -> list[Code]:
    gen = find(args.gpu).generation.number if args.gpu is not None else None
    if args.file != "-" and is_trace(Path(args.file)):
        return of_trace(args.file, args.gpu)
    name, data = read_bytes(args.file)
    if not data:
        raise DecodeError(f"{name}: is empty")
    if binary.is_binary(data[:8]):
        return list(of_binary(data, name, gen))
    if gen is None:
        raise UsageError(f"{name}: is no compiled program, capture or AUB file; for raw code, name its GPU with --gpu")
    return [Code("", "", gen, data)]


def is_trace(path: Path) -> bool:
    """Whether a path is a capture directory, or a file that begins as a trace; these may be larger than code is."""
    if not path.is_file():
        return path.is_dir()
    try:
        with path.open("rb") as file:
            return looks_like_trace(file.read(START))
    except OSError:  # read_bytes says why
        return False


def of_binary(data: bytes, name: str, gen: float | None) -> Iterator[Code]:
    for kernel in binary.kernels(data, name):
        known = gen or kernel.gen
        if known is None:
            raise UsageError(f"{name}: {kernel.name} is for a GPU softgen does not know; name one with --gpu")
        width = f", SIMD{kernel.simd}" if kernel.simd else ""
        member = f", member {kernel.member}" if kernel.member else ""
        yield Code(kernel.name, f"kernel {kernel.name}{width}, gen {known:g}, {len(kernel.code)} bytes{member}", known, kernel.code)


def of_trace(file: str, gpu: str | None) -> list[Code]:
    trace = open_trace(file, gpu)
    found = []
    with Progress("commands decoded") as progress:
        for kernel in kernels(trace, progress.step):
            stages = " ".join(kernel.stages)
            if not kernel.code:
                complain(f"{file}: kernel of {stages} at {kernel.address:#x}: {kernel.problem}")
                continue
            ends = "" if kernel.ended else ", which does not end its thread"
            title = f"kernel of {stages} at {kernel.address:#x}, gen {trace.device.generation.number:g}, {len(kernel.code)} bytes{ends}"
            found.append(Code(f"{kernel.address:#x}", title, trace.device.generation.number, kernel.code, kernel.address))
    if not found:
        complain(f"{file}: no kernel is pointed to")
    return found


# -- how it is shown -----------------------------------------------------------------------------------------------


class ProgramListing:
    """Programs of one generation."""

    def __init__(self, args: argparse.Namespace, syntax: str, programs: list[Code]) -> None:
        self.args, self.programs, self.broken = args, programs, 0
        self.items = [list(program.instructions(code.code, code.gen)) for code in programs]
        self.writer = dialect.ListingWriter(syntax, programs[0].gen, (line[2] for lines in self.items for line in lines))

    def lines(self) -> Iterator[str]:
        if not self.args.json:
            yield self.writer.head()
        for number, (code, items) in enumerate(zip(self.programs, self.items, strict=True)):
            show = self.as_json if self.args.json else self.as_text
            if code.title and not self.args.json:
                yield ("\n" if number else "") + f"// {code.title}\n"
            yield from show(code, items)

    def as_text(self, code: Code, items: list[program.ProgramLine]) -> Iterator[str]:
        last, end = self.writer.end(items), sum(size for _, size, _ in items)
        for row in self.writer.rows(items):
            yield from (f"{name}:\n" for name in row.labels)
            comment = f" // {row.comment}" if row.comment else ""
            yield f"{self.before(code, row)}{row.text}{comment}\n"
            for restriction in self.violations(row.instruction):
                yield f"// ^ restriction {restriction}\n"
        if last:
            yield f"{last}:\n"
        yield dialect.trailing_line(code.code[end:])

    def before(self, code: Code, row: dialect.ListingLine) -> str:
        """Address and bytes as a comment, so that the text can be assembled."""
        parts = [f"{code.start + row.offset:#06x}"] if self.args.address else []
        if self.args.hex:
            parts.append(f"{code.code[row.offset : row.offset + row.size].hex(' ', 4):35}")
        return f"/* {'  '.join(parts)} */ " if parts else ""

    def violations(self, inst: Instruction) -> list[check.Restriction]:
        found = check.check(inst) if self.args.check else []
        self.broken += len(found)
        return found

    def as_json(self, code: Code, items: list[program.ProgramLine]) -> Iterator[str]:
        end = sum(size for _, size, _ in items)
        for row in self.writer.rows(items):
            found: dict[str, Any] = {"kernel": code.name} if code.name else {}
            found |= {"offset": row.offset} | ({"address": code.start + row.offset} if code.start else {})
            found |= {"bytes": code.code[row.offset : row.offset + row.size].hex(), "opcode": row.instruction.opcode or None}
            found |= {"fields": fields_of(row.instruction), "text": row.text.strip()}
            found |= {"message": row.comment} if row.comment else {}
            found |= {"labels": list(row.labels)} if row.labels else {}
            if self.args.check:
                broken = self.violations(row.instruction)
                found["restrictions"] = [{"number": rule.number, "name": rule.name, "says": rule.says} for rule in broken]
            yield json.dumps(found) + "\n"
        if rest := code.code[end:]:
            yield (
                json.dumps({"offset": end, "bytes": rest.hex(), "opcode": None, "fields": {}, "text": dialect.trailing_line(rest).strip()})
                + "\n"
            )


SKIPPED = frozenset({"gen", "opcode"})  # printed apart


def fields_of(record: Instruction | Operand) -> dict[str, Any]:
    """The fields of a record that differ from their defaults."""
    found: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name not in SKIPPED and (field.default is MISSING or value != field.default or field.name == "exec_size"):
            found[field.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Operand):
        return fields_of(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
