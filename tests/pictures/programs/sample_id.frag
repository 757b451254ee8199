#version 450
layout(location = 0) flat in vec4 colour;
layout(location = 0) out vec4 pixel;

/* Runs for each sample. */
void main() {
    pixel = vec4(colour.rgb * (16.0 - gl_SampleID) / 16, 1);
}
