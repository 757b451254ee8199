/* Texels of a format from or into a buffer: through a sampler (READ, COMPARE), as a storage image (LOAD, STORE, ADD), as a texel buffer
   (FETCH), as a storage texel buffer (LOAD_BUFFER, STORE_BUFFER). VECTOR, TYPE, FORMAT and PLACE are those of the format and its image. */
#version 450
layout(local_size_x = 8) in;
layout(push_constant) uniform Parameters {
    ivec4 size;
    vec4 offset;
};
layout(set = 0, binding = 1) buffer Texels {
    VECTOR texels[];
};
#if defined READ || defined COMPARE
layout(set = 0, binding = 0) uniform TYPE source;
#elif defined FETCH
layout(set = 0, binding = 3) uniform TYPE source;
#elif defined LOAD
layout(set = 0, binding = 2, FORMAT) uniform readonly TYPE source;
#elif defined ADD
layout(set = 0, binding = 2, FORMAT) uniform TYPE target;
#elif defined STORE
layout(set = 0, binding = 2) uniform writeonly TYPE target;
#elif defined LOAD_BUFFER
layout(set = 0, binding = 4, FORMAT) uniform readonly TYPE source;
#else
layout(set = 0, binding = 4) uniform writeonly TYPE target;
#endif

void main() {
    int index = int(gl_GlobalInvocationID.x);
    ivec3 at = ivec3(index % size.x, index / size.x % size.y, index / (size.x * size.y));
    vec3 place = (vec3(at) + offset.xyz) / vec3(size.xyz);
    if (at.z >= size.z)
        return;
#if defined COMPARE
    texels[index] = vec4(textureLod(source, vec3(place.xy, offset.w), 0));
#elif defined READ
    texels[index] = textureLod(source, place.PLACE, 0);
#elif defined FETCH
    texels[index] = texelFetch(source, index);
#elif defined LOAD
    texels[index] = imageLoad(source, at.PLACE);
#elif defined ADD
    texels[index] = VECTOR(imageAtomicAdd(target, at.PLACE, texels[index].x));
#elif defined STORE
    imageStore(target, at.PLACE, texels[index]);
#elif defined LOAD_BUFFER
    texels[index] = imageLoad(source, index);
#else
    imageStore(target, index, texels[index]);
#endif
}
