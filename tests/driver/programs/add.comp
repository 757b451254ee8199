#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
void main() { uint i = gl_GlobalInvocationID.x; b[i] = a[i] * 3u + i; }
