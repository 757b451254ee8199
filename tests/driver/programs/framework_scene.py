"""A scene by a framework that draws off screen: `framework_scene.py moderngl|wgpu FILE`.

Textured, lit boxes behind each other with depth test, a blended plane in front, and a pattern that a compute shader has written; as a
NumPy file of 8-bit colours."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

SIZE, TEXELS, BOXES = 128, 32, 5
FACES = [((0, 0, 1), (1, 0, 0), (0, 1, 0)), ((1, 0, 0), (0, 0, -1), (0, 1, 0)), ((0, 1, 0), (1, 0, 0), (0, 0, -1))]

VERTEX = """
#version 430
in vec3 position; in vec3 normal; in vec2 place; in vec4 box;
uniform mat4 view;
out vec3 n; out vec2 uv;
void main() { n = normal; uv = place; gl_Position = view * vec4(position * box.w + box.xyz, 1.0); }
"""
FRAGMENT = """
#version 430
in vec3 n; in vec2 uv; out vec4 colour;
uniform sampler2D image; uniform vec4 tint;
void main() { colour = texture(image, uv) * tint * vec4(vec3(0.4 + 0.6 * max(dot(normalize(n), vec3(0.48, 0.6, 0.64)), 0.0)), 1.0); }
"""
COMPUTE = """
#version 430
layout(local_size_x = 8, local_size_y = 8) in;
layout(rgba8, binding = 0) uniform writeonly image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, vec4(at.x & 7, at.y & 7, (at.x ^ at.y) >> 2 & 3, 7) / 7.0);
}
"""
WGSL = """
struct Parameters { view: mat4x4<f32>, tint: vec4<f32> };
@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var image: texture_2d<f32>;
@group(0) @binding(2) var filtering: sampler;
struct Varying { @builtin(position) at: vec4<f32>, @location(0) n: vec3<f32>, @location(1) uv: vec2<f32> };
@vertex fn vertex(@location(0) position: vec3<f32>, @location(1) normal: vec3<f32>, @location(2) place: vec2<f32>,
                  @location(3) box: vec4<f32>) -> Varying {
    return Varying(parameters.view * vec4<f32>(position * box.w + box.xyz, 1.0), normal, place);
}
@fragment fn fragment(in: Varying) -> @location(0) vec4<f32> {
    let light = 0.4 + 0.6 * max(dot(normalize(in.n), vec3<f32>(0.48, 0.6, 0.64)), 0.0);
    return textureSample(image, filtering, in.uv) * parameters.tint * vec4<f32>(vec3<f32>(light), 1.0);
}
"""
WGSL_COMPUTE = """
@group(0) @binding(0) var pattern: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let colour = vec4<f32>(f32(id.x & 7u), f32(id.y & 7u), f32(((id.x ^ id.y) >> 2u) & 3u), 7.0) / 7.0;
    textureStore(pattern, vec2<i32>(id.xy), colour);
}
"""
Floats = npt.NDArray[np.float32]


def vertices() -> Floats:
    """Position, normal and texture coordinates of the three visible faces of a box, as triangles."""
    found = []
    for normal, right, up in (np.array(face, np.float32) for face in FACES):
        for a, b in ((-1, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)):
            found.append([*(normal + a * right + b * up), *normal, a + 1, b + 1])
    return np.array(found, np.float32)


def boxes() -> Floats:
    return np.array([[1.1 * n - 2.2, 0.5 * (n % 2) - 0.4, -0.8 * n, 0.55 + 0.05 * n] for n in range(BOXES)], np.float32)


def view(deepest: float) -> Floats:
    """Perspective from above and the right; depth from `deepest` (-1 or 0) to 1."""
    near, far, turn, tilt = 1.0, 20.0, -0.5, 0.4
    around = np.array([[np.cos(turn), 0, np.sin(turn), 0], [0, 1, 0, 0], [-np.sin(turn), 0, np.cos(turn), 0], [0, 0, 0, 1]])
    down = np.array([[1, 0, 0, 0], [0, np.cos(tilt), -np.sin(tilt), 0], [0, np.sin(tilt), np.cos(tilt), 0], [0, 0, 0, 1]])
    away = np.eye(4)
    away[2, 3] = -7
    scale = (far - deepest * near) / (near - far)
    seen = np.array([[3, 0, 0, 0], [0, 3, 0, 0], [0, 0, scale, (1 - deepest) * far * near / (near - far)], [0, 0, -1, 0]])
    made: Floats = (seen @ away @ down @ around).astype(np.float32)
    return made


def draw_moderngl() -> tuple[str, Any]:
    import moderngl

    context = moderngl.create_context(standalone=True, backend="egl", require=430)
    image = context.texture((TEXELS, TEXELS), 4)
    image.bind_to_image(0, read=False, write=True)
    context.compute_shader(COMPUTE).run(TEXELS // 8, TEXELS // 8)
    context.memory_barrier()
    image.build_mipmaps()
    image.filter = moderngl.LINEAR_MIPMAP_LINEAR, moderngl.LINEAR
    image.use(0)
    target = context.framebuffer([context.texture((SIZE, SIZE), 4)], context.depth_renderbuffer((SIZE, SIZE)))
    target.use()
    target.clear(0.2, 0.3, 0.4, 1.0)
    program = context.program(vertex_shader=VERTEX, fragment_shader=FRAGMENT)
    program["view"].write(view(-1).T.tobytes())
    content = [(context.buffer(vertices()), "3f 3f 2f", "position", "normal", "place"), (context.buffer(boxes()), "4f/i", "box")]
    shape = context.vertex_array(program, content)
    context.enable(moderngl.DEPTH_TEST)
    program["tint"].value = (1, 1, 1, 1)
    shape.render(instances=BOXES - 1)
    context.enable(moderngl.BLEND)
    program["tint"].value = (0.9, 0.5, 0.3, 0.5)
    shape.render(instances=BOXES)
    pixels = np.frombuffer(target.read(components=4), np.uint8).reshape(SIZE, SIZE, 4)
    return str(context.info["GL_RENDERER"]), pixels[::-1]


def draw_wgpu() -> tuple[str, Any]:
    import wgpu

    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    device = adapter.request_device_sync()
    usage = wgpu.TextureUsage
    image = device.create_texture(size=(TEXELS, TEXELS, 1), format="rgba8unorm", usage=usage.STORAGE_BINDING | usage.TEXTURE_BINDING)
    target = device.create_texture(size=(SIZE, SIZE, 1), format="rgba8unorm", usage=usage.RENDER_ATTACHMENT | usage.COPY_SRC)
    depth = device.create_texture(size=(SIZE, SIZE, 1), format="depth24plus", usage=usage.RENDER_ATTACHMENT)
    encoder = device.create_command_encoder()
    module = device.create_shader_module(code=WGSL_COMPUTE)
    pattern = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    work = encoder.begin_compute_pass()
    work.set_pipeline(pattern)
    entries = [{"binding": 0, "resource": image.create_view()}]
    work.set_bind_group(0, device.create_bind_group(layout=pattern.get_bind_group_layout(0), entries=entries))
    work.dispatch_workgroups(TEXELS // 8, TEXELS // 8)
    work.end()
    attached = {"view": target.create_view(), "clear_value": (0.2, 0.3, 0.4, 1), "load_op": "clear", "store_op": "store"}
    behind = {"view": depth.create_view(), "depth_clear_value": 1.0, "depth_load_op": "clear", "depth_store_op": "store"}
    passed = encoder.begin_render_pass(color_attachments=[attached], depth_stencil_attachment=behind)
    for blends, tint, count in ((False, (1, 1, 1, 1), BOXES - 1), (True, (0.9, 0.5, 0.3, 0.5), BOXES)):
        pipeline = _wgpu_pipeline(device, blends)
        passed.set_pipeline(pipeline)
        data = np.concatenate([view(0).T.ravel(), np.array(tint, np.float32)]).astype(np.float32)
        uniforms = device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
        sampler = device.create_sampler(mag_filter="linear", min_filter="linear", address_mode_u="repeat", address_mode_v="repeat")
        entries = [{"binding": 0, "resource": {"buffer": uniforms, "offset": 0, "size": data.nbytes}},
                   {"binding": 1, "resource": image.create_view()}, {"binding": 2, "resource": sampler}]  # fmt: skip
        passed.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
        for slot, held in enumerate((vertices(), boxes())):
            passed.set_vertex_buffer(slot, device.create_buffer_with_data(data=held, usage=wgpu.BufferUsage.VERTEX))
        passed.draw(len(vertices()), count)
    passed.end()
    device.queue.submit([encoder.finish()])
    layout = {"bytes_per_row": SIZE * 4, "rows_per_image": SIZE}
    pixels = device.queue.read_texture({"texture": target}, layout, (SIZE, SIZE, 1))
    return str(adapter.info["device"]), np.frombuffer(pixels, np.uint8).reshape(SIZE, SIZE, 4)


def _wgpu_pipeline(device: Any, blends: bool) -> Any:
    module = device.create_shader_module(code=WGSL)
    attributes = [[("float32x3", 0, 0), ("float32x3", 12, 1), ("float32x2", 24, 2)], [("float32x4", 0, 3)]]
    buffers = [{"array_stride": stride, "step_mode": step,
                "attributes": [{"format": format, "offset": offset, "shader_location": where} for format, offset, where in held]}
               for stride, step, held in zip((32, 16), ("vertex", "instance"), attributes, strict=True)]  # fmt: skip
    mixed = {"src_factor": "src-alpha", "dst_factor": "one-minus-src-alpha", "operation": "add"}
    colour = {"format": "rgba8unorm", **({"blend": {"color": mixed, "alpha": mixed}} if blends else {})}
    return device.create_render_pipeline(
        layout="auto", vertex={"module": module, "entry_point": "vertex", "buffers": buffers}, primitive={"topology": "triangle-list"},
        depth_stencil={"format": "depth24plus", "depth_write_enabled": True, "depth_compare": "less-equal"},
        fragment={"module": module, "entry_point": "fragment", "targets": [colour]})  # fmt: skip


if __name__ == "__main__":
    renderer, picture = {"moderngl": draw_moderngl, "wgpu": draw_wgpu}[sys.argv[1]]()
    print(renderer)
    np.save(sys.argv[2], picture)
