"""State commands in a context's image: saved when the context leaves the engine, executed when it is restored.

Reads   CONTEXT_CSEL CONTEXT_CSBE CONTEXT_SOL CONTEXT_VF CONTEXT_SVG CONTEXT_SVL CONTEXT_TDL CONTEXT_WM CONTEXT_SC CONTEXT_DM CONTEXT_VFE
        CONTEXT_CSEND MI_BATCH_BUFFER_END
Writes  the sections of an image, latched state

A section has a place for each command (ICL 1895-2354); for state that was never set, or is invalid, it holds MI_NOOP. Push constants have
two places, committed and not: a command is committed when it is parsed here, so that both hold the same. An image ends with
MI_BATCH_BUFFER_END; one without has no sections, and its context's state is kept beside it, as on generations whose images no manual at
hand describes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Device
from softgen.bits.layout import Layout
from softgen.bits.units import PAGE_SIZE
from softgen.device.image import ContextImage
from softgen.device.submission import image_sections
from softgen.memory.space import Space
from softgen.streamer.context import SavedContext
from softgen.streamer.latch import LatchedState
from softgen.streamer.parser import Command

END = "MI_BATCH_BUFFER_END"
RING_DWORDS = 0x50  # the part that software sets up (ICL 1706-1710)
CONSTANTS, MEDIA = "3DSTATE_CONSTANT_", "MEDIA_VFE_STATE"
Warn = Callable[[str], None]


class CommandPlace(NamedTuple):
    """The place of a command in an image, in dwords."""

    at: int
    room: int
    name: str


class ImageState:
    """State in the images of a device's render contexts. Images of generations without sections are left alone."""

    def __init__(self, device: Device, warn: Warn) -> None:
        self.gen, self.warn = device.generation.number, warn
        self.places, self.end = _places(self.gen, device.limit("subslices"))
        self._saved: dict[int, bytes] = {}  # what images held when they were saved, by address

    def save(self, image: ContextImage, saved: SavedContext) -> None:
        """Writes what a context has latched."""
        start, size = image.address + PAGE_SIZE, 4 * (self.end + 1)
        if not self.places or image.space.extent(start, size) < size:
            return
        for place in self.places:
            held = [dword for command in saved.latched.commands(place.name) for dword in command][: place.room]
            data = struct.pack(f"<{place.room}I", *held, *[0] * (place.room - len(held)))
            if image.space.read(start + 4 * place.at, 4 * place.room) != data:
                image.space.write(start + 4 * place.at, data)
        image.space.write(start + 4 * self.end, struct.pack("<I", catalogue().layout(END, self.gen).pack()[0]))
        self._saved[image.address] = self._own(image)

    def _own(self, image: ContextImage) -> bytes:
        """The part that is the hardware's own."""
        return image.space.read(image.address + PAGE_SIZE + 4 * RING_DWORDS, 4 * (self.end + 1 - RING_DWORDS))

    def restore(self, image: ContextImage, saved: SavedContext, space: Space) -> None:
        """Executes the image's state commands; what it does not have, the context has not set."""
        start, size = image.address + PAGE_SIZE, 4 * (self.end + 1)
        if not self.places or image.space.extent(start, size) < size or not self._ends(image):
            return
        if self._saved.pop(image.address, None) not in (None, self._own(image)):
            self.warn(f"the image of the context at {image.address:#x} is not as the engine has saved it; but for the ring's part it is "
                      "the hardware's own (ICL 1706-1710)")  # fmt: skip
        held = {place: self._commands(image.space, start, place) for place in self.places}
        present = {place.name for place, commands in held.items() if commands}
        lost = {place.name for place in self.places if place.name in saved.latched} - present
        latched = saved.latched.without(lost) if lost else saved.latched
        for place, commands in held.items():
            if latched.commands(place.name) != [command.dwords for command in commands]:
                for command in commands:
                    latched.note(command)
        saved.restore(latched)
        self._check(latched, image, space)

    def _ends(self, image: ContextImage) -> bool:
        found = catalogue().find_command(image.space.read32(image.address + PAGE_SIZE + 4 * self.end), self.gen, "render")
        return found is not None and found.name == END

    def _commands(self, space: Space, start: int, place: CommandPlace) -> list[Command]:
        """The commands at a place, until there is nothing."""
        dwords = list(struct.unpack(f"<{place.room}I", space.read(start + 4 * place.at, 4 * place.room)))
        found, at = list[Command](), 0
        while at < place.room and dwords[at]:
            page = catalogue().find_command(dwords[at], self.gen, "render")
            length = page.length(dwords[at]) if page is not None else 0
            if page is None or page.name != place.name or at + length > place.room:
                self.warn(f"the image has {dwords[at]:#010x} where {place.name} is expected, at {start + 4 * (place.at + at):#x}")
                break
            found.append(Command(start, start + 4 * (place.at + at), 0, page, dwords[at : at + length]))
            at += length
        return found

    # -- what is restored must be there (ICL 1051-1057) ----------------------------------------------------------------

    def _check(self, latched: LatchedState, image: ContextImage, space: Space) -> None:
        for name, pointer, base, field in self._pointers(latched):
            if not any(space.extent(address, 1) for address in (pointer, pointer + (latched.base(base) or 0))):
                self.warn(f"the context at {image.address:#x} is restored with {name}, whose memory at {pointer:#x} is not mapped: before "
                          f"it is freed a PIPE_CONTROL with {field} is needed (ICL 1051-1057)")  # fmt: skip

    def _pointers(self, latched: LatchedState) -> Iterator[tuple[str, int, str, str]]:
        """Command, pointer, the base that it may count from, and the field that makes it invalid."""
        for name in (place.name for place in self.places if place.name in latched):
            record = latched[name]
            if name.startswith(CONSTANTS):
                for length, buffer in zip(record.read_length, record.constant_buffer, strict=True):
                    if length.length:
                        yield name, buffer.pointer, "dynamic", "indirect_state_pointers_disable"
            elif name == MEDIA and record.scratch_space_base_pointer:
                yield name, record.scratch_space_base_pointer, "general", "generic_media_state_clear"


@cache
def _places(gen: float, subslices: int) -> tuple[tuple[CommandPlace, ...], int]:
    """Places of commands in a generation's images, and their end."""
    found, last, end = list[CommandPlace](), 0, 0
    for section in image_sections():
        page = catalogue().get(section.structure, gen)
        if page is None:
            return (), 0
        last = section.at or end
        found += [CommandPlace(last + place.at, place.room, place.name) for place in _of_page(page, gen)]
        end = last + page.dwords + section.per_subslice * subslices
    return tuple(found), last


def _of_page(page: Layout, gen: float) -> Iterable[CommandPlace]:
    for field in page.fields:
        if _sets_state(field.type.target, gen):
            yield CommandPlace(field.low // 32, field.width // 32, field.type.target)
    for group in page.groups:
        if len(group.fields) == 1 and _sets_state(target := group.fields[0].type.target, gen):
            yield CommandPlace(group.start // 32, group.size * (group.count or 1) // 32, target)


def _sets_state(name: str, gen: float) -> bool:
    page = catalogue().get(name, gen) if name else None
    return page is not None and page.effect is not None and page.effect.sets_state
