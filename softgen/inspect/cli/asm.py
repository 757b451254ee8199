"""`softgen asm --gpu NAME FILE -o OUT`: assembles EU text."""

from __future__ import annotations

import argparse
import sys

from softgen.errors import UsageError
from softgen.eu.encoding import program
from softgen.eu.isa.labels import COMPACT
from softgen.eu.text import dialect
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import print_json
from softgen.inspect.cli.source import read_text
from softgen.inspect.output_file import write_file

EXAMPLE = """examples:
  softgen asm --gpu kbl kernel.asm -o kernel.dat           in the dialect it is written in: IGA's or Mesa's
  softgen asm --gpu ivb kernel.asm -o kernel.dat --compact compact encodings where they exist
  softgen disasm --gpu kbl a.dat | softgen asm --gpu kbl - -o b.dat

exit codes: 0 fine, 1 the text is wrong (file:line:column says where) or OUT cannot be written, 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("asm", description="Assemble EU text to raw machine code.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("file", help="the text; - for standard input")
    parser.add_argument("--gpu", required=True, help="which GPU the code is for (softgen gpus lists them)")
    parser.add_argument("-o", "--output", required=True, metavar="OUT",
                        help="output file, replaced if it exists; - for standard output")
    parser.add_argument("--compact", action="store_true", help="compact every instruction that has a compact form, and adjust jumps")
    parser.add_argument("--syntax", choices=dialect.DIALECTS, help="dialect (default: the one the text is in)")
    parser.add_argument("--json", action="store_true", help="say what was written, as one JSON object")


def run(args: argparse.Namespace) -> int:
    gen = find(args.gpu).generation.number
    if args.json and args.output == "-":
        raise UsageError("--json and the code cannot both go to standard output")
    name, text = read_text(args.file)
    code = dialect.read(text, gen, args.syntax, name, args.compact)
    if args.output == "-":
        sys.stdout.buffer.write(code)
    else:
        write_file(args.output, code)
    if args.json:
        sizes = [size for _, size, _ in program.instructions(code, gen)]
        short = sum(size == COMPACT for size in sizes)
        print_json({"output": args.output, "bytes": len(code), "instructions": len(sizes), "compact": short})
    return 0
