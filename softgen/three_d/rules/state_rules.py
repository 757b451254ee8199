"""Software rules since Gen8: what the commands of a draw must not ask for, reported when its plans are made.

Reads   3DSTATE_VS 3DSTATE_URB_VS 3DSTATE_VERTEX_ELEMENTS 3DSTATE_PS 3DSTATE_PS_EXTRA 3DSTATE_CONSTANT_PS
        3DSTATE_WM 3DSTATE_SAMPLE_PATTERN
Writes  remarks
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from softgen.bits.record import Record
from softgen.three_d.state.state import DrawState

ROW, ELEMENT = 64, 16  # bytes of a row of the URB, of a vertex element
MIDDLE = 8  # of a pixel, in sixteenths
MOST_PSD_THREADS = 64
INTERP_SAMPLE, PER_SAMPLE = 3, "pixel_shader_is_per_sample"
# Clears and resolves, which no threads of eight pixels do.
CLEARS = "render_target_fast_clear_enable", "render_target_resolve_enable", "render_target_resolve_type"
EIGHT_PIXELS = "8_pixel_dispatch_enable"
# Samples of a pixel, and the groups of 3DSTATE_SAMPLE_PATTERN that have their places.
PATTERNS = {4: ("samples_4x",), 8: ("samples_8x", "samples_8x_from_4"), 16: ("samples_16x",)}


def check_commands(state: DrawState) -> None:
    """Report what the commands of a draw must not ask for."""
    if not state.generation.urb_rules:
        return
    for text in (*_vertex_shader(state), *_pixel_shader(state), *_sample_pattern(state)):
        state.remark(text)


def _vertex_shader(state: DrawState) -> Iterator[str]:
    shader, entries, elements = (state.get(f"3DSTATE_{name}") for name in ("VS", "URB_VS", "VERTEX_ELEMENTS"))
    if shader is not None and shader.accesses_uav and not shader.enable:
        yield "3DSTATE_VS: accesses_uav 1 and enable 0 (BDW 12719-12720)"
    if entries is None or elements is None:
        return
    fetched = ELEMENT * sum(bool(element.valid) for element in elements.vertex_element)
    size = (int(entries.urb_entry_allocation_size) + 1) * ROW
    if fetched > size:  # what is fetched and what the shader puts out have the same entry
        yield f"3DSTATE_URB_VS: entries of {size} bytes, and vertex elements have {fetched} (BDW 11795-11798)"


def _pixel_shader(state: DrawState) -> Iterator[str]:
    shader, constants = state.get("3DSTATE_PS"), state.get("3DSTATE_CONSTANT_PS")
    if shader is None:
        return
    units = sum(int(part.length) for part in constants.read_length) if constants is not None else 0
    if bool(shader.push_constant_enable) != bool(units):
        said = f"push_constant_enable {shader.push_constant_enable:d}"
        yield f"3DSTATE_PS: {said}, and 3DSTATE_CONSTANT_PS has lengths of {units} (BDW 7429-7433)"
    windower, extra = state.get("3DSTATE_WM"), state.get("3DSTATE_PS_EXTRA")
    if windower is not None and windower.position_zw_interpolation_mode == INTERP_SAMPLE and not getattr(extra, PER_SAMPLE, 0):
        yield f"3DSTATE_WM: position_zw_interpolation_mode sample, and {PER_SAMPLE} 0 (BDW 13525-13526)"
    clears = next((name for name in CLEARS if getattr(shader, name, 0)), "")
    if clears and getattr(shader, EIGHT_PIXELS):
        yield f"3DSTATE_PS: {EIGHT_PIXELS} 1, and {clears} {int(getattr(shader, clears))} (BDW 7536-7540)"
    threads = int(shader.maximum_number_of_threads_per_psd) + state.generation.psd_thread_bias
    if threads > MOST_PSD_THREADS:
        yield f"3DSTATE_PS: maximum_number_of_threads_per_psd {threads}; it must be from 2 to {MOST_PSD_THREADS} (BDW 7413-7419)"


def _sample_pattern(state: DrawState) -> tuple[str, ...]:
    pattern = state.get("3DSTATE_SAMPLE_PATTERN")
    return () if pattern is None else _in_order(pattern)


@lru_cache(16)
def _in_order(pattern: Record) -> tuple[str, ...]:
    """Samples from the middle of the pixel outwards: centroids are chosen by their order (BDW 8834-8838)."""
    return tuple(_out_of_order(pattern))


def _out_of_order(pattern: Record) -> Iterator[str]:
    for count, names in PATTERNS.items():
        samples = [sample for name in names if name in pattern._fields for sample in getattr(pattern, name)]
        distances = [_distance(sample) for sample in samples]
        if distances != sorted(distances):
            number = next(n for n, distance in enumerate(distances) if n and distance < distances[n - 1])
            yield f"3DSTATE_SAMPLE_PATTERN: sample {number} of {count} is nearer to the middle than the one before (BDW 8834-8838)"


def _distance(sample: Record) -> int:
    """Of a sample from the middle, squared."""
    return int((int(sample.x_offset) - MIDDLE) ** 2 + (int(sample.y_offset) - MIDDLE) ** 2)
