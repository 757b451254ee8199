/* Times frames with OpenGL 4 without a window: 1024 x 1024 pixels, colour and depth. Prints the seconds of the quickest frame.

       geometry SCENE COUNT FRAMES [FILE]

   terrain   COUNT x COUNT patches, each tessellated 16 x 16 and displaced by a texture
   FILE gets the pixels of the last frame, RGBA, bottom row first.
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

enum { SIDE = 1024, TEXTURE = 256 };

struct scene {
    const char *name, *vertex, *control, *evaluation, *fragment;
    GLenum primitive;
    int patch; /* vertices of one, or 0 */
};

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
     "#version 400\nin vec2 t; in float height; out vec4 colour;\nvoid main() { colour = vec4(height, t, 1); }", GL_PATCHES, 4},
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

static void attach(GLuint program, GLenum kind, const char *text)
{
    if (!text)
        return;
    GLuint made = glCreateShader(kind);
    glShaderSource(made, 1, &text, NULL);
    glCompileShader(made);
    glAttachShader(program, made);
}

static void make_program(const struct scene *scene, int count)
{
    GLuint program = glCreateProgram();
    GLint linked;
    attach(program, GL_VERTEX_SHADER, scene->vertex);
    attach(program, GL_TESS_CONTROL_SHADER, scene->control);
    attach(program, GL_TESS_EVALUATION_SHADER, scene->evaluation);
    attach(program, GL_FRAGMENT_SHADER, scene->fragment);
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &linked);
    if (!linked)
        fail("linking the program");
    glUseProgram(program);
    glUniform1i(glGetUniformLocation(program, "count"), count);
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
    if (scene->patch)
        glPatchParameteri(GL_PATCH_VERTICES, scene->patch);
    double best = 1e9;
    for (int frame = 0; frame < atoi(argument[3]); frame++) {
        double began = now();
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
        glDrawArrays(scene->primitive, 0, count * count * scene->patch);
        glFinish();
        if (now() - began < best)
            best = now() - began;
    }
    if (arguments > 4)
        write_pixels(argument[4]);
    printf("%.9f\n", best);
    return 0;
}
