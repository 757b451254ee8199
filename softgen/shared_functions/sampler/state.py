"""Sampler states, each understood on first use and kept for a dispatch.

Reads   SAMPLER_STATE SAMPLER_BORDER_COLOR_STATE
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.formats import Format
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import GpuFault, Unsupported
from softgen.memory.space import Space
from softgen.shared_functions.unit import DispatchBindings
from softgen.surface import texel

BORDERS = ("clamp_border", "half_border")
FILTERS = ("nearest", "linear")
ORDER = texel.ORDER
COLOURS = ("red", "green", "blue", "alpha")


@dataclass(frozen=True)
class Sampling:
    """A decoded sampler state: addressing and filters."""

    disabled: bool
    mag: str  # nearest linear
    min: str
    mip: str  # none nearest linear
    modes: tuple[str, str, str]
    normalised: bool
    mag_rounds: tuple[bool, bool, bool]
    min_rounds: tuple[bool, bool, bool]
    lods: tuple[int, int]  # lowest and highest, in 256ths
    preclamp: bool
    base_level: int  # in halves
    border: tuple[int, int, int, int] = (0, 0, 0, 0)  # bits
    small_border: bool = False  # the border is four bytes, for channels that a format lacks too

    @property
    def same(self) -> bool:
        """Whether it does not matter if a picture is made larger or smaller."""
        return (self.mag, self.mag_rounds) == (self.min, self.min_rounds)

    def outside(self, format: Format) -> list[int]:
        """The bits of texels outside the image (KBL 20955-20982)."""
        if self.small_border:
            return list(self.border)
        found = texel.missing(format)
        for one in format.channels:
            if one.type != "void":
                found.update({name: self.border[0 if one.name in texel.COPIES else ORDER.index(name)]
                              for name in texel.COPIES.get(one.name, one.name)})  # fmt: skip
        return [found[name] for name in ORDER]


def understood(layout: Layout, state: Record, what: str) -> Sampling:
    """What is not simulated is refused by name; the border colour is read by the caller."""
    word = {name: value_name(layout, state, name) for name in state._fields if name.endswith(("_filter", "_mode"))}
    for name in ("mag_mode_filter", "min_mode_filter"):
        if word[name] not in FILTERS:
            raise Unsupported(f"{what} has {name} {word[name]}: not yet simulated")
    for name in ("chromakey_enable", "reduction_type_enable"):
        if getattr(state, name, 0):
            raise Unsupported(f"{what} has {name} set: not yet simulated")
    modes = word["tcx_address_control_mode"], word["tcy_address_control_mode"], word["tcz_address_control_mode"]
    rounds = [tuple(bool(getattr(state, f"{axis}_address_{way}_filter_rounding_enable")) for axis in "uvr") for way in ("mag", "min")]
    fraction = 8 if layout.field("min_lod").width == 12 else 6
    found = Sampling(
        bool(state.sampler_disable), word["mag_mode_filter"], word["min_mode_filter"], word["mip_mode_filter"], modes,
        not getattr(state, "non_normalized_coordinate_enable", 0), (rounds[0][0], rounds[0][1], rounds[0][2]),
        (rounds[1][0], rounds[1][1], rounds[1][2]), (int(state.min_lod) << 8 - fraction, int(state.max_lod) << 8 - fraction),
        word["lod_preclamp_mode"] == "ogl", int(getattr(state, "base_mip_level", 0)),
        small_border=word.get("texture_border_color_mode") == "dx9",
    )  # fmt: skip
    if state.texture_lod_bias and (found.mip != "none" or not found.same):
        raise Unsupported(f"{what} has a texture_lod_bias that decides between levels or filters: not yet simulated")
    return found


class Samplers:
    """The sampler states of one dispatch; `table` is where they begin, counted from the dynamic state base."""

    def __init__(self, generation: Generation, space: Space, bases: Mapping[str, int], table: int) -> None:
        self.gen, self.space, self.table = generation.number, space, table
        self.base = bases.get("dynamic", 0)
        self._known: dict[tuple[int, int], Sampling] = {}

    @classmethod
    def of(cls, dispatch: DispatchBindings) -> Samplers:
        return cls(dispatch.generation, dispatch.space, dispatch.bases, dispatch.samplers)

    def forget(self) -> None:
        """Another dispatch begins: sampler state is read again."""
        self._known.clear()

    def sampling(self, index: int, table: int | None = None) -> Sampling:
        """The state of an index in a table of the message's own, or in that of the dispatch."""
        key = self.table if table is None else table, index
        if key not in self._known:
            self._known[key] = self._look(*key)
        return self._known[key]

    def _look(self, table: int, index: int) -> Sampling:
        layout = catalogue.layout("SAMPLER_STATE", self.gen)
        at, what = self.base + table + index * 4 * layout.dwords, f"sampler {index}"
        state = self._read(layout, at, f"state of {what}")
        found = understood(layout, state, f"{what} (state at {at:#x})")
        if not set(found.modes) & set(BORDERS):
            return found
        border = self._border(int(state.border_color_pointer), found.small_border, what)
        return Sampling(**{**vars(found), "border": border})

    def _border(self, pointer: int, small: bool, what: str) -> tuple[int, int, int, int]:
        layout = catalogue.layout("SAMPLER_BORDER_COLOR_STATE", self.gen)
        held = self._read(layout, self.base + pointer, f"border colour of {what}")
        if small:
            floats = struct.pack("<4f", *(getattr(held, f"border_color_{one}_as_u8") / 255 for one in COLOURS))
            parts = list(struct.unpack("<4I", floats))
        else:
            parts = [int(getattr(held, f"border_color_{one}_as_float")) for one in COLOURS]
        return parts[0], parts[1], parts[2], parts[3]

    def _read(self, layout: Layout, address: int, what: str) -> Record:
        address &= (1 << self.space.bits) - 1
        try:
            return layout.raw(array("I", self.space.read(address, 4 * layout.dwords)))
        except GpuFault as fault:
            raise GpuFault(fault.address, fault.access, fault.space, fault.by, f"{fault.why}; the {what} should be there") from None
