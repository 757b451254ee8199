#version 450
layout(xfb_buffer = 0, xfb_stride = 28, xfb_offset = 0, location = 0) out vec3 where;
layout(xfb_buffer = 0, xfb_offset = 20, location = 1) out vec2 what;
layout(location = 2) out vec4 colour;

void main() {
    int n = gl_VertexIndex;
    where = vec3(n, n * 0.5, -n);
    what = vec2(n * n, 3);
    colour = vec4(1, 0.5, 0.25, 1);
    gl_Position = vec4(float(n * 7 % 11) / 5 - 0.993, float(n * 5 % 13) / 6 - 1.11, 0.1, 1);
    gl_PointSize = 1;
}
