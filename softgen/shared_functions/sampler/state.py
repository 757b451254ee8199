"""Sampler states, each understood on first use and kept for a dispatch.

Reads   SAMPLER_STATE SAMPLER_BORDER_COLOR_STATE
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.formats import Format
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import GpuFault, Unsupported
from softgen.memory.space import Space
from softgen.shared_functions.texture.operations import SamplerNumbers
from softgen.shared_functions.texture_tables import NO_TABLES, ChromaKey, TextureTables
from softgen.shared_functions.unit import DispatchBindings
from softgen.surface import texel

BORDERS = ("clamp_border", "half_border")
FILTERS, MIP_FILTERS = ("nearest", "linear", "anisotropic"), ("none", "nearest", "linear")
ORDER = texel.ORDER
COLOURS = ("red", "green", "blue", "alpha")
LOD_BITS = 8  # of fractions, here
Four = tuple[int, int, int, int]
NO_BORDER: Four = (0, 0, 0, 0)


@dataclass(frozen=True)
class Sampling:
    """A decoded sampler state: addressing, level of detail, filters and comparison. Levels of detail are in 256ths."""

    disabled: bool
    mag: str  # nearest linear anisotropic
    min: str
    mip: str  # none nearest linear
    modes: tuple[str, str, str]
    normalised: bool
    mag_rounds: tuple[bool, bool, bool]
    min_rounds: tuple[bool, bool, bool]
    lods: tuple[int, int]  # lowest and highest
    preclamp: bool
    base_level: int  # in halves
    bias: int
    shadow: str  # the function whose opposite a comparison returns
    mag_mips: bool  # magnified images use the mip filter too
    anisotropy: int  # the most samples of a pixel
    seamless: bool  # cube maps are filtered across their edges, whatever the address modes
    small_border: bool  # the border is four bytes, for channels that a format lacks too
    reduction: str  # what is made of the texels of a footprint: std_filter comparison minimum maximum; '': as the message says
    skips_srgb: bool  # texels of sRGB formats are not made linear
    quality: str  # of trilinear filters: full high medium low
    key_kills: bool  # a texel that matches the key kills the pixel; otherwise it is replaced by black
    border: Four = NO_BORDER  # bits
    integers: Four | None = None  # the border of integer formats, where it stands apart
    key: ChromaKey | None = None
    run_time: SamplerNumbers | None = None  # in compiled programs

    @property
    def same(self) -> bool:
        """Whether it does not matter if an image is magnified or minified."""
        return (self.mag, self.mag_rounds) == (self.min, self.min_rounds)

    def generic(self) -> Sampling:
        """The state without what code reads at run time."""
        low = int(self.lods[0] % (1 << LOD_BITS) > 0)  # whether it is between two levels
        return replace(self, lods=(low, 0), bias=int(self.bias != 0), border=NO_BORDER, integers=None, small_border=False)

    def numbers(self, format: Format) -> SamplerNumbers:
        unit = 1 << LOD_BITS
        return SamplerNumbers((self.lods[0] / unit, self.lods[1] / unit), self.bias / unit, tuple(self.outside(format)))

    def with_numbers(self, numbers: SamplerNumbers) -> Sampling:
        return replace(self, run_time=numbers)

    def outside(self, format: Format) -> list[int]:
        """The bits of texels outside the image (KBL 20955-20982)."""
        if self.small_border:
            return list(self.border)
        border = self.border if self.integers is None or not texel.is_integer(format) else _apart(format, self.integers)
        found = texel.missing(format)
        for channel in format.channels:
            if channel.type not in ("void", "exponent"):
                found.update({name: border[0 if channel.name in "li" else ORDER.index(name)]
                              for name in texel.COPIES.get(channel.name, channel.name)})  # fmt: skip
        return [found[name] for name in ORDER]


def _apart(format: Format, held: Four) -> list[int]:
    """The border of an integer format on Gen7.5: packed like a texel of 8, 16 or 32 bits a channel, blue in the third dword
    (public: Mesa crocus_state.c, crocus_upload_border_color)."""
    widest = max(channel.bits for channel in format.channels)
    if widest <= 8:
        found = [held[0] >> 8 * channel & 0xFF for channel in range(4)]
    elif widest <= 16:
        found = [held[channel // 2 * 2] >> 16 * (channel % 2) & 0xFFFF for channel in range(4)]
    else:
        found = list(held)
        if [channel.name for channel in format.channels] == ["r", "g"]:  # green comes from blue's place
            found[1] = held[2]
    signed = any(channel.type == "sint" for channel in format.channels) and widest < 32
    width = 8 if widest <= 8 else 16
    return [(value ^ 1 << width - 1) - (1 << width - 1) & 0xFFFFFFFF if signed else value for value in found]


def check_filters(how: Sampling, mipmapped: bool) -> None:
    """Raise Unsupported for filters that are not simulated. Messages that do not filter have no use for them, nor surfaces of one level
    for that of levels."""
    for name, word, known in (("mag_mode_filter", how.mag, FILTERS), ("min_mode_filter", how.min, FILTERS),
                              ("mip_mode_filter", how.mip if mipmapped else "none", MIP_FILTERS)):  # fmt: skip
        if word not in known:
            raise Unsupported(f"a sampler state with {name} {word}: not yet simulated")


@lru_cache(1024)
def understood(gen: float, state: Record) -> Sampling:
    """A sampler state without its border colour. Every draw asks for its samplers again."""
    layout = catalogue.layout("SAMPLER_STATE", gen)
    word = {name: value_name(layout, state, name) for name in state._fields if name.endswith(("_filter", "_mode", "_function"))}
    rounds = [tuple(bool(getattr(state, f"{axis}_address_{way}_filter_rounding_enable")) for axis in "uvr") for way in ("mag", "min")]
    bias = _lod(layout, state, "texture_lod_bias")
    return Sampling(
        bool(state.sampler_disable), word["mag_mode_filter"], word["min_mode_filter"], word["mip_mode_filter"],
        (word["tcx_address_control_mode"], word["tcy_address_control_mode"], word["tcz_address_control_mode"]),
        not getattr(state, "non_normalized_coordinate_enable", 0), (rounds[0][0], rounds[0][1], rounds[0][2]),
        (rounds[1][0], rounds[1][1], rounds[1][2]), (_lod(layout, state, "min_lod"), _lod(layout, state, "max_lod")),
        word["lod_preclamp_mode"] == "ogl", int(getattr(state, "base_mip_level", 0)),
        bias=bias,
        shadow=word["shadow_function"],
        mag_mips=word.get("lod_clamp_magnification_mode") == "mipfilter",
        seamless=word["cube_surface_control_mode"] == "override",
        anisotropy=2 * int(state.maximum_anisotropy) + 2,
        small_border=word.get("texture_border_color_mode") == "dx9",
        reduction=value_name(layout, state, "reduction_type") if getattr(state, "reduction_type_enable", 0) else "",
        skips_srgb=bool(getattr(state, "srgb_decode", 0)),
        quality=value_name(layout, state, "trilinear_filter_quality") if "trilinear_filter_quality" in state._fields else "full",
        key_kills=word["chromakey_mode"] == "kill_on_any_match",
    )  # fmt: skip


def _lod(layout: Layout, state: Record, name: str) -> int:
    """A level of detail in 256ths."""
    field, bits = layout.field(name), int(getattr(state, name))
    if field.type.signed and bits >> field.width - 1:
        bits -= 1 << field.width
    return bits << LOD_BITS - field.type.fraction


class Samplers:
    """The sampler states of one dispatch; `table` is where they begin, counted from the base that the page of sampler states names."""

    def __init__(self, generation: Generation, space: Space, bases: Mapping[str, int], table: int,
                 tables: TextureTables = NO_TABLES) -> None:  # fmt: skip
        self.tables = tables
        self.gen, self.space, self.table = generation.number, space, table
        self._base_name = catalogue.layout("SAMPLER_STATE", generation.number).field("border_color_pointer").type.base
        self.base = bases.get(self._base_name, 0)
        self._known: dict[tuple[int, int, bool], Sampling] = {}

    @classmethod
    def of(cls, dispatch: DispatchBindings) -> Samplers:
        return cls(dispatch.generation, dispatch.space, dispatch.bases, dispatch.samplers, TextureTables.of(dispatch))

    def move(self, bases: Mapping[str, int], table: int) -> None:
        """The states are elsewhere from now on."""
        self.base, self.table = bases.get(self._base_name, 0), table
        self.forget()

    def forget(self) -> None:
        """Another dispatch begins: sampler state is read again."""
        self._known.clear()

    def sampling(self, index: int, table: int | None = None, bordered: bool = False) -> Sampling:
        """The state of an index in a table of the message's own, or in that of the dispatch. `bordered`: the surface needs its border
        colour, whatever the address modes."""
        key = self.table if table is None else table, index, bordered
        if key not in self._known:
            self._known[key] = self._look(*key)
        return self._known[key]

    def _look(self, table: int, index: int, bordered: bool) -> Sampling:
        layout = catalogue.layout("SAMPLER_STATE", self.gen)
        at, what = self.base + table + index * 4 * layout.dwords, f"sampler {index}"
        state = self._read(layout, at, f"state of {what}")
        found = understood(self.gen, state)
        if state.chromakey_enable:
            found = replace(found, key=self.tables.keys[state.chromakey_index])
        if not bordered and not set(found.modes) & set(BORDERS):
            return found
        return self._with_border(found, int(state.border_color_pointer), what)

    def _with_border(self, sampling: Sampling, pointer: int, what: str) -> Sampling:
        layout = catalogue.layout("SAMPLER_BORDER_COLOR_STATE", self.gen)
        held = self._read(layout, self.base + pointer, f"border colour of {what}")
        if sampling.small_border:
            floats = struct.pack("<4f", *(getattr(held, f"border_color_{colour}_as_u8") / 255 for colour in COLOURS))
            parts = list(struct.unpack("<4I", floats))
        else:
            parts = [int(getattr(held, f"border_color_{colour}_as_float")) for colour in COLOURS]
        integers = None
        if layout.dwords > len(COLOURS):  # they stand apart
            red, green, blue, alpha = (int(getattr(held, f"border_color_{colour}_as_u32")) for colour in COLOURS)
            integers = red, green, blue, alpha
        return replace(sampling, border=(parts[0], parts[1], parts[2], parts[3]), integers=integers)

    def _read(self, layout: Layout, address: int, what: str) -> Record:
        address &= (1 << self.space.bits) - 1
        try:
            return layout.raw(array("I", self.space.read(address, 4 * layout.dwords)))
        except GpuFault as fault:
            raise GpuFault(fault.address, fault.access, fault.space, fault.by, f"{fault.why}; the {what} should be there") from None
