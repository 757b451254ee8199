#version 450
layout(constant_id = 0) const int samples = 1;
layout(set = 0, binding = 0) uniform sampler2DMS source;
layout(location = 0) out vec4 pixel;

void main() {
    ivec2 place = ivec2(gl_FragCoord.xy);
    pixel = texelFetch(source, place, (place.x + 3 * place.y) % samples);
}
