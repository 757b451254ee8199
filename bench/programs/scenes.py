"""Frames of real scenes through moderngl, timed: `scenes.py SCENE FRAMES [FILE]` prints the seconds of the quickest frame.

mesh        131,072 lit triangles with a trilinear texture, indexed
procedural  a shader that covers everything: five octaves of noise from sines
sprites     3,000 textured, blended quads
cubes       1,000 draws of a cube, a uniform changed before each
shadow      a shadow map, then a plane and boxes that compare with it at 3x3 places
blur        a half-float picture blurred along both axes, 9 bilinear samples a pass

640 x 480 pixels. FILE gets those of the last frame, RGBA, bottom row first. FRAMES of `-`: each line of standard input says how many frames
are drawn next, and is answered by their seconds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 640, 480
GRID, SPRITES, CUBES, BOXES = 256, 3000, 1000, 40
SHADOW = 1024  # texels of the shadow map's side
Floats = npt.NDArray[np.float32]
Draw = Callable[[int], None]

CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]], np.float32)
WHOLE = "#version 330\nin vec2 at; out vec2 place; void main() { place = at * 0.5 + 0.5; gl_Position = vec4(at, 0, 1); }"

MESH = ("""#version 330
uniform mat4 view; in vec3 at; in vec3 normal; in vec2 uv; out vec3 n, p; out vec2 t;
void main() { n = normal; p = at; t = uv; gl_Position = view * vec4(at, 1); }""", """#version 330
uniform sampler2D image; uniform vec3 light, eye; in vec3 n, p; in vec2 t; out vec4 colour;
void main() {
    vec3 N = normalize(n), L = normalize(light - p), H = normalize(L + normalize(eye - p));
    vec3 base = texture(image, t).rgb;
    colour = vec4(base * (0.2 + max(dot(N, L), 0.0)) + pow(max(dot(N, H), 0.0), 32.0) * 0.4, 1);
}""")  # fmt: skip

PROCEDURAL = """#version 330
uniform float time; in vec2 place; out vec4 colour;
float wave(vec2 p) { return sin(p.x) * sin(p.y) + 0.5 * sin(p.x * 1.7 + p.y * 1.3 + time) * sin(p.y * 2.1); }
void main() {
    vec2 p = place * 6.0;
    float sum = 0.0, weight = 0.5;
    for (int octave = 0; octave < 5; octave++) {
        sum += weight * wave(p);
        p = mat2(1.6, 1.2, -1.2, 1.6) * p + time;
        weight *= 0.5;
    }
    colour = vec4(0.5 + 0.5 * sum, fract(sum * 2.0), 0.5 - 0.5 * sum, 1);
}"""

SPRITE = ("""#version 330
in vec2 at; in vec4 sprite; in vec4 tint; out vec2 t; out vec4 c;
void main() { t = at * 0.5 + 0.5; c = tint; gl_Position = vec4(at * sprite.zw + sprite.xy, 0, 1); }""", """#version 330
uniform sampler2D image; in vec2 t; in vec4 c; out vec4 colour;
void main() { colour = texture(image, t) * c; }""")  # fmt: skip

CUBE = ("""#version 330
uniform mat4 view; uniform vec4 where; in vec3 at; in vec3 normal; out vec3 n;
void main() { n = normal; gl_Position = view * vec4(at * where.w + where.xyz, 1); }""", """#version 330
in vec3 n; out vec4 colour;
void main() { colour = vec4(vec3(0.6, 0.8, 0.4) * (0.3 + max(dot(normalize(n), vec3(0.48, 0.6, 0.64)), 0.0)), 1); }""")  # fmt: skip

DEPTH = ("#version 330\nuniform mat4 light; in vec3 at; void main() { gl_Position = light * vec4(at, 1); }",
         "#version 330\nvoid main() {}")  # fmt: skip
SHADOWED = ("""#version 330
uniform mat4 view, light; in vec3 at; in vec3 normal; out vec3 n; out vec4 s;
void main() { n = normal; s = light * vec4(at, 1); gl_Position = view * vec4(at, 1); }""", """#version 330
uniform sampler2DShadow map; in vec3 n; in vec4 s; out vec4 colour;
void main() {
    vec3 q = s.xyz / s.w * 0.5 + 0.5;
    float lit = 0.0;
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            lit += texture(map, vec3(q.xy + vec2(x, y) / 1024.0, q.z - 0.003));
    colour = vec4(vec3(0.7, 0.6, 0.5) * (0.2 + lit / 9.0 * max(dot(normalize(n), vec3(0.4, 0.8, 0.45)), 0.0)), 1);
}""")  # fmt: skip

BLUR = """#version 330
uniform sampler2D image; uniform vec2 step; in vec2 place; out vec4 colour;
void main() {
    vec4 sum = texture(image, place) * 0.2;
    for (int i = 1; i <= 4; i++)
        sum += (texture(image, place + step * (2.0 * float(i) - 0.5)) + texture(image, place - step * (2.0 * float(i) - 0.5))) * 0.1;
    colour = sum;
}"""


# -- shapes ------------------------------------------------------------------------------------------------------------


def looking(eye: tuple[float, float, float], reach: float = 1.6, near: float = 0.5, far: float = 30.0) -> bytes:
    """Perspective from `eye` to the origin, column by column."""
    back = np.array(eye) / np.linalg.norm(eye)
    right = np.cross((0, 1, 0), back) / np.linalg.norm(np.cross((0, 1, 0), back))
    turned = np.eye(4)
    turned[:3, :3] = right, np.cross(back, right), back
    turned[:3, 3] = -turned[:3, :3] @ np.array(eye)
    seen = np.array([[reach * HEIGHT / WIDTH, 0, 0, 0], [0, reach, 0, 0],
                     [0, 0, (far + near) / (near - far), 2 * far * near / (near - far)], [0, 0, -1, 0]])  # fmt: skip
    return (seen @ turned).T.astype(np.float32).tobytes()


def grid() -> tuple[Floats, npt.NDArray[np.int32]]:
    """A bumpy plane of GRID x GRID squares: position, normal and texture coordinates; and its triangles."""
    side = np.linspace(-2.5, 2.5, GRID + 1)
    x, z = (axis.ravel() for axis in np.meshgrid(side, side))
    normal = np.stack([-0.75 * np.cos(3 * x) * np.cos(2 * z), np.ones_like(x), 0.5 * np.sin(3 * x) * np.sin(2 * z)], 1)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    points = np.column_stack([x, 0.25 * np.sin(3 * x) * np.cos(2 * z), z, normal, x * 2, z * 2]).astype(np.float32)
    first = (np.arange(GRID)[:, None] * (GRID + 1) + np.arange(GRID)).ravel()
    order = np.stack([first, first + GRID + 1, first + 1, first + 1, first + GRID + 1, first + GRID + 2], 1)
    return points, order.astype(np.int32)


def box(centre: tuple[float, float, float], half: float) -> Floats:
    """Position and normal of a box's 36 vertices."""
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            face = np.zeros((6, 6), np.float32)
            face[:, axis], face[:, 3 + axis] = sign, sign
            face[:, (axis + 1) % 3], face[:, (axis + 2) % 3] = CORNERS[:, 0] * sign, CORNERS[:, 1]
            faces.append(face)
    made = np.concatenate(faces)
    made[:, :3] = made[:, :3] * half + centre
    return made


def picture(context: Any, side: int = 256) -> Any:
    """A texture with all mip levels."""
    y, x = np.mgrid[:side, :side]
    texels = np.stack([x ^ y, 2 * x & 255, (x // 16 + y // 16) % 2 * 200 + 30, 255 - np.hypot(x - side / 2, y - side / 2) * 1.4], -1)
    made = context.texture((side, side), 4, texels.clip(0, 255).astype(np.uint8).tobytes())
    made.build_mipmaps()
    made.filter = moderngl.LINEAR_MIPMAP_LINEAR, moderngl.LINEAR
    return made


# -- scenes: each prepares, and gives what draws frame n ------------------------------------------------------------------


def mesh(context: Any, target: Any) -> Draw:
    points, order = grid()
    program, image = context.program(*MESH), picture(context)
    shape = context.vertex_array(program, [(context.buffer(points), "3f 3f 2f", "at", "normal", "uv")], context.buffer(order))
    program["light"], program["eye"] = (2.0, 3.0, 1.0), (0.0, 2.2, 3.4)
    program["view"].write(looking((0.0, 2.2, 3.4)))
    context.enable(moderngl.DEPTH_TEST)

    def draw(frame: int) -> None:
        target.use()
        target.clear(0.1, 0.1, 0.2, 1.0, 1.0)
        image.use(0)
        shape.render()

    return draw


def whole(context: Any, fragment: str) -> tuple[Any, Any]:
    """A program that draws to all pixels, and what it draws."""
    program = context.program(WHOLE, fragment)
    return program, context.vertex_array(program, [(context.buffer(CORNERS), "2f", "at")])


def procedural(context: Any, target: Any) -> Draw:
    program, shape = whole(context, PROCEDURAL)

    def draw(frame: int) -> None:
        target.use()
        program["time"] = frame * 0.05
        shape.render()

    return draw


def sprites(context: Any, target: Any) -> Draw:
    random = np.random.default_rng(3)
    numbers = random.random((SPRITES, 8), np.float32)
    numbers[:, :2] = numbers[:, :2] * 2 - 1
    numbers[:, 2], numbers[:, 3] = (16 + 32 * numbers[:, 2]) / WIDTH, (16 + 32 * numbers[:, 3]) / HEIGHT
    program, image = context.program(*SPRITE), picture(context)
    content = [(context.buffer(CORNERS), "2f", "at"), (context.buffer(numbers), "4f 4f/i", "sprite", "tint")]
    shape = context.vertex_array(program, content)
    context.enable(moderngl.BLEND)

    def draw(frame: int) -> None:
        target.use()
        target.clear(0.1, 0.1, 0.2, 1.0)
        image.use(0)
        shape.render(instances=SPRITES)

    return draw


def cubes(context: Any, target: Any) -> Draw:
    program = context.program(*CUBE)
    shape = context.vertex_array(program, [(context.buffer(box((0, 0, 0), 1)), "3f 3f", "at", "normal")])
    program["view"].write(looking((1.0, 3.0, 6.0)))
    where, context_depth = program["where"], moderngl.DEPTH_TEST
    context.enable(context_depth)
    places = [(n % 32 * 0.2 - 3.2, math.sin(n * 0.7) * 0.4, n // 32 * 0.2 - 3.2, 0.06) for n in range(CUBES)]

    def draw(frame: int) -> None:
        target.use()
        target.clear(0.1, 0.1, 0.2, 1.0, 1.0)
        for place in places:
            where.value = place
            shape.render()

    return draw


def shadow(context: Any, target: Any) -> Draw:
    floor = np.array([[8 * x, -0.5, -8 * z, 0, 1, 0] for x, z in CORNERS], np.float32)
    boxes = [box((n % 8 - 3.5, 0.1 * (n % 3), n // 8 - 2.5), 0.2 + 0.02 * (n % 5)) for n in range(BOXES)]
    content = context.buffer(np.concatenate([floor, *boxes]))
    first, second = context.program(*DEPTH), context.program(*SHADOWED)
    deep = context.depth_texture((SHADOW, SHADOW))
    deep.compare_func, deep.filter = "<=", (moderngl.LINEAR, moderngl.LINEAR)
    cast = context.framebuffer([], deep)
    shapes = [context.vertex_array(first, [(content, "3f 12x", "at")]),
              context.vertex_array(second, [(content, "3f 3f", "at", "normal")])]  # fmt: skip
    for program in (first, second):
        program["light"].write(looking((3.0, 6.0, 3.4), 1.1))
    second["view"].write(looking((0.0, 4.0, 6.0)))
    context.enable(moderngl.DEPTH_TEST)

    def draw(frame: int) -> None:
        cast.use()
        cast.clear(depth=1.0)
        shapes[0].render()
        target.use()
        target.clear(0.1, 0.1, 0.2, 1.0, 1.0)
        deep.use(0)
        shapes[1].render()

    return draw


def blur(context: Any, target: Any) -> Draw:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    texels = np.stack([np.sin(x * 0.2) + 1, np.cos(y * 0.13) * 2 + 2, (x // 32 + y // 32) % 2 * 4.0, np.ones_like(x)], -1)
    images = [context.texture((WIDTH, HEIGHT), 4, texels.astype(np.float16).tobytes(), dtype="f2"),
              context.texture((WIDTH, HEIGHT), 4, dtype="f2")]  # fmt: skip
    between = context.framebuffer([images[1]])
    program, shape = whole(context, BLUR)

    def draw(frame: int) -> None:
        for into, image, step in ((between, images[0], (1 / WIDTH, 0)), (target, images[1], (0, 1 / HEIGHT))):
            into.use()
            image.use(0)
            program["step"] = step
            shape.render()

    return draw


SCENES = {scene.__name__: scene for scene in (mesh, procedural, sprites, cubes, shadow, blur)}


def quickest(context: Any, draw: Draw, frames: int, first: int) -> float:
    """Seconds of the quickest of `frames` frames, the first of which has number `first`."""
    best = math.inf
    for frame in range(first, first + frames):
        began = time.perf_counter()
        draw(frame)
        context.finish()
        best = min(best, time.perf_counter() - began)
    return best


def main(name: str, frames: str, file: str = "") -> None:
    without_window: dict[str, Any] = {"standalone": True, "backend": "egl"}
    context: Any = moderngl.create_context(**without_window)
    print(context.info["GL_RENDERER"], file=sys.stderr)
    target = context.framebuffer([context.texture((WIDTH, HEIGHT), 4)], context.depth_renderbuffer((WIDTH, HEIGHT)))
    draw, drawn = SCENES[name](context, target), 0
    for line in sys.stdin if frames == "-" else [frames]:
        print(f"{quickest(context, draw, int(line), drawn):.9f}", flush=True)
        drawn += int(line)
    if file:
        with open(file, "wb") as out:
            out.write(target.read(components=4))


if __name__ == "__main__":
    main(*sys.argv[1:])
