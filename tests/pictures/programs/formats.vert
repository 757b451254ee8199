/* A vertex attribute of a format for the pixel that the vertex is (ATTRIBUTE), or a triangle that covers everything. */
#version 450
layout(push_constant) uniform Parameters {
    ivec4 size;
    vec4 offset;
};
#ifdef ATTRIBUTE
layout(location = 0) in ATTRIBUTE fetched;
layout(location = 0) flat out VECTOR value;
#endif

void main() {
#ifdef ATTRIBUTE
    value = VECTOR(fetched);
    gl_Position = vec4((gl_VertexIndex + 0.5) / size.x * 2 - 1, 0, 0, 1);
    gl_PointSize = 1;
#else
    vec2 corner = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 4 - 1;
    gl_Position = vec4(corner, offset.x + offset.y * corner.x, 1);
#endif
}
