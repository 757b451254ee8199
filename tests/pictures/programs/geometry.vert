#version 450
layout(location = 0) out vec4 colour;

/* Vertices on a coarse grid, for triangles, patches and points. */
void main() {
    int n = gl_VertexIndex;
    gl_Position = vec4(float(n * 7 % 11) / 5 - 0.993, float(n * 5 % 13) / 6 - 1.11, 0.1 + 0.1 * (n % 3), 1);
    colour = vec4(n % 2, n % 3 / 2.0, n % 5 / 4.0, 1);
}
