#version 450
layout(constant_id = 0) const uint masks = 0;
layout(location = 0) flat in vec4 colour;
layout(location = 0) out vec4 pixel;

void main() {
    pixel = colour;
    gl_SampleMask[0] = masks != 0 && (int(gl_FragCoord.x) & 4) != 0 ? gl_SampleMaskIn[0] & 0xcccd : gl_SampleMaskIn[0];
}
