"""Blending, clamps and logic operations on the channels of pixels, in 32-bit floats (G45 7846-8065).

Products and sums are rounded one by one; the precision of the hardware is not specified (G45 8011-8013).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from softgen.bits.formats import Format
from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import f32, u32
from softgen.lanes.value import Value
from softgen.shared_functions.pixel_backend.state import BlendEquation, TargetState
from softgen.shared_functions.pixel_backend.surface import TargetSurface
from softgen.surface.texel import is_integer

RGBA = "rgba"
ALPHA = 3
RANGES = {"unorm": (0.0, 1.0), "snorm": (-1.0, 1.0), "ufloat": (0.0, None), "float": (None, None),
          "float16": (-65504.0, 65504.0)}  # fmt: skip
INVERSE = "inv_"
SECOND = "src1_"  # factors of dual source blending
NAMELESS = "value "  # begins what `value_name` calls a reserved value
COLOR_FIELDS = "color_blend_function", "source_blend_factor", "destination_blend_factor"
ALPHA_FIELDS = "alpha_blend_function", "source_alpha_blend_factor", "destination_alpha_blend_factor"


def needs_destination(state: TargetState) -> bool:
    """Whether the target's colours are read: by blending, or by a logic operation whose result depends on them."""
    if state.color is not None:
        return any(_reads(equation, place) for place, equation in enumerate(_equations(state)))
    return state.logic_op is not None and state.logic_op >> 1 & 5 != state.logic_op & 5


def _equations(state: TargetState) -> list[BlendEquation]:
    assert state.color is not None
    return [state.color] * ALPHA + [state.alpha or state.color]


def _reads(equation: BlendEquation, place: int) -> bool:
    saturated = equation.source == "src_alpha_saturate" and place != ALPHA
    return equation.destination != "zero" or "dst_" in equation.source or saturated or equation.function not in ("add", "subtract")


# -- what cannot be computed -----------------------------------------------------------------------------------------------


def reached(state: TargetState, surface: TargetSurface, dual: bool) -> TargetState:
    """A state without what cannot be computed and no written channel goes through: it is never looked at."""
    color, alpha = state.color, state.alpha or state.color
    written = _written(state, surface)
    if color is not None and _wrong(color, dual) and not written & set(RGBA[:ALPHA]):
        color = BlendEquation()
    if alpha is not None and _wrong(alpha, dual) and RGBA[ALPHA] not in written:
        alpha = BlendEquation()
    if color == state.color and alpha == (state.alpha or state.color):
        return state
    return replace(state, color=color, alpha=alpha if alpha != color else None)


def check(state: TargetState, surface: TargetSurface, dual: bool) -> None:
    """Raise Unsupported for blending and clamps of written channels that mean nothing."""
    if not _written(state, surface):
        return
    for equation, fields in ((state.color, COLOR_FIELDS), (state.alpha, ALPHA_FIELDS)):
        if equation is not None and (what := _wrong(equation, dual, fields)):
            raise Unsupported(what)
    if (state.pre_clamp or state.post_clamp) and state.clamp_range.startswith(NAMELESS):
        raise Unsupported(f"color_clamp_range has the {state.clamp_range}, which is reserved")


def _written(state: TargetState, surface: TargetSurface) -> set[str]:
    """The channels of a target that are written as floats."""
    if surface.format is None or is_integer(surface.format):
        return set()
    from_shader = {name for name, source in zip(RGBA, surface.order, strict=True) if source != "-"}
    there = {channel.name for channel in surface.format.channels if channel.type != "void"}
    return there & from_shader - set(state.write_disable)


def _wrong(equation: BlendEquation, dual: bool, fields: tuple[str, ...] = COLOR_FIELDS) -> str:
    """Why an equation cannot be computed; "" if it can. `dual`: the message has a second source."""
    words = equation.function, equation.source, equation.destination
    for field, word in zip(fields, words, strict=True):
        if word.startswith(NAMELESS):
            return f"{field} has the {word}, which is reserved"
    if not dual and any(SECOND in word for word in words):
        return "blend factors of a second source, and a message without one: undefined (G45 7916)"
    return ""


# -- computing -------------------------------------------------------------------------------------------------------------


@dataclass
class Blender:
    """The inputs of blending, channels as lists of four lanes of f32."""

    m: Machine
    source: list[Value]
    second: list[Value] | None
    destination: list[Value]
    constant: list[Value]

    def blend(self, state: TargetState) -> list[Value]:
        return [self._blended(equation, place) for place, equation in enumerate(_equations(state))]

    def _blended(self, equation: BlendEquation, place: int) -> Value:
        m = self.m
        source = self._term(self.source[place], equation.source, place)
        destination = self._term(self.destination[place], equation.destination, place)
        if equation.function == "add":
            return source + destination
        if equation.function in ("min", "max"):  # of the terms with their factors (G45 7957-7959)
            return m.min(source, destination) if equation.function == "min" else m.max(source, destination)
        return source - destination if equation.function == "subtract" else destination - source

    def _term(self, value: Value, factor: str, place: int) -> Value:
        if factor in ("zero", "one"):
            return self.m.like(value, 0.0) if factor == "zero" else value
        return value * self._factor(factor, place)

    def _factor(self, name: str, place: int) -> Value:
        """A factor other than zero and one. COLOR factors of the alpha channel are alpha (G45 8338)."""
        if name == "src_alpha_saturate":
            one = self.m.like(self.source[ALPHA], 1.0)
            return one if place == ALPHA else self.m.min(one - self.destination[ALPHA], self.source[ALPHA])
        kind, _, what = name.removeprefix(INVERSE).rpartition("_")
        held = {"src": self.source, "dst": self.destination, "const": self.constant, "src1": self.second}[kind]
        assert held is not None, "a dual source factor without a second source"
        value = held[ALPHA if what == "alpha" else place]
        return 1.0 - value if name.startswith(INVERSE) else value


def clamped(m: Machine, values: list[Value], clamp_range: str, format: Format) -> list[Value]:
    """Channels in the range of a clamp; NaN becomes its lower end. A channel that a format lacks goes with red, alpha of R11G11B10_FLOAT
    with half floats (G45 8398, KBL 2270)."""
    types = {channel.name: channel.type for channel in format.channels}
    others = "float16" if types.get("r") == "ufloat" else types.get("r", "unorm")
    found = []
    for name, value in zip(RGBA, values, strict=True):
        kind = clamp_range if clamp_range != "rtformat" else types.get(name, others)
        low, high = RANGES.get(kind, (None, None))
        value = value if low is None else m.max(value, m.like(value, low))
        found.append(value if high is None else m.min(value, m.like(value, high)))
    return found


def logic(m: Machine, operation: int, source: Value, destination: Value) -> Value:
    """A logic operation on words: bit i of the code is the result of source i >> 1 and destination i & 1."""
    terms = [(~source, ~destination), (~source, destination), (source, ~destination), (source, destination)]
    found = m.like(source, 0)
    for bit, (a, b) in enumerate(terms):
        if operation >> bit & 1:
            found = found | (a & b)
    return found


def floats(m: Machine, values: list[Value]) -> list[Value]:
    return [m.bitcast(value, f32) for value in values]


def bits(m: Machine, values: list[Value]) -> list[Value]:
    return [m.bitcast(value, u32) for value in values]


__all__ = ["Blender", "check", "clamped", "is_integer", "logic", "needs_destination", "reached"]
