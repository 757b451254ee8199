#version 450
layout(vertices = 5) out;
layout(location = 0) in vec4 colour[];
layout(location = 0) out vec4 out_colour[];
layout(location = 1) patch out vec4 whole;

/* More outputs than inputs; one reads what others have written. */
void main() {
    gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID % 4].gl_Position;
    out_colour[gl_InvocationID] = colour[gl_InvocationID % 4];
    barrier();
    if (gl_InvocationID == 0) {
        whole = (out_colour[4] + out_colour[2]) / 4;
        gl_TessLevelOuter[0] = 3;
        gl_TessLevelOuter[1] = 4.5;
        gl_TessLevelOuter[2] = 5;
        gl_TessLevelOuter[3] = 6;
        gl_TessLevelInner[0] = 7;
        gl_TessLevelInner[1] = 3.2;
    }
}
