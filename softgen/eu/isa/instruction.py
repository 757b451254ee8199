"""Instruction and Operand: the decoded instruction, independent of the encoding of its generation.

`decode` produces it; `encode`, both text dialects and the engines consume it. Sizes and strides count elements, sub-registers bytes.
A reserved code decodes as the first value of its field (a stride as 0, a file as arf, a type as ""). Bits that no field claims are kept in
`residue`, so that encoding gives the same word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

Frozen = TypeVar("Frozen")

VXH = -1  # `Operand.vertical` of VxH and Vx1 regions: each row has an address sub-register of its own


@dataclass(frozen=True, slots=True)
class Operand:
    """A source or destination operand."""

    file: str  # "arf" "grf" "mrf" "imm"
    type: str  # a name of types.table; "" where the form has no type or the code is reserved
    number: int = 0  # register number; for arf the whole 8-bit code (0x20 = acc0)
    sub: int = 0  # byte offset within the register
    indirect: bool = False  # register-indirect: address_sub (a0.n) and offset (signed bytes) replace number and sub
    address_sub: int = 0
    offset: int = 0
    vertical: int = 0  # strides and width, in elements
    width: int = 1
    horizontal: int = 0
    swizzle: int | None = None  # align16 sources: 8 bits, x lowest
    write_mask: int | None = None  # align16 destinations: 4 bits, x lowest
    replicate: bool = False  # three-source align16: one channel replicated to all (RepCtrl)
    special: int | None = None  # madm and math macros: accumulator selector, 4 bits
    negate: bool = False
    absolute: bool = False
    immediate: int = 0  # the encoded 16, 32 or 64 bits; of a descriptor's register, the bits that are known (descriptor_bits.py)


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction. Fields that its generation or form lacks keep their defaults."""

    gen: float
    opcode: str  # name from opcodes.table; "" where opcode_number is reserved
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
    sfid: int = 0  # shared function id of a send
    base_mrf: int = 0  # G45 send
    eot: bool = False
    descriptor: int | Operand | None = None  # send: immediate, or a0.0
    extended: int | Operand | None = None  # extended descriptor, where sends have one
    dst: Operand | None = None
    sources: tuple[Operand, ...] = ()
    jip: int | None = None  # offset as encoded, in the generation's unit; None where absent
    uip: int | None = None
    pop: int | None = None
    compacted: bool = False  # encoded in 8 bytes
    residue: int = 0  # word == encode(all other fields) ^ residue
    absent: str = "ud"  # one-source instructions: the type encoded for the absent second source


def _maker(frozen: type[Frozen]) -> Callable[..., Frozen]:
    """A constructor six times as fast as that of a frozen dataclass, which sets fields through object.__setattr__: it sets the fields of
    a mutable class with the same slots and then changes the object's class. All values are positional."""
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
