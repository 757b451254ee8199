"""Memory of the Python interface: buffers and images that NumPy and the GPU share, and the allocator of graphics addresses."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from softgen.bits.formats import Format, surface_formats
from softgen.bits.units import PAGE_SIZE
from softgen.errors import UsageError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer as Store

if TYPE_CHECKING:
    import PIL.Image

FIRST = 0x10_0000  # the lowest address that is handed out: a null pointer faults
GAP = 1 << 16  # unmapped bytes after each allocation: an overrun faults
ROW = 64  # alignment of an image's rows
ROWS = 4  # alignment of an image's slices
CHANNELS = {1: "R", 2: "RG", 4: "RGBA"}

Array = npt.NDArray[Any]
Filter = Literal["nearest", "linear"]
Addressing = Literal["none", "repeat", "clamp_border", "clamp_edge", "mirror"]


def is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def little_endian(data: npt.ArrayLike, what: str) -> Array:
    """An array of what NumPy makes one of, its numbers as the GPU reads them."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def plain_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A dtype whose elements are bytes, and at least one."""
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError) as error:
        raise UsageError(f"dtype: {error}") from None
    if kind.hasobject:
        raise UsageError("Python objects cannot be in GPU memory")
    if not kind.itemsize:
        raise UsageError(f"dtype: elements of {kind} have no bytes")
    return kind


class Heap:
    """Allocates graphics addresses of one address space; every allocation has a memory file of its own. Threads may share a heap."""

    def __init__(self, name: str, bits: int) -> None:
        self.space = AddressSpace(name, bits)
        self._taken: list[tuple[int, int]] = []  # (start, end) in order, gaps included
        self._live: dict[int, Allocation] = {}  # by address
        self._closed = False
        self.lock = threading.RLock()

    def check_open(self) -> None:
        if self._closed:
            raise UsageError("this Gpu is closed; its memory is released")

    def allocate(self, size: int, name: str) -> Allocation:
        whole = -(-max(size, 1) // PAGE_SIZE) * PAGE_SIZE + GAP
        with self.lock:
            self.check_open()
            if len(self._taken) != len(self._live):
                self._reclaim()
            start, index = FIRST, 0
            while index < len(self._taken) and self._taken[index][0] - start < whole:
                start = self._taken[index][1]
                index += 1
            if start + whole > 1 << self.space.bits:
                raise UsageError(f"{name}: {size:,} bytes do not fit into an address space of {self.space.bits} bits")
            store = Store(max(size, 1), name)
            self._taken.insert(index, (start, start + whole))  # first, and given back last: see _reclaim
            self.space.map(start, store)
            self._live[start] = Allocation(self, start, store)
            return self._live[start]

    def free(self, allocation: Allocation) -> None:
        with self.lock:
            if not self.maps(allocation):
                return  # freed already: another allocation may have its address now
            del self._live[allocation.address]
            self._reclaim()

    def _reclaim(self) -> None:
        """Give back addresses that are taken and not in use: those of memory that is freed, or whose allocation or release was interrupted
        (a KeyboardInterrupt may come anywhere)."""
        for start, end in [taken for taken in self._taken if taken[0] not in self._live]:
            self.space.unmap(start, end - start - GAP)
            self._taken.remove((start, end))

    def maps(self, allocation: Allocation) -> bool:
        """Whether an allocation has not been freed."""
        return self._live.get(allocation.address) is allocation

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self._live.clear()
            self.space.close()


@dataclass(frozen=True)
class Allocation:
    """Memory at a graphics address."""

    heap: Heap
    address: int
    store: Store

    def write(self, data: bytes, offset: int = 0) -> None:
        self.store.view[offset : offset + len(data)] = data


class Buffer:
    """An array in GPU memory. `array` is a NumPy view of the same bytes, so results need no copy.

    >>> import numpy as np, softgen
    >>> with softgen.Gpu("kbl") as gpu:
    ...     x = gpu.buffer(np.arange(4, dtype=np.int32))
    ...     x.array[0] = 7
    ...     np.asarray(x).tolist()
    [7, 1, 2, 3]
    """

    def __init__(self, allocation: Allocation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.allocation, self.nbytes = allocation, math.prod(map(int, shape)) * dtype.itemsize
        self.array: Array = allocation.store.array[: self.nbytes].view(dtype).reshape(shape)

    @property
    def address(self) -> int:
        """The graphics address of the first byte."""
        return self.allocation.address

    def belongs_to(self, heap: Heap) -> bool:
        return self.allocation.heap is heap

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def free(self) -> None:
        """Unmap the buffer; kernels that still use its address fault. The array stays valid."""
        self.allocation.heap.free(self.allocation)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        return f"Buffer(shape={self.shape}, dtype={self.dtype}, address={self.address:#x})"


class Image:
    """An image in GPU memory, linear rows of texels. `array` is a NumPy view of shape (height, width[, channels]).

    >>> import numpy as np, softgen
    >>> with softgen.Gpu("kbl") as gpu:
    ...     gpu.image(np.zeros((2, 3, 4), np.uint8), normalized=True)
    Image(3 x 2, R8G8B8A8_UNORM)
    """

    def __init__(self, allocation: Allocation, format: Format, size: tuple[int, ...], dtype: np.dtype[Any], channels: int,
                 layered: bool) -> None:  # fmt: skip
        """`size` is (width, height) or (width, height, slices)."""
        self.allocation, self.format, self.size, self.layered = allocation, format, size, layered
        self.pitch, self.rows = layout(size, format)
        texel = format.bits // 8
        shape: tuple[int, ...] = tuple(reversed(size)) + ((channels,) if channels > 1 else ())
        strides: tuple[int, ...] = (self.pitch, texel) if len(size) == 2 else (self.rows * self.pitch, self.pitch, texel)
        if channels > 1:
            strides += (texel // channels,)
        self.array: Array = np.ndarray(shape, dtype, buffer=allocation.store.view, strides=strides)

    @property
    def address(self) -> int:
        return self.allocation.address

    def belongs_to(self, heap: Heap) -> bool:
        return self.allocation.heap is heap

    def free(self) -> None:
        """Unmap the image; the array stays valid."""
        self.allocation.heap.free(self.allocation)

    def picture(self) -> PIL.Image.Image:
        """The first slice as a Pillow image, values clipped to 0…255 (floats: 0…1)."""
        return picture(self.array if len(self.size) == 2 else self.array[0])

    def _repr_png_(self) -> bytes:
        return png(self.picture())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Image({' x '.join(map(str, self.size))}, {self.format})"


@dataclass(frozen=True)
class Local:
    """A __local argument: so many bytes of shared local memory for each group."""

    size: int

    def __post_init__(self) -> None:
        if not is_integer(self.size) or self.size < 0:
            raise UsageError(f"the size of a __local argument is a number of bytes, not {self.size!r}")


@dataclass(frozen=True)
class Sampler:
    """A sampler argument, or an entry of the sampler table of `Gpu.execute`."""

    filter: Filter = "nearest"
    addressing: Addressing = "clamp_edge"
    normalized: bool = False

    def __post_init__(self) -> None:
        for name, values in (("filter", get_args(Filter)), ("addressing", get_args(Addressing))):
            if getattr(self, name) not in values:
                raise UsageError(f"{name} of a sampler is one of {' '.join(values)}, not {getattr(self, name)!r}")


# -- images ------------------------------------------------------------------------------------------------------------


def layout(size: Sequence[int], format: Format) -> tuple[int, int]:
    """Bytes from row to row, and rows from slice to slice."""
    width, height = size[0], size[1]
    return -(-width * format.bits // 8 // ROW) * ROW, -(-height // ROWS) * ROWS


def image_bytes(size: Sequence[int], format: Format) -> int:
    pitch, rows = layout(size, format)
    return pitch * rows * (size[2] if len(size) > 2 else 1)


def find_format(dtype: np.dtype[Any], channels: int, normalized: bool, name: str | None = None) -> Format:
    """The surface format of an array's elements, or the one that is named."""
    if name is not None:
        if not isinstance(name, str):
            raise UsageError(f"a surface format is named by text (str), not {type(name).__name__}")
        found = next((format for format in surface_formats().values() if format.name == name.upper()), None)
        if found is None:
            raise UsageError(f"no surface format is called {name!r}; `softgen spec SURFACE_FORMAT` lists them")
        if found.bits != 8 * dtype.itemsize * channels:
            raise UsageError(f"{found} has {found.bits} bits a texel, the array has {8 * dtype.itemsize * channels}")
        return found
    if channels not in CHANNELS:
        raise UsageError(f"an image has 1, 2 or 4 channels, not {channels}")
    bits = 8 * dtype.itemsize
    kinds = {"f": "FLOAT", "u": "UNORM" if normalized else "UINT", "i": "SNORM" if normalized else "SINT"}
    if dtype.kind not in kinds or bits > 32:
        raise UsageError(f"an image's elements are integers or floats of at most 32 bits, not {dtype}")
    format_name = "".join(f"{channel}{bits}" for channel in CHANNELS[channels]) + f"_{kinds[dtype.kind]}"
    found = next((format for format in surface_formats().values() if format.name == format_name), None)
    if found is None:
        raise UsageError(f"there is no surface format {format_name}")
    return found


def picture(array: Array) -> PIL.Image.Image:
    """An array of shape (height, width[, channels]) as a Pillow image."""
    import PIL.Image

    scaled = array * 255.0 if array.dtype.kind == "f" else array
    with np.errstate(invalid="ignore"):
        pixels = np.clip(np.nan_to_num(scaled), 0, 255).astype(np.uint8)
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:, :, :1])], axis=2)
    return PIL.Image.fromarray(np.ascontiguousarray(pixels))


def png(image: PIL.Image.Image) -> bytes:
    import io

    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
