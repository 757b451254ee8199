#version 450
layout(location = 0) flat out vec4 colour;

/* Three triangles that go through each other. */
void main() {
    const vec3 corners[9] = vec3[](vec3(-0.91, -0.83, 0.2), vec3(0.87, -0.39, 0.8), vec3(-0.23, 0.93, 0.4),
                                   vec3(0.81, -0.95, 0.1), vec3(0.63, 0.77, 0.6), vec3(-0.97, 0.11, 0.7),
                                   vec3(-0.71, 0.91, 0.3), vec3(0.13, -0.87, 0.5), vec3(0.95, 0.59, 0.9));
    const vec3 colours[3] = vec3[](vec3(1, 0.2, 0), vec3(0, 1, 0.4), vec3(0.6, 0, 1));
    gl_Position = vec4(corners[gl_VertexIndex], 1);
    colour = vec4(colours[gl_VertexIndex / 3], 1);
}
