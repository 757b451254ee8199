/* The value of a vertex (ATTRIBUTE), or a texel of a buffer, as the colour of a pixel. */
#version 450
layout(push_constant) uniform Parameters {
    ivec4 size;
    vec4 offset;
};
layout(location = 0) out VECTOR colour;
#ifdef ATTRIBUTE
layout(location = 0) flat in VECTOR value;
#else
layout(set = 0, binding = 1) readonly buffer Texels {
    VECTOR texels[];
};
#endif

void main() {
#ifdef ATTRIBUTE
    colour = value;
#else
    ivec2 at = ivec2(gl_FragCoord.xy);
    colour = texels[at.y * size.x + at.x];
#endif
}
