"""The decoded instruction: what a word of any generation says, with nothing of where its bits stood.

A code that means nothing reads as the first of its kind (a reserved stride as 0, a reserved file as arf, a reserved type as "").

`decode` makes it, `encode` reads it, both text dialects and everything that executes read it. Numbers are natural ones: sizes and
strides count elements, sub-registers count bytes. What no field says is kept in `residue`, so that no bit of a word is ever lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

Frozen = TypeVar("Frozen")

VXH = -1  # `Operand.vertical` where each row has an address register of its own: VxH, and Vx1 when the width is 1


@dataclass(frozen=True, slots=True)
class Operand:
    """One source or destination."""

    file: str  # "arf" "grf" "mrf" "imm"
    type: str  # a name of types.table; "" where the form has none, or the code means none
    number: int = 0  # register number; for arf the whole 8-bit code (0x20 = acc0)
    sub: int = 0  # byte offset within the register
    indirect: bool = False  # then address_sub (a0.n) and offset (signed bytes) count, not number and sub
    address_sub: int = 0
    offset: int = 0
    vertical: int = 0  # strides and width as numbers of elements
    width: int = 1
    horizontal: int = 0
    swizzle: int | None = None  # align16 sources: 8 bits, x lowest
    write_mask: int | None = None  # align16 destinations: 4 bits, x lowest
    replicate: bool = False  # three-source align16: one channel for all (RepCtrl)
    special: int | None = None  # madm and math macros: accumulator selector, 4 bits
    negate: bool = False
    absolute: bool = False
    immediate: int = 0  # the bits as encoded: 16, 32 or 64


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. A field a generation or form does not have keeps its default."""

    gen: float
    opcode: str  # name from opcodes.table; "" = no instruction, the number is in opcode_number
    opcode_number: int
    form: str  # "basic" "three_source" "three_source_align1" "send" "sends" "branch" "none"
    exec_size: int = 1  # 1 to 32
    align16: bool = False
    no_mask: bool = False
    mask_control_ex: bool = False  # G45
    no_dd_clear: bool = False
    no_dd_check: bool = False
    quarter: int = 0  # quarter control as encoded; G45: compression control
    nibble: int = 0
    thread_control: int = 0  # 0 normal, 1 atomic, 2 switch
    predicate: int = 0
    predicate_invert: bool = False
    condition: int = 0
    saturate: bool = False
    acc_write: bool = False
    branch_control: bool = False
    breakpoint: bool = False
    flag: int = 0
    flag_sub: int = 0
    function: int = 0  # math function
    sfid: int = 0  # shared function a send goes to
    base_mrf: int = 0  # G45 send
    eot: bool = False
    descriptor: int | Operand | None = None  # send: immediate, or a0.0
    extended: int | Operand | None = None  # extended descriptor, where sends have one
    dst: Operand | None = None
    sources: tuple[Operand, ...] = ()
    jip: int | None = None  # as encoded, in the generation's unit; None where absent
    uip: int | None = None
    pop: int | None = None
    compacted: bool = False  # came from, or shall become, 8 bytes
    residue: int = 0  # word == encode(all other fields) ^ residue
    absent: str = "ud"  # one-source instructions: the type written for the second source they do not have


def _maker(frozen: type[Frozen]) -> Callable[..., Frozen]:
    """A constructor six times as fast as that of a frozen dataclass, which sets each field through object.__setattr__: the fields are set
    on an open twin with the same slots, which then becomes the frozen class. All values are given, in order."""
    names = [field.name for field in fields(frozen)]  # type: ignore[arg-type]
    body = "".join(f"    self.{name} = {name}\n" for name in names)
    space: dict[str, Any] = {}
    exec(f"def __init__(self, {', '.join(names)}):\n{body}", space)
    twin: Any = type("Open" + frozen.__name__, (), {"__slots__": tuple(names), "__init__": space["__init__"]})

    def make(*values: Any) -> Frozen:
        instance = twin(*values)
        instance.__class__ = frozen
        made: Frozen = instance
        return made

    return make


make_operand = _maker(Operand)
make_instruction = _maker(Instruction)
