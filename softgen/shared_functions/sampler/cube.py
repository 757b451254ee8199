"""Cube maps: from directions to faces and coordinates on them, and across their edges.

Faces and their axes are OpenGL's ("Cube Map Texture Selection"); of equal axes z comes first, then y
(public: Direct3D; manuals are silent).

Uses   places as floats, texel numbers as i32, faces as u32
"""

from __future__ import annotations

from collections.abc import Sequence

from softgen.lanes.machine import Machine
from softgen.lanes.types import i32, u32
from softgen.lanes.value import Value

# Of each face the major axis, and those of u and v.
NAMES = ("+x -z -y", "-x +z -y", "+y +x +z", "-y +x -z", "+z +x -y", "-z -x -y")
FACES = [[("xyz".index(part[1]), part[0] == "-") for part in name.split()] for name in NAMES]  # axes, and which are negated


def _signed(value: Value, negative: bool) -> Value:
    return -value if negative else value


def _by_face(m: Machine, face: Value, choices: Sequence[Value]) -> Value:
    found = choices[-1]
    for number in reversed(range(len(choices) - 1)):
        found = m.select(face == number, choices[number], found)
    return found


def face_of(m: Machine, direction: Sequence[Value]) -> Value:
    """The face that a direction meets."""
    x, y, z = (m.absolute(component) for component in direction)
    negative = [m.select(m.sign_bit(component), m.constant(u32, 1, component.lanes), 0) for component in direction]
    along_z, along_y = (z >= x) & (z >= y), y >= x
    return m.select(along_z, negative[2] + 4, m.select(along_y, negative[1] + 2, negative[0]))


def axes(m: Machine, face: Value, vector: Sequence[Value]) -> tuple[Value, Value, Value]:
    """A vector as the face sees it: along its major axis, u and v."""
    found = [_by_face(m, face, [_signed(vector[FACES[number][which][0]], FACES[number][which][1]) for number in range(6)])
             for which in range(3)]  # fmt: skip
    return found[0], found[1], found[2]


def project(m: Machine, face: Value, direction: Sequence[Value]) -> list[Value]:
    """Coordinates on a face, from 0 to 1."""
    major, along, down = axes(m, face, direction)
    return [m.div(coordinate, major) * 0.5 + 0.5 for coordinate in (along, down)]


def project_gradient(m: Machine, face: Value, direction: Sequence[Value], gradient: Sequence[Value]) -> list[Value]:
    """What a change of direction changes of the coordinates on a face."""
    major, *sides = axes(m, face, direction)
    forward, *steps = axes(m, face, gradient)
    return [m.div(step * major - side * forward, major * major) * 0.5 for side, step in zip(sides, steps, strict=True)]


def across_edges(m: Machine, face: Value, i: Value, j: Value, size: Value) -> tuple[Value, Value, Value, Value]:
    """The face and texel that a texel number at most one outside a face means, and where it would be at a corner of the cube: there is no
    such texel, and what is found instead is some texel of the cube."""
    s, t = ((coordinate + coordinate) + 1 - size for coordinate in (i, j))  # from the middle of the face, in half texels
    out = [(m.absolute(coordinate) > size) for coordinate in (s, t)]
    s, t = (m.select(coordinate > size, size, m.select(coordinate < -size, -size, coordinate)) for coordinate in (s, t))
    depth = m.select(out[0] | out[1], size - 1, size)  # a texel over the edge is the first one down the next face
    vector = []
    for axis in range(3):
        choices = []
        for major, along, down in FACES:
            ways = zip((depth, s, t), (major, along, down), strict=True)
            part, sign = next((component, way[1]) for component, way in ways if way[0] == axis)
            choices.append(_signed(part, sign))
        vector.append(_by_face(m, face, choices))
    reaches = [m.absolute(component) == size for component in vector]
    negative = [m.select(component < 0, m.constant(u32, 1, component.lanes), 0) for component in vector]
    found = m.select(reaches[2], negative[2] + 4, m.select(reaches[1], negative[1] + 2, negative[0]))
    columns = [m.max(m.convert(coordinate + size - 1, i32) >> 1, 0) for coordinate in axes(m, found, vector)[1:]]
    return found, columns[0], columns[1], out[0] & out[1]
