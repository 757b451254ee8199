"""Text of IR: lines, registers, labels, types, the frame of a function around them, and the module that functions share.

`LlvmText` is one function. Those with the same module are one piece of IR: functions that others call by name (`LlvmModule.internal`)
are written once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from softgen.lanes.compile import jit
from softgen.lanes.llvm import affine
from softgen.lanes.llvm.affine import AffineValue
from softgen.lanes.numpy import exact
from softgen.lanes.types import LaneType, bool_, f16, f32, f64, u64
from softgen.lanes.value import Value

_ELEMENTS = {f16: "i16", f32: "float", f64: "double", bool_: "i1"}
# Values may be passed between modules in vector registers: all must agree on how wide these are.
ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }'

UNLIKELY = '!0 = !{!"branch_weights", i32 1, i32 2000}\n!1 = !{!"branch_weights", i32 2000, i32 1}\n!2 = !{}'


class LlvmModule:
    """A module: functions, internal functions, declarations. The default target is this host."""

    def __init__(self, target: jit.Target | None = None) -> None:
        self.target = target
        self.functions: list[str] = []
        self.internals: dict[str, str] = {}
        self.declared: dict[str, str] = {}              # intrinsics and imports

    def has(self, feature: str) -> bool:
        return (self.target or jit.host()).has(feature)

    @property
    def neon(self) -> bool:
        return (self.target or jit.host()).triple.startswith("aarch64")

    @property
    def loads_broadcast(self) -> bool:
        """Whether a scalar in memory is broadcast at no cost beside its load; NEON multiplies by an element of a vector instead."""
        return not self.neon

    def masks_in_bytes(self, type: LaneType, lanes: int) -> bool:
        """Whether variables of a type are masks that this host keeps as bytes (mask.py)."""
        return type is bool_ and lanes in (16, 32) and self.neon

    def internal(self, name: str, result: str, parameters: tuple[str, ...], build: Callable[[], LlvmText]) -> str:
        """The name of a function of the module. Where it is not there yet, `build` writes its body and returns the text. Its parameters are
        %a0, %a1, …; it is not inlined: what many messages share is compiled once. Masks are best passed as integers."""
        if name not in self.internals:
            self.internals[name] = ""                   # it may ask for itself
            given = ", ".join(f"{kind} %a{number}" for number, kind in enumerate(parameters))
            self.internals[name] = build().framed(f"internal {result} @{name}({given}) noinline #0")
        return f"@{name}"

    def text(self) -> str:
        return "\n".join([*self.functions, *self.internals.values(), *sorted(self.declared.values()), ATTRIBUTES, UNLIKELY, ""])


class LlvmText:
    """The text of one function, as far as it is written."""

    def __init__(self, module: LlvmModule | None = None) -> None:
        self.module = module or LlvmModule()
        self.lines: list[str] = []
        self.places: list[str] = []                     # allocas, all in the entry block
        self.declared = self.module.declared
        self.open = 0                                   # bodies of If and While that did not end yet
        self.affine: dict[str, AffineValue] = {}        # of operands that are known to be affine
        self.implied: dict[str, frozenset[str]] = {}    # masks that a mask is a subset of
        self._registers = 0
        self._labels = 0

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def fresh(self) -> str:
        """A register's name that is not taken."""
        self._registers += 1
        return f"%r{self._registers}"

    def emit(self, text: str) -> str:
        """A line that makes a value; gives the register's name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def place(self, kind: str, initial: str = "") -> str:
        """Stack space of a type; LLVM promotes it to a register."""
        name = f"%v{len(self.places)}"
        self.places.append(f"  {name} = alloca {kind}")
        if initial:
            self.places.append(f"  store {kind} {initial}, ptr {name}")
        return name

    def labels(self, *names: str) -> list[str]:
        self._labels += 1
        return [f"{name}{self._labels}" for name in names]

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def element(self, type: LaneType) -> str:
        return _ELEMENTS.get(type) or f"i{type.bits}"

    def vector(self, type: LaneType, lanes: int) -> str:
        return f"<{lanes} x {self.element(type)}>"

    def constants(self, type: LaneType, lanes: list[int]) -> str:
        """Integers, or the bits of floats, written out. IR writes a float as the double it equals."""
        element = self.element(type)
        if type is f32:
            lanes = exact.from_float(f32, f64, "rne", lanes)
        texts = [f"0x{lane:016X}" if type in (f32, f64) else str(lane) for lane in lanes]
        return f"splat ({element} {texts[0]})" if len(set(texts)) == 1 else f"<{', '.join(f'{element} {text}' for text in texts)}>"

    def typed(self, value: Value) -> str:
        return f"{self.vector(value.type, value.lanes)} {value.payload}"

    def intrinsic(self, name: str, result: str, operands: list[tuple[str, str]], overloads: tuple[str, ...]) -> str:
        """An intrinsic; `overloads` are the types its name is made of."""
        name = ".".join([f"@{name}", *(_mangled(overload) for overload in overloads)])
        self.declared[name] = f"declare {result} {name}({', '.join(kind for kind, _ in operands)})"
        text = f"call {result} {name}({', '.join(f'{kind} {text}' for kind, text in operands)})"
        if result != "void":
            return self.emit(text)
        self.line(text)
        return ""

    def splat(self, element: str, lanes: int, scalar: str) -> str:
        """A vector with a scalar in all lanes."""
        first = self.emit(f"insertelement <{lanes} x {element}> poison, {element} {scalar}, i64 0")
        return self.emit(f"shufflevector <{lanes} x {element}> {first}, <{lanes} x {element}> poison, <{lanes} x i32> zeroinitializer")

    def resized(self, source: LaneType, type: LaneType, lanes: int, a: str) -> str:
        """Integers truncated, or extended as their own type's sign says."""
        if source.bits == type.bits:
            return a
        how = "trunc" if source.bits > type.bits else "sext" if source.is_signed else "zext"
        found = self.emit(f"{how} {self.vector(source, lanes)} {a} to {self.vector(type, lanes)}")
        affine.converted(self, source, type, lanes, a, found)
        return found

    def far(self, offsets: Value) -> str:
        """Offsets as i64."""
        return self.resized(offsets.type, u64, offsets.lanes, offsets.payload)

    def outside(self, name: str, result: str, parameters: tuple[str, ...]) -> str:
        """The name of an imported function, whose address the loader of the code provides."""
        self.declared[f"@{name}"] = f"declare {result} @{name}({', '.join(parameters)})"
        return f"@{name}"

    # -- text that is decided later ------------------------------------------------------------------------------------

    def defer(self, item: object) -> None:
        """Write a placeholder, to be replaced after `detach`."""
        self.lines.append(cast(str, item))

    def detach(self) -> list[object]:
        """Remove and return what was written so far: lines, and placeholders of deferred text."""
        taken, self.lines = self.lines, []
        return cast(list[object], taken)

    def attach(self, line: object) -> None:
        """Put back a line that `detach` removed."""
        self.lines.append(cast(str, line))

    def mark(self) -> int:
        """Where the text is now, for `rewind`."""
        return len(self.lines)

    def rewind(self, mark: int) -> None:
        """Remove what was written since a mark."""
        del self.lines[mark:]

    # -- functions -----------------------------------------------------------------------------------------------------

    def define(self, header: str) -> None:
        """Everything written so far becomes a function of the module: `i64 @name(ptr %block, ptr %context)`."""
        self.module.functions.append(self.framed(f"{header} #0"))

    def framed(self, header: str) -> str:
        """Everything written so far with a header and the end of a function."""
        if self.open:
            raise TypeError("the body of an If, Else or While must run to its end: no break, no return")
        return "\n".join([f"define {header} {{", "entry:", *self.places, *self.lines, "}"])

    def function(self, name: str) -> str:
        """A module: a function `i64 name(ptr arguments, ptr record)` with everything written so far."""
        self.define(f"i64 @{name}(ptr noalias %arguments, ptr %record)")
        return self.module.text()


def _mangled(kind: str) -> str:
    """`<8 x float>` in an intrinsic's name is v8f32."""
    if not kind.startswith("<"):
        return {"ptr": "p0"}.get(kind, kind)
    count, _, element = kind.strip("<>").partition(" x ")
    return f"v{count}" + {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(element, element)
