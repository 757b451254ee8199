/* Times frames with OpenGL ES 3 without a window: 1024 x 1024 pixels, colour and depth. Prints the seconds of the quickest frame.

       graphics SCENE[:SAMPLES] COUNT FRAMES [FILE]

   fill      4 textured quads in perspective that cover everything, from back to front
   mesh      a bumpy grid of COUNT x COUNT textured quads, as triangles
   draws     COUNT draws of a triangle that covers no sample, without a change of state
   uniforms  the same, with a uniform changed before each
   vertices  a strip of COUNT triangles outside the view
   objects   a strip of COUNT triangles inside the view that cover no sample
   hidden    COUNT quads behind a nearer one
   flat      COUNT quads of one colour, without a depth test
   With SAMPLES, 2 or more, a pixel has so many, and a frame ends with their resolve.
   FILE gets the pixels of the last frame, RGBA, bottom row first.
   cc -O2 graphics.c -lEGL -lGLESv2 -lm */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 1024, TEXTURE = 512 };
typedef struct {
    float x, y, z, w, u, v;
} Vertex;

static const char *scene;
static int count, samples;
static GLint colour;
static GLuint target, resolved;
static Vertex *vertices;
static int used;

static int is(const char *name) { return !strncmp(scene, name, strlen(name)) && strchr(":", scene[strlen(name)]); }

static void fail(const char *what) {
    fprintf(stderr, "graphics: %s failed\n", what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* -- geometry ------------------------------------------------------------------------------------------------------ */

static void add(Vertex vertex) { vertices[used++] = vertex; }

static void add_quad(const Vertex *corners) {
    static const int order[6] = {0, 1, 2, 0, 2, 3};
    for (int i = 0; i < 6; i++)
        add(corners[order[i]]);
}

static void make_fill(void) {
    static const float corners[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    for (int layer = 0; layer < 4; layer++) {
        Vertex quad[4];
        for (int i = 0; i < 4; i++) {
            float x = corners[i][0], y = corners[i][1], w = fmaxf(1 + (0.5f * x + 0.8f * (y + 1)) * (0.5f + 0.2f * layer), 0.3f);
            quad[i] = (Vertex){x * w, y * w, (0.8f - 0.2f * layer + 0.05f * y) * w, w, (x + 1) * 2 + 0.1f * layer, (y + 1) * 2};
        }
        add_quad(quad);
    }
}

static Vertex bump(int column, int row) {
    float x = 2.0f * column / count - 1, y = 2.0f * row / count - 1, z = 0.15f * sinf(7 * x) * cosf(9 * y), w = 2 + 0.6f * y + z;
    return (Vertex){x * w * 0.98f, y * w * 0.98f, (0.2f + 0.3f * z) * w, w, x * 4, y * 4};
}

static void make_mesh(void) {
    for (int row = 0; row < count; row++)
        for (int column = 0; column < count; column++) {
            Vertex quad[4] = {bump(column, row), bump(column + 1, row), bump(column + 1, row + 1), bump(column, row + 1)};
            add_quad(quad);
        }
}

/* Triangles of a tenth of a pixel around the corner of four pixels, which no sample is near to; or right of the view. */
static void make_strip(int triangles, float away) {
    for (int i = 0; i < triangles + 2; i++) {
        int column = i / 2 % (SIDE - 2) - SIDE / 2 + 1;
        float x = 2.0f * column / SIDE, tiny = 0.2f / SIDE;
        add((Vertex){x + away + (i / 2 % 2) * tiny, (i % 2) * tiny, 0, 1, 0, 0});
    }
}

static void make_quads(int quads, float z) {
    Vertex quad[4] = {{-1, -1, z, 1, 0, 0}, {1, -1, z, 1, 1, 0}, {1, 1, z, 1, 1, 1}, {-1, 1, z, 1, 0, 1}};
    for (int i = 0; i < quads; i++)
        add_quad(quad);
}

static void make_vertices(void) {
    vertices = malloc(sizeof *vertices * (is("mesh") ? 6 * count * count : 6 * count + 64));
    if (is("fill"))
        make_fill();
    else if (is("mesh"))
        make_mesh();
    else if (is("draws") || is("uniforms"))
        make_strip(1, 0);
    else if (is("vertices") || is("objects"))
        make_strip(count, is("vertices") ? 4 : 0);
    else if (is("hidden"))
        make_quads(1, -0.5f), make_quads(count, 0.5f);
    else if (is("flat"))
        make_quads(count, 0);
    else
        fail("finding the scene");
}

/* -- set-up -------------------------------------------------------------------------------------------------------- */

static void make_context(void) {
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE}, version[] = {EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE};
    EGLConfig config;
    EGLint found = 0;
    if (!eglInitialize(display, NULL, NULL) || !eglChooseConfig(display, wanted, &config, 1, &found) || !found)
        fail("EGL");
    eglBindAPI(EGL_OPENGL_ES_API);
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
    if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
        fail("making the context");
    fprintf(stderr, "%s\n", glGetString(GL_RENDERER));
}

static GLuint framebuffer_of(int colour_samples, int with_depth) {
    GLuint framebuffer, buffers[2];
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glGenRenderbuffers(2, buffers);
    for (int i = 0; i <= with_depth; i++) {
        glBindRenderbuffer(GL_RENDERBUFFER, buffers[i]);
        glRenderbufferStorageMultisample(GL_RENDERBUFFER, colour_samples, i ? GL_DEPTH_COMPONENT24 : GL_RGBA8, SIDE, SIDE);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, i ? GL_DEPTH_ATTACHMENT : GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, buffers[i]);
    }
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
        fail("the framebuffer");
    return framebuffer;
}

/* The framebuffer that scenes are drawn to, and, where its pixels have several samples, the one that they are resolved to. */
static void make_target(void) {
    if (samples)
        resolved = framebuffer_of(0, 0);
    target = framebuffer_of(samples, 1);
}

static void make_texture(void) {
    unsigned char *texels = malloc(TEXTURE * TEXTURE * 4);
    unsigned noise = 1;
    for (int y = 0; y < TEXTURE; y++)
        for (int x = 0; x < TEXTURE; x++) {
            unsigned char *texel = texels + 4 * (y * TEXTURE + x);
            noise = noise * 1664525 + 1013904223;
            texel[0] = (x ^ y) & 255, texel[1] = 2 * x & 255, texel[2] = (x / 32 + y / 32) % 2 * 247 + (noise >> 29), texel[3] = 255;
        }
    GLuint texture;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, TEXTURE, TEXTURE, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
    free(texels);
}

static GLuint shader(GLenum kind, const char *text) {
    GLuint made = glCreateShader(kind);
    glShaderSource(made, 1, &text, NULL);
    glCompileShader(made);
    return made;
}

static void make_program(void) {
    GLuint program = glCreateProgram();
    GLint linked;
    glAttachShader(program, shader(GL_VERTEX_SHADER, "attribute vec4 position; attribute vec2 uv; varying vec2 t;"
                                                     "void main() { gl_Position = position; t = uv; }"));
    glAttachShader(program, shader(GL_FRAGMENT_SHADER,
                                   is("fill") || is("mesh") ? "precision highp float; varying vec2 t; uniform sampler2D image; uniform vec4 colour;"
                                                              "void main() { gl_FragColor = texture2D(image, t) * colour; }"
                                                            : "precision highp float; uniform vec4 colour; void main() { gl_FragColor = colour; }"));
    glBindAttribLocation(program, 0, "position");
    glBindAttribLocation(program, 1, "uv");
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &linked);
    if (!linked)
        fail("linking the program");
    glUseProgram(program);
    colour = glGetUniformLocation(program, "colour");
    glUniform4f(colour, 1.0f, 0.9f, 0.8f, 1.0f);
}

static void make_buffer(void) {
    GLuint buffer;
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, used * sizeof *vertices, vertices, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, sizeof *vertices, (void *)0);
    glVertexAttribPointer(1, 2, GL_FLOAT, GL_FALSE, sizeof *vertices, (void *)16);
    glEnableVertexAttribArray(0);
    glEnableVertexAttribArray(1);
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

static void draw(void) {
    if (is("draws") || is("uniforms")) {
        for (int i = 0; i < count; i++) {
            if (is("uniforms"))
                glUniform4f(colour, i * 1e-4f, 0, 0, 1);
            glDrawArrays(GL_TRIANGLES, 0, 3);
        }
    } else if (used)
        glDrawArrays(is("vertices") || is("objects") ? GL_TRIANGLE_STRIP : GL_TRIANGLES, 0, used);
}

static void resolve(void) {
    if (!samples)
        return;
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, resolved);
    glBlitFramebuffer(0, 0, SIDE, SIDE, 0, 0, SIDE, SIDE, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, target);
}

static void write_pixels(const char *file) {
    unsigned char *pixels = malloc(SIDE * SIDE * 4);
    FILE *out = fopen(file, "wb");
    if (samples)
        glBindFramebuffer(GL_READ_FRAMEBUFFER, resolved);
    glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    if (!out || fwrite(pixels, 4, SIDE * SIDE, out) != SIDE * SIDE || fclose(out))
        fail("writing the pixels");
}

int main(int arguments, char **argument) {
    if (arguments < 4)
        return fprintf(stderr, "graphics SCENE[:SAMPLES] COUNT FRAMES [FILE]\n"), 2;
    scene = argument[1], count = atoi(argument[2]);
    samples = strchr(scene, ':') ? atoi(strchr(scene, ':') + 1) : 0;
    make_vertices();
    make_context();
    make_target();
    make_texture();
    make_program();
    make_buffer();
    glViewport(0, 0, SIDE, SIDE);
    if (!is("flat"))
        glEnable(GL_DEPTH_TEST);
    double best = 1e9;
    for (int frame = 0; frame < atoi(argument[3]); frame++) {
        double began = now();
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
        draw();
        resolve();
        glFinish();
        if (now() - began < best)
            best = now() - began;
    }
    if (arguments > 4)
        write_pixels(argument[4]);
    printf("%.9f\n", best);
    return 0;
}
