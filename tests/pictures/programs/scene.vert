#version 450
layout(location = 0) in vec4 position;
layout(location = 1) in vec4 colour;
layout(location = 0) out vec4 out_colour;

void main() {
    gl_Position = position + vec4(0.2 * gl_InstanceIndex, 0, 0, 0);
    out_colour = colour;
}
