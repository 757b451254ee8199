#version 450
layout(location = 2) in vec4 colour;
layout(location = 0) out vec4 pixel;

void main() {
    pixel = colour;
}
