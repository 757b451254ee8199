/* Times frames with OpenGL 4 without a window: 1024 x 1024 pixels, colour and depth. Prints the seconds of the quickest frame.

       geometry SCENE COUNT FRAMES [FILE]

   terrain     COUNT x COUNT patches, each tessellated 16 x 16 and displaced by a texture
   sprites     COUNT x COUNT points, of each of which a geometry shader makes a square
   instanced   COUNT x COUNT triangles, each of which eight instances of a geometry shader copy
   feedback    COUNT x COUNT vertices whose positions and colours are captured, and not drawn
   FILE gets the pixels of the last frame, RGBA, bottom row first, or what was captured.
   cc -O2 geometry.c -lEGL -lGL -lm */
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 1024, TEXTURE = 256, CAPTURED = 32 }; /* bytes of a vertex */

struct scene {
    const char *name, *vertex, *control, *evaluation, *geometry, *fragment;
    GLenum primitive;
    int given; /* vertices for each of COUNT x COUNT */
    int captures;
};

#define PLACES /* on a grid, with colours */ \
    "#version 400\nuniform int count; out vec4 colour;\n" \
    "void main() { int n = gl_VertexID / GIVEN, corner = gl_VertexID % GIVEN; vec2 at = vec2(n % count, n / count) / count;" \
    "float turn = float(n) * .7 + float(corner) * 2.1; vec2 arm = vec2(sin(turn), cos(turn)) / count * (GIVEN == 1 ? 0. : 1.);" \
    "gl_Position = vec4(at * 1.9 - .95 + arm, .5 + .4 * sin(turn * 3.), 1); colour = vec4(at, sin(turn) * .5 + .5, 1); }"
#define PLAIN "#version 400\nin vec4 tint; out vec4 colour;\nvoid main() { colour = tint; }"

static const struct scene scenes[] = {
    {"terrain",
     "#version 400\nuniform int count;\n" /* a patch's corner */
     "void main() { int patch_ = gl_VertexID / 4, corner = gl_VertexID % 4;"
     "gl_Position = vec4(patch_ % count + corner % 2, patch_ / count + corner / 2, 0, count); }",
     "#version 400\nlayout(vertices = 4) out;\n"
     "void main() { gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position;"
     "for (int i = 0; i < 4; i++) gl_TessLevelOuter[i] = 16.; for (int i = 0; i < 2; i++) gl_TessLevelInner[i] = 16.; }",
     "#version 400\nlayout(quads, equal_spacing, ccw) in; uniform sampler2D image; out vec2 t; out float height;\n"
     "void main() { vec4 low = mix(gl_in[0].gl_Position, gl_in[1].gl_Position, gl_TessCoord.x),"
     "high = mix(gl_in[2].gl_Position, gl_in[3].gl_Position, gl_TessCoord.x), p = mix(low, high, gl_TessCoord.y);"
     "t = p.xy / p.w; height = textureLod(image, t, 0.).x; vec2 at = t * 2. - 1.; float w = 1.5 + .8 * at.y;"
     "gl_Position = vec4(at.x * 1.4, at.y * 1.2 + .5 * height - .2, (.2 + .3 * at.y) * w, w); }",
     NULL, "#version 400\nin vec2 t; in float height; out vec4 colour;\nvoid main() { colour = vec4(height, t, 1); }", GL_PATCHES, 4},
    {"sprites", PLACES, NULL, NULL,
     "#version 400\nlayout(points) in; layout(triangle_strip, max_vertices = 4) out; uniform int count; in vec4 colour[]; out vec4 tint;\n"
     "void main() { float size = 1.2 / count; for (int i = 0; i < 4; i++) { vec2 corner = vec2(i & 1, i >> 1) * 2. - 1.;"
     "gl_Position = gl_in[0].gl_Position + vec4(corner * size, 0, 0); tint = colour[0] * (corner.x * .3 + .7); EmitVertex(); } }",
     PLAIN, GL_POINTS, 1},
    {"instanced", PLACES, NULL, NULL,
     "#version 400\nlayout(triangles, invocations = 8) in; layout(triangle_strip, max_vertices = 3) out; in vec4 colour[]; out vec4 tint;\n"
     "void main() { float turn = float(gl_InvocationID) * .785; vec2 away = vec2(cos(turn), sin(turn)) * .02;"
     "for (int i = 0; i < 3; i++) { gl_Position = gl_in[i].gl_Position + vec4(away, turn * .01, 0); tint = colour[i] * (1. - turn * .1);"
     "EmitVertex(); } }", PLAIN, GL_TRIANGLES, 3},
    {"feedback",
     "#version 400\nuniform int count; out vec4 tint;\nvoid main() { int n = gl_VertexID; vec2 at = vec2(n % count, n / count) / count;"
     "gl_Position = vec4(at * 2. - 1., at.x * at.y, 1); tint = vec4(at, 1. - at.x, float(n)); }", NULL, NULL, NULL, PLAIN, GL_POINTS, 1, 1},
};

static void fail(const char *what)
{
    fprintf(stderr, "geometry: %s failed\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void make_context(void)
{
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE};
    EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 0, EGL_CONTEXT_OPENGL_PROFILE_MASK,
                        EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
    EGLConfig config;
    EGLint found = 0;
    if (!eglInitialize(display, NULL, NULL) || !eglChooseConfig(display, wanted, &config, 1, &found) || !found)
        fail("EGL");
    eglBindAPI(EGL_OPENGL_API);
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
    if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
        fail("making the context");
    fprintf(stderr, "%s\n", glGetString(GL_RENDERER));
}

static void make_target(void)
{
    GLuint framebuffer, buffers[2], arrays;
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glGenRenderbuffers(2, buffers);
    for (int i = 0; i < 2; i++) {
        glBindRenderbuffer(GL_RENDERBUFFER, buffers[i]);
        glRenderbufferStorage(GL_RENDERBUFFER, i ? GL_DEPTH_COMPONENT24 : GL_RGBA8, SIDE, SIDE);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, i ? GL_DEPTH_ATTACHMENT : GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, buffers[i]);
    }
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
        fail("the framebuffer");
    glGenVertexArrays(1, &arrays);
    glBindVertexArray(arrays);
}

static void make_texture(void)
{
    static unsigned char texels[TEXTURE * TEXTURE * 4];
    for (int y = 0; y < TEXTURE; y++)
        for (int x = 0; x < TEXTURE; x++) {
            float bumps = sinf(x * .06f) * cosf(y * .05f) + sinf(x * .11f + y * .07f);
            texels[4 * (y * TEXTURE + x)] = (unsigned char)(127 + 60 * bumps);
        }
    GLuint texture;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, TEXTURE, TEXTURE, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
}

static void attach(GLuint program, GLenum kind, const char *text, int given)
{
    char define[40];
    if (!text)
        return;
    GLuint made = glCreateShader(kind);
    int first = (int)strlen("#version 400\n"); /* which nothing may precede */
    const char *parts[] = {text, define, text + first};
    const GLint lengths[] = {first, -1, -1};
    snprintf(define, sizeof define, "#define GIVEN %d\n", given);
    glShaderSource(made, 3, parts, lengths);
    glCompileShader(made);
    glAttachShader(program, made);
}

static void make_program(const struct scene *scene, int count)
{
    GLuint program = glCreateProgram();
    GLint linked;
    static const char *const captured[] = {"gl_Position", "tint"};
    attach(program, GL_VERTEX_SHADER, scene->vertex, scene->given);
    attach(program, GL_TESS_CONTROL_SHADER, scene->control, 0);
    attach(program, GL_TESS_EVALUATION_SHADER, scene->evaluation, 0);
    attach(program, GL_GEOMETRY_SHADER, scene->geometry, 0);
    attach(program, GL_FRAGMENT_SHADER, scene->fragment, 0);
    if (scene->captures)
        glTransformFeedbackVaryings(program, 2, captured, GL_INTERLEAVED_ATTRIBS);
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &linked);
    if (!linked)
        fail("linking the program");
    glUseProgram(program);
    glUniform1i(glGetUniformLocation(program, "count"), count);
}

static void make_capture(int count)
{
    GLuint buffer;
    glGenBuffers(1, &buffer);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, buffer);
    glBufferData(GL_TRANSFORM_FEEDBACK_BUFFER, (GLsizeiptr)count * count * CAPTURED, NULL, GL_STREAM_COPY);
    glEnable(GL_RASTERIZER_DISCARD);
}

static void draw(const struct scene *scene, int count)
{
    if (scene->captures)
        glBeginTransformFeedback(scene->primitive);
    glDrawArrays(scene->primitive, 0, count * count * scene->given);
    if (scene->captures)
        glEndTransformFeedback();
}

static void write_captured(const char *file, int count)
{
    size_t size = (size_t)count * count * CAPTURED;
    FILE *out = fopen(file, "wb");
    void *held = malloc(size);
    glGetBufferSubData(GL_TRANSFORM_FEEDBACK_BUFFER, 0, (GLsizeiptr)size, held);
    if (!out || fwrite(held, 1, size, out) != size || fclose(out))
        fail("writing what was captured");
    free(held);
}

static void write_pixels(const char *file)
{
    static unsigned char pixels[SIDE * SIDE * 4];
    FILE *out = fopen(file, "wb");
    glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    if (!out || fwrite(pixels, 4, SIDE * SIDE, out) != SIDE * SIDE || fclose(out))
        fail("writing the pixels");
}

int main(int arguments, char **argument)
{
    if (arguments < 4)
        return fprintf(stderr, "geometry SCENE COUNT FRAMES [FILE]\n"), 2;
    const struct scene *scene = NULL;
    int count = atoi(argument[2]);
    for (unsigned i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (!strcmp(scenes[i].name, argument[1]))
            scene = &scenes[i];
    if (!scene)
        fail("finding the scene");
    make_context();
    make_target();
    make_texture();
    make_program(scene, count);
    glViewport(0, 0, SIDE, SIDE);
    glEnable(GL_DEPTH_TEST);
    if (scene->primitive == GL_PATCHES)
        glPatchParameteri(GL_PATCH_VERTICES, scene->given);
    if (scene->captures)
        make_capture(count);
    double best = 1e9;
    for (int frame = 0; frame < atoi(argument[3]); frame++) {
        double began = now();
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
        draw(scene, count);
        glFinish();
        if (now() - began < best)
            best = now() - began;
    }
    if (arguments > 4 && scene->captures)
        write_captured(argument[4], count);
    else if (arguments > 4)
        write_pixels(argument[4]);
    printf("%.9f\n", best);
    return 0;
}
