"""A computation by a framework on Vulkan, compared with NumPy's: `vulkan_framework.py wgpu|taichi|ncnn`.

Prints the device and the largest difference as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

COUNT = 4096
WGSL = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    b[id.x] = sqrt(a[id.x]) * 3.0 + f32(id.x);
}
"""


def largest_difference(found: Any, expected: Any) -> float:
    """In parts of the largest expected value."""
    return float(np.max(np.abs(np.asarray(found, np.float64) - expected)) / np.max(np.abs(expected)))


def run_wgpu() -> tuple[str, float]:
    """A compute shader between two buffers, and copies of textures: an upload, a copy of a part, a readback."""
    import wgpu

    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    device = adapter.request_device_sync()
    a = np.random.default_rng(1).random(COUNT, np.float32)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    source = device.create_buffer_with_data(data=a, usage=usage)
    result = device.create_buffer(size=a.nbytes, usage=usage)
    shader = device.create_shader_module(code=WGSL)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": shader, "entry_point": "main"})
    entries = [{"binding": n, "resource": {"buffer": b, "offset": 0, "size": a.nbytes}} for n, b in enumerate((source, result))]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    work = encoder.begin_compute_pass()
    work.set_pipeline(pipeline)
    work.set_bind_group(0, group)
    work.dispatch_workgroups(COUNT // 64)
    work.end()
    device.queue.submit([encoder.finish()])
    found = np.frombuffer(device.queue.read_buffer(result), np.float32)
    apart = largest_difference(found, np.sqrt(a) * 3 + np.arange(COUNT))
    pixels = np.random.default_rng(2).integers(0, 256, (32, 64, 4), np.uint8)
    usage = wgpu.TextureUsage.COPY_SRC | wgpu.TextureUsage.COPY_DST | wgpu.TextureUsage.TEXTURE_BINDING
    texture = device.create_texture(size=(64, 32, 1), format="rgba8unorm", usage=usage)
    layout = {"bytes_per_row": 256, "rows_per_image": 32}
    device.queue.write_texture({"texture": texture}, pixels, layout, (64, 32, 1))
    back = np.frombuffer(device.queue.read_texture({"texture": texture}, layout, (64, 32, 1)), np.uint8).reshape(pixels.shape)
    return str(adapter.info["device"]), max(apart, largest_difference(back, pixels))


def run_taichi() -> tuple[str, float]:
    """A field, a matrix product and a sum with atomics."""
    import taichi as ti

    ti.init(arch=ti.vulkan, log_level=ti.WARN, offline_cache=False)
    if ti.lang.impl.current_cfg().arch != ti.vulkan:
        return "not Vulkan", 1.0
    side = 32
    a, b, c = (ti.field(ti.f32, (side, side)) for _ in range(3))
    total = ti.field(ti.f32, ())
    left, right = np.random.default_rng(1).random((2, side, side), np.float32)
    a.from_numpy(left)
    b.from_numpy(right)

    @ti.kernel
    def product():  # type: ignore[no-untyped-def]
        for i, j in c:
            found = 0.0
            for k in range(side):
                found += a[i, k] * b[k, j]
            c[i, j] = found
            total[None] += found

    product()
    expected = left.astype(np.float64) @ right
    apart = max(largest_difference(c.to_numpy(), expected), abs(total[None] - expected.sum()) / expected.sum())
    return "Vulkan", apart


def run_ncnn() -> tuple[str, float]:
    """A convolution and a ReLU, by ncnn on Vulkan and on the processor."""
    import tempfile
    from pathlib import Path

    import ncnn

    rng = np.random.default_rng(1)
    weights, biases = rng.standard_normal((8, 4, 3, 3)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    text = ("7767517\n3 3\nInput in 0 1 in\nConvolution conv 1 1 in mid 0=8 1=3 4=1 5=1 6=288\nReLU relu 1 1 mid out\n")
    image = rng.standard_normal((4, 24, 24)).astype(np.float32)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net.param").write_text(text, "ascii")
        Path(folder, "net.bin").write_bytes(b"\0\0\0\0" + weights.tobytes() + biases.tobytes())
        for vulkan in (True, False):
            net = ncnn.Net()
            net.opt.use_vulkan_compute = vulkan
            net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
            net.load_param(str(Path(folder, "net.param")))
            net.load_model(str(Path(folder, "net.bin")))
            extractor = net.create_extractor()
            extractor.input("in", ncnn.Mat(image))
            found.append(np.array(extractor.extract("out")[1]))
            del extractor
            net.clear()
    name = ncnn.get_gpu_info(0).device_name() if ncnn.get_gpu_count() else "no GPU"
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    expected = np.maximum(np.einsum("cyxij,ocij->oyx", windows, weights.astype(np.float64)) + biases[:, None, None], 0)
    return str(name), max(largest_difference(found[0], expected), largest_difference(found[0], found[1]))


RUNS: dict[str, Callable[[], tuple[str, float]]] = {"wgpu": run_wgpu, "taichi": run_taichi, "ncnn": run_ncnn}

if __name__ == "__main__":
    name, difference = RUNS[sys.argv[1]]()
    print(json.dumps({"device": name, "difference": difference}), flush=True)
