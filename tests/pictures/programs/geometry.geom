#version 450
layout(triangles, invocations = 3) in;
layout(triangle_strip, max_vertices = 6) out;
layout(location = 0) in vec4 colour[];
layout(location = 0) out vec4 out_colour;

/* Each instance has the triangle elsewhere; the second one twice, which makes two strips. */
void main() {
    for (int i = 0; i < (gl_InvocationID == 1 ? 6 : 3); i++) {
        gl_Position = gl_in[i % 3].gl_Position * 0.5 + vec4(gl_InvocationID * 0.4 - 0.4, i / 3 * 0.3, 0, 0.5);
        out_colour = colour[i % 3] * (0.3 * gl_InvocationID + 0.3);
        EmitVertex();
        if (i == 2)
            EndPrimitive();
    }
}
