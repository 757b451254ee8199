#version 450
layout(quads, fractional_odd_spacing, ccw) in;
layout(location = 0) in vec4 colour[];
layout(location = 1) patch in vec4 whole;
layout(location = 0) out vec4 out_colour;

void main() {
    vec4 low = mix(gl_in[0].gl_Position, gl_in[1].gl_Position, gl_TessCoord.x);
    vec4 high = mix(gl_in[3].gl_Position, gl_in[2].gl_Position, gl_TessCoord.x);
    gl_Position = mix(low, high, gl_TessCoord.y);
    out_colour = whole + colour[gl_PrimitiveID % 3] * 0.5 + vec4(gl_TessCoord, 0) * 0.3;
}
